"""Full or read-only disks and inaccessible folders: one sentence, exit status 2, nothing half-written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clops_sweep.data.preparing.prepare import prepare
from tests.data.physionet_server import PhysioNet
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


def test_downloading_to_a_full_disk_and_going_on_when_there_is_space(
    physionet: PhysioNet, disk: Path, published: Path
) -> None:
    command = _command("download", "mitbih", "--data-root", disk, server=physionet.address)
    again = f'cp -r {disk} {disk}.early; mount -o remount,size=10m "$0"; "$@" && cp -r {disk} {disk}.late'
    done = _on_disk(disk, "size=100k", *command, after=again)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"clops-sweep: {disk}/mitdb/")
    assert done.stderr.endswith(": the disk is full; free some space or choose another folder\n")
    early, late = (
        {path.name: path.read_bytes() for path in Path(f"{disk}.{when}").rglob("*.*")} for when in ("early", "late")
    )
    assert late == {name: (published / "mitdb" / "1.0.0" / name).read_bytes() for name in late}
    assert len(late) == 3 * 6 + 1
    assert 0 < sum(map(len, early.values())) <= 100 * 1024
    assert early.items() <= late.items()


@pytest.mark.parametrize("command", ["prepare", "download"])
def test_a_read_only_disk(command: str, disk: Path, tmp_path: Path, physionet: PhysioNet) -> None:
    physionet2020(tmp_path / "data")
    roots = {"prepare": (tmp_path / "data", disk), "download": (disk, tmp_path / "prepared")}[command]
    options = ("physionet2020", "--data-root", roots[0], *(("--prepared-root", roots[1]) * (command == "prepare")))
    done = _on_disk(disk, "size=1m,ro", *_command(command, *options, server=physionet.address))
    assert done.returncode == 2
    assert done.stderr.startswith(f"clops-sweep: {disk}/")
    assert done.stderr.endswith(": the file system is read-only; choose another folder\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["prepare", "download"])
def test_a_folder_that_may_not_be_written_to(
    command: str, tmp_path: Path, physionet: PhysioNet, without_privilege: list[str]
) -> None:
    physionet2020(tmp_path / "data")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    options = {
        "prepare": ("--data-root", tmp_path / "data", "--prepared-root", closed / "new"),
        "download": ("--data-root", closed / "new"),
    }[command]
    arguments = _command(command, "physionet2020", *options, server=physionet.address)
    done = subprocess.run([*without_privilege, *arguments], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"clops-sweep: {closed}/new")
    assert done.stderr.endswith(": permission is denied; make it accessible or choose another folder\n")
    assert done.stderr.count("\n") == 1
    assert os.listdir(closed) == []


def test_a_record_that_may_not_be_read(tmp_path: Path, without_privilege: list[str]) -> None:
    physionet2020(tmp_path / "data")
    (tmp_path / "data" / "cpsc2018" / "A0002.mat").chmod(0)
    roots = ("--data-root", tmp_path / "data", "--prepared-root", tmp_path / "prepared")
    arguments = [*without_privilege, *_command("prepare", "physionet2020", *roots)]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "cpsc2018/A0002.mat: permission is denied" in done.stderr
    assert os.listdir(tmp_path / "prepared") == []


def test_a_prepared_file_that_may_not_be_read(tmp_path: Path, without_privilege: list[str]) -> None:
    physionet2020(tmp_path / "data")
    folder = prepare(
        "physionet2020", prepared_root=tmp_path / "prepared", data_root=tmp_path / "data", workers=1
    ).folder
    (folder / "index.parquet").chmod(0)
    (tmp_path / "data" / "cpsc2018" / "A0002.mat").chmod(0)
    (tmp_path / "data" / "cpsc2018" / "SHA256SUMS.txt").write_text(f"{'0' * 64} A0002.mat\n")
    roots = ("--data-root", tmp_path / "data", "--prepared-root", tmp_path / "prepared")
    verified = subprocess.run(
        [*without_privilege, *_command("verify", "physionet2020", *roots)], capture_output=True, text=True
    )
    assert verified.returncode == 2
    *listed, last = verified.stderr.splitlines()
    assert [line.rpartition("/")[2].split(";")[0] for line in listed] == [
        "A0002.mat: permission is denied",
        "index.parquet: permission is denied",
    ]
    assert last.startswith("clops-sweep: physionet2020: 2 problems, listed above")
    shown = subprocess.run([*without_privilege, *_command("list", *roots)], capture_output=True, text=True)
    assert shown.returncode == 0
    assert shown.stdout.split("physionet2020", 1)[1].split()[0] == "damaged"
