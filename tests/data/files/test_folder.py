"""Folders appear whole, whatever an earlier killed process left."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from clops_sweep.data.files.folder import appearing_folder, remove_leftovers

WRITES = """
import os, sys
from pathlib import Path
from clops_sweep.data.files.folder import appearing_folder

os.getpid = lambda: 2**22 - 1  # as in a container of its own, whose numbers of processes mean nothing outside
with appearing_folder(Path(sys.argv[1])) as staging:
    (staging / "content").write_text("of another process")
    print("writing", flush=True)
    sys.stdin.read()
"""


def left(parent: Path, purpose: str) -> None:
    folder = parent / f".set.{socket.gethostname()}.0a1b2c3d.{purpose}"
    folder.mkdir()
    (folder / "content").write_text(purpose)


@pytest.mark.parametrize("killed", [False, True])
def test_what_another_process_is_writing_stays_until_it_ends(tmp_path: Path, killed: bool) -> None:
    command = [sys.executable, "-c", WRITES, tmp_path / "set"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "writing\n"
    with appearing_folder(tmp_path / "set") as staging:
        (staging / "content").write_text("of this process")
    assert len([*tmp_path.glob(".set.*.partial")]) == 1
    if killed:
        process.kill()
    process.communicate()
    assert process.returncode == (-9 if killed else 0)
    remove_leftovers(tmp_path / "set")
    assert [path.name for path in tmp_path.iterdir()] == ["set"]
    assert (tmp_path / "set" / "content").read_text() == f"of {'this' if killed else 'another'} process"
