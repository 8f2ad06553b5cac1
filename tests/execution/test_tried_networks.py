"""Results of trying a library's network are kept beside the prepared data, and found by a later command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MODEL = """
from torch import nn
from .base import EEGModuleMixin

print("imported", flush=True)

class TinyNet(EEGModuleMixin):
    def __init__(self, n_chans=None, n_outputs=None, n_times=None, sfreq=None, chs_info=None, width=8):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(n_chans, width, 9, 9), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten())
        self.head = nn.Linear(width, n_outputs)

    def forward(self, x):
        return self.head(self.body(x)){change}
"""
BASE = "from torch import nn\nclass EEGModuleMixin(nn.Module): ...\n"
SPACE = """
from clops_sweep import RunConfig, SearchSpace
BASE = RunConfig(scenario="time_il", leads="all", network="braindecode:TinyNet", strategy="finetune")
SPACE = SearchSpace("tiny", BASE, {"TinyNet_width": [%s], "batch_size": [8, 16]}, seeds=range(3))
"""


@pytest.fixture
def folder(tmp_path: Path, prepared_root: Path) -> Path:
    """A folder with a space, prepared data, and a package of the name of braindecode."""
    models = tmp_path / "braindecode" / "models"
    models.mkdir(parents=True)
    (tmp_path / "braindecode" / "__init__.py").touch()
    (models / "__init__.py").write_text("from .base import EEGModuleMixin\nfrom .tiny import TinyNet\n")
    (models / "base.py").write_text(BASE)
    (models / "tiny.py").write_text(MODEL.format(change=""))
    _released(tmp_path, "1.8.1")
    (tmp_path / "space.py").write_text(SPACE % "4, 8")
    prepared = tmp_path / "prepared"
    prepared.mkdir()
    (prepared / "synthetic").symlink_to(prepared_root / "synthetic")
    return tmp_path


def _released(folder: Path, version: str) -> None:
    """Write the facts of an installed version of the package."""
    facts = folder / "braindecode-1.8.dist-info"
    facts.mkdir(exist_ok=True)
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: braindecode\nVersion: {version}\n")


def _planned(folder: Path) -> str:
    """Return what `plan` prints, with a line for an import of the package."""
    environment = os.environ | {"PYTHONPATH": str(folder), "CLOPS_PREPARED_ROOT": str(folder / "prepared")}
    command = [sys.executable, "-m", "clops_sweep", "plan", "space.py"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200)
    return done.stdout + done.stderr


@pytest.mark.nightly
def test_a_network_is_tried_once_for_each_version(folder: Path) -> None:
    first = _planned(folder)
    assert "imported" in first
    assert "network 'braindecode:TinyNet' on frames of 12 x 2,500" in first
    again = _planned(folder)
    assert again == first.replace("imported\n", "")
    assert len(list((folder / "prepared" / ".networks").iterdir())) == 2 * 2 * 2  # checks and kernels of four choices
    _released(folder, "1.8.2")
    (folder / "braindecode" / "models" / "tiny.py").write_text(MODEL.format(change=".detach()"))
    refused = "network 'braindecode:TinyNet': its logits depend on none of its parameters"
    assert refused in _planned(folder)
    assert len(list((folder / "prepared" / ".networks").iterdir())) == 8


@pytest.mark.nightly
def test_what_cannot_be_read_or_written_is_computed(folder: Path) -> None:
    expected = _planned(folder)
    for kept in (folder / "prepared" / ".networks").iterdir():
        kept.write_bytes(b"\xff\xfe")
    assert _planned(folder) == expected
    (folder / "space.py").write_text(SPACE % "4, 8, 16")
    assert "imported" in _planned(folder)
    for kept in (folder / "prepared" / ".networks").iterdir():
        kept.unlink()
        kept.mkdir()
    assert "imported" in _planned(folder)
