"""Folders appear whole, whatever an earlier killed process left."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from clops_sweep.data.files.folder import appearing_folder


@pytest.fixture
def gone() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def left(parent: Path, process: int, purpose: str) -> Path:
    folder = parent / f".set.{socket.gethostname()}.{process}.0a1b2c3d.{purpose}"
    folder.mkdir()
    (folder / "content").write_text(purpose)
    return folder


def test_what_had_stepped_aside_is_not_lost_until_something_new_is_there(tmp_path: Path, gone: int) -> None:
    left(tmp_path, gone, "replaced")
    left(tmp_path, gone, "partial")
    with pytest.raises(RuntimeError), appearing_folder(tmp_path / "set"):
        raise RuntimeError("no new one, after all")
    assert [path.name for path in tmp_path.iterdir()] == ["set"]
    assert (tmp_path / "set" / "content").read_text() == "replaced"


def test_of_two_the_one_in_place_stays(tmp_path: Path, gone: int) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "content").write_text("in place")
    left(tmp_path, gone, "replaced")
    with pytest.raises(RuntimeError), appearing_folder(tmp_path / "set"):
        raise RuntimeError("no new one, after all")
    assert [path.name for path in tmp_path.iterdir()] == ["set"]
    assert (tmp_path / "set" / "content").read_text() == "in place"
