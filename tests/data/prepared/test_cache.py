"""The cache of prepared frames: listed with sizes, removed by name or age, never while a process uses them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clops_sweep.cli.data import data
from clops_sweep.data.prepared.cache import cached_sets, evict
from clops_sweep.data.prepared.verified_frames import VERIFIED
from clops_sweep.errors import UsageError

OPENS = """
import sys
from pathlib import Path
from clops_sweep.data.preparing.prepare import open_frames

frames = open_frames("synthetic", prepared_root=Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def root(prepared_root: Path, tmp_path: Path) -> Path:
    """A prepared data set under two names; this process has opened neither."""
    for name in ("synthetic", "another"):
        shutil.copytree(prepared_root / "synthetic", tmp_path / "prepared" / name)
    (tmp_path / "prepared" / "not_prepared").mkdir()
    return tmp_path / "prepared"


@pytest.fixture
def sweep(root: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process that keeps the frames of `synthetic` open until its standard input closes."""
    process = subprocess.Popen(
        [sys.executable, "-c", OPENS, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "open\n"
    yield process
    process.communicate()


def _age(root: Path, name: str, days: int) -> None:
    then = time.time() - days * 86_400
    for file in ("manifest.json", VERIFIED):
        if (root / name / file).exists():
            os.utime(root / name / file, (then, then))


def _run(root: Path, *arguments: object) -> Result:
    given = [str(it) for it in ("evict", *arguments, "--prepared-root", root)]
    return CliRunner().invoke(data, given, standalone_mode=False)


def test_what_is_unused_is_evicted(root: Path) -> None:
    _age(root, "another", 8)
    assert "0 data sets evicted" in _run(root, "--unused-for", 9).output
    assert "1 data set evicted" in _run(root, "--unused-for", 7).output
    assert [it.folder.name for it in cached_sets(root)] == ["synthetic"]


def test_what_a_process_has_open_is_never_evicted(root: Path, sweep: subprocess.Popen[str]) -> None:
    with pytest.raises(UsageError, match="data set 'synthetic': a running process has its frames open"):
        evict(root, ["another", "synthetic"])
    assert "in use" in _run(root).output
    _age(root, "synthetic", 30)
    assert _run(root, "--unused-for", 5).output.startswith("kept synthetic: a running process has its frames open\n")
    assert len(cached_sets(root)) == 2
    sweep.communicate()
    assert len(evict(root, ["synthetic"])) == 1
