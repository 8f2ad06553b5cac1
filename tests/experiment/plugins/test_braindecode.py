"""Networks of braindecode by name: names, arguments and defaults are read without importing the package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clops_sweep import RunConfig
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins import braindecode
from clops_sweep.experiment.plugins.registry import NETWORKS

_MODEL = '''
"""Models in the form in which braindecode writes them."""
import torch_that_is_not_installed
from torch import nn
from .base import EEGModuleMixin

class _Part(nn.Module):
    def __init__(self, width=3): ...

class TinyNet(EEGModuleMixin, nn.Sequential):
    def __init__(self, n_chans=None, n_outputs=None, F1: int = 8, rate: float = 1, F2: "Optional[int]" = None, *,
                 activation: type[nn.Module] = nn.ELU, mode="mean", bias=True, widths=(1, 2), length="auto",
                 norm=None, sfreq=None, _inner=1, **kwargs): ...

class TinyNet_Wide(TinyNet):
    pass

Interpolated = make(TinyNet)
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put a package of the name and version of braindecode before an installed one."""
    models = tmp_path / "braindecode" / "models"
    models.mkdir(parents=True)
    (tmp_path / "braindecode" / "__init__.py").write_text("raise AssertionError('imported')")
    (models / "__init__.py").write_text(
        "from .tiny import TinyNet, TinyNet_Wide, Interpolated\nfrom .base import Other\n"
    )
    (models / "base.py").write_text("class Other: ...")
    (models / "tiny.py").write_text(_MODEL)
    facts = tmp_path / "braindecode-1.8.7.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: braindecode\nVersion: 1.8.7\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    _forget_networks()
    yield
    _forget_networks()


def _forget_networks() -> None:
    """Forget the networks of braindecode, as if none had been looked up."""
    for name in NETWORKS.in_use:
        if name.startswith(braindecode.PREFIX):
            NETWORKS.forget(name)


@pytest.mark.usefixtures("package")
def test_arguments_are_options_with_their_defaults() -> None:
    config = RunConfig(network="braindecode:TinyNet", TinyNet_F1=4, TinyNet_rate=2)
    assert config.options_of("network") == {
        "braindecode_version": "1.8.7",
        "TinyNet_F1": 4,
        "TinyNet_rate": 2.0,
        "TinyNet_F2": None,
        "TinyNet_activation": "ELU",
        "TinyNet_mode": "mean",
        "TinyNet_bias": True,
    }
    assert "torch_that_is_not_installed" not in sys.modules
    assert '"braindecode_version":"1.8.7"' in config.identity
    assert '"TinyNet_F1":4' in config.identity
    assert braindecode.names() == ["braindecode:TinyNet", "braindecode:TinyNet_Wide"]


@pytest.mark.usefixtures("package")
def test_only_changed_arguments_are_passed_on() -> None:
    config = RunConfig(network="braindecode:TinyNet", TinyNet_F2=3, TinyNet_activation="GELU", TinyNet_bias=True)
    assert braindecode.arguments_of("TinyNet", config.network_options) == {"F2": 3}
    assert braindecode.layers_of("TinyNet", config.network_options) == {"activation": "GELU"}


@pytest.mark.usefixtures("package")
def test_an_option_is_known_before_its_network() -> None:
    base = RunConfig.of({"TinyNet_F1": 2, "TinyNet_Wide_F1": 3})
    assert base.replace(network="braindecode:TinyNet").options["TinyNet_F1"] == 2
    assert base.replace(network="braindecode:TinyNet_Wide").options["TinyNet_Wide_F1"] == 3
    assert "TinyNet_F1" not in base.replace(network="small_cnn").options


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"network": "braindecode:TinyNt"}, "did you mean 'braindecode:TinyNet'?"),
        ({"network": "TinyNet"}, "did you mean 'braindecode:TinyNet'?"),
        ({"network": "braindecode:Xyz"}, "known: braindecode:TinyNet, braindecode:TinyNet_Wide"),
        ({"network": "braindecode:TinyNet", "TinyNet_F3": 1}, "did you mean 'TinyNet_F2' of network"),
        ({"network": "braindecode:TinyNet", "TinyNet_F1": "8"}, "TinyNet_F1 = '8': expected a number"),
        (
            {"network": "braindecode:TinyNet", "TinyNet_activation": "Relu"},
            "TinyNet_activation = 'Relu': expected 'ELU'",
        ),
        ({"network": "braindecode:TinyNet", "TinyNet_n_chans": 2}, "unknown key 'TinyNet_n_chans'"),
        ({"network": "small_cnn", "TinyNet_F1": 2}, "not used by network 'small_cnn', but by network"),
        ({"network": "braindecode:TinyNet", "braindecode_version": "1.8.1"}, "pip install 'braindecode==1.8.1'"),
    ],
)
def test_bad_names_and_values_are_one_sentence(values: dict[str, object], expected: str) -> None:
    with pytest.raises(UsageError) as raised:
        RunConfig(**values)
    assert expected in str(raised.value)
    assert not str(raised.value)[:8].startswith("tinyNet")


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (None, "needs braindecode, which is not installed; pip install 'clops-sweep[braindecode]'"),
        ("1.9.0", "needs braindecode 1.8, and 1.9.0 is installed; pip install"),
        ("1.80.0", "needs braindecode 1.8, and 1.80.0 is installed; pip install"),
    ],
)
def test_a_missing_package_or_another_version_is_one_sentence(
    version: str | None, expected: str, package: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(braindecode, "installed_version", lambda: version)
    _forget_networks()
    with pytest.raises(UsageError) as raised:
        RunConfig(network="braindecode:TinyNet")
    assert expected in str(raised.value)
    assert "braindecode:TinyNet" not in NETWORKS
