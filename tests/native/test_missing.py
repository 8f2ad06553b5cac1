"""A process without kernels says why, and what to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import clops_sweep

SOURCES = Path(clops_sweep.__file__).parent
KERNELS = "clops_sweep/native/_kernels.cpython-311-x86_64-linux-gnu.so"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the sources alone."""
    ignored = shutil.ignore_patterns("_kernels.*", "__pycache__", "src", "analysis", "search_spaces")
    shutil.copytree(SOURCES, tmp_path / "checkout" / "clops_sweep", ignore=ignored)
    return tmp_path / "checkout"


def says(checkout: Path, *arguments: str, path: Path | None = None) -> str:
    """What Python prints that is started in a checkout, with another folder to import from behind it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [checkout, *([path] if path else [])]))}
    done = subprocess.run([sys.executable, *arguments], cwd=checkout, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_checkout_that_hides_an_installation_is_named(checkout: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    about = site / "clops_sweep-0.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: clops-sweep\nVersion: 0.0\n")
    (about / "RECORD").write_text(f"{KERNELS},,\n")
    (site / KERNELS).parent.mkdir(parents=True)
    (site / KERNELS).touch()
    shown = says(checkout, "-m", "clops_sweep.cli", "doctor", path=site)
    (line,) = (line for line in shown.splitlines() if line.startswith("native kernels"))
    assert f"{checkout} hides the installed clops-sweep" in line
    assert "run `pip install -e .` in that folder" in line


def test_kernels_that_cannot_be_loaded_are_not_taken_for_missing_ones(checkout: Path) -> None:
    (checkout / "clops_sweep" / "native" / "_kernels.abi3.so").write_bytes(b"not a library")
    shown = says(checkout, "-c", "from clops_sweep import native; print(native.why_missing())")
    assert shown.startswith("the native kernels cannot be loaded (")
    assert "_kernels.abi3.so" in shown
