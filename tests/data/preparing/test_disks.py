"""Full or read-only disks and inaccessible folders: one sentence, exit status 2, nothing half-written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clops_sweep.data.preparing.prepare import prepare
from tests.data.published_formats import physionet2020

COMMAND = """
import os, sys
from clops_sweep.cli.command import main
from clops_sweep.data.published import download

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core: no process more is started
server, *arguments = sys.argv[1:]
if server:
    download.SERVER = server
main(["data", *arguments])
"""


def _command(*arguments: object, server: str = "") -> list[str]:
    """Run the command with another server instead of physionet.org."""
    return [sys.executable, "-c", COMMAND, server, *map(str, arguments)]


pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="disks are mounted as on Linux")


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Mount point for a small disk, in a name space that ends with the command run in it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if shutil.which("unshare") is None or _on_disk(folder, "size=4k", "true").returncode:
        pytest.skip("mounting a disk is not allowed here")
    return folder


def _on_disk(disk: Path, options: str, *command: str, after: str = "true") -> subprocess.CompletedProcess[str]:
    """Mount a disk with the given options, run a command on it, and then a shell command there."""
    script = f'mount -t tmpfs -o {options} tmpfs "$0" && {{ "$@"; status=$?; {after}; exit $status; }}'
    return subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script, str(disk), *command],
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("ends_in", ["frames", "arrays"])
def test_preparing_on_a_full_disk(ends_in: str, disk: Path, tmp_path: Path) -> None:
    physionet2020(tmp_path / "data")
    whole = prepare("physionet2020", prepared_root=tmp_path, data_root=tmp_path / "data", workers=1).folder
    frames = (whole / "frames.npy").stat().st_size
    size = frames // 2 if ends_in == "frames" else frames + 3 * 4096
    command = _command("prepare", "physionet2020", "--data-root", tmp_path / "data", "--prepared-root", disk)
    done = _on_disk(disk, f"size={size}", *command, after=f"ls -A {disk}")
    assert done.returncode == 2
    assert done.stderr == (
        f"clops-sweep: {disk}/physionet2020: the disk is full; free some space or choose another folder\n"
    )
    assert done.stdout == ""
