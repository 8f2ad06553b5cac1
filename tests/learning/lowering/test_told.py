"""Plan and launch say which networks of a user the native kernels compute, and which layer keeps one in PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from torch import nn

from clops_sweep import native
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning.lowering.told import networks_told
from clops_sweep.testing import of_shape, tiny_config, tiny_frames

pytestmark = pytest.mark.skipif(native.chosen_for_programs() is None, reason="the native kernels are not built")


def stack(channels: int, samples: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Conv1d(channels, 4, 5), nn.ReLU(), nn.Flatten(), nn.Linear(4 * (samples - 4), outputs))


def recurrent(channels: int, samples: int, outputs: int) -> nn.Module:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = nn.GRU(channels, 6, batch_first=True), nn.Linear(6, outputs)

        def forward(self, frames):
            return self.head(self.layer(frames.transpose(1, 2))[0][:, -1])

    return Last()


def hooked(channels: int, samples: int, outputs: int) -> nn.Module:
    """A network whose first gradient a hook changes, which no trace of a pass shows."""
    module = stack(channels, samples, outputs)
    next(module.parameters()).register_hook(lambda gradient: 0.1 * gradient)
    return module


def wide(channels: int, samples: int, outputs: int) -> nn.Module:
    """Only the last convolution is wide at both ends and has no groups."""
    convolutions = nn.Conv1d(channels, 64, 5), nn.Conv1d(64, 64, 3, groups=2), nn.Conv1d(64, 80, 3)
    return nn.Sequential(*convolutions, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(80, outputs))


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    with ExitStack() as contexts:
        for name, make in {"stack": stack, "recurrent": recurrent, "hooked": hooked, "wide": wide}.items():
            contexts.enter_context(NETWORKS.temporarily(name, make))
        yield


def test_each_network_is_told_once_with_its_layer() -> None:
    frames = of_shape(tiny_frames("class_il", tasks=2), 3, 40)
    configs = [
        tiny_config("class_il", network=network, strategy=strategy)
        for network in ("stack", "recurrent", "small_cnn", "hooked")
        for strategy in ("er", "finetune")
    ]
    told = networks_told(configs, {config.data_key: frames for config in configs})
    assert told == [
        "network 'stack' on frames of 3 x 40: the native kernels compute it on a CPU",
        "network 'recurrent' on frames of 3 x 40: PyTorch computes it, because 'layer' (GRU) is recurrent",
        "network 'hooked' on frames of 3 x 40: PyTorch computes it, because the network (Sequential) differs from "
        "PyTorch in the gradient of '0.weight' in evaluation",
    ]


NATIVELY = "the native kernels compute it on a CPU"


@pytest.mark.parametrize(
    ("network", "variant", "computed_by"),
    [
        ("stack", "baseline", NATIVELY),
        ("wide", "avx2", NATIVELY),
        (
            "wide",
            "baseline",
            "PyTorch computes it, because '2' (Conv1d) convolves 64 with 80 channels, which the baseline kernels do "
            "more slowly",
        ),
    ],
)
def test_wide_convolutions_stay_with_pytorch_where_the_kernels_have_no_wide_vectors(
    network: str, variant: str, computed_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variant not in native.available():
        pytest.skip(f"the {variant} kernels are not available")
    monkeypatch.setenv("CLOPS_NATIVE", variant)
    config = tiny_config("class_il", network=network)
    frames = of_shape(tiny_frames("class_il", tasks=2), 3, 40)
    told = networks_told([config], {config.data_key: frames})
    assert told == [f"network {network!r} on frames of 3 x 40: {computed_by}"]
