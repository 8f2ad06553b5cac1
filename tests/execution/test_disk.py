"""Results on a disk that is full."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helpers.launching import ATTACHED, ONE_WORKER, Sweep, Tables, assert_same
from tests.helpers.preloaded import Preloaded

pytestmark = pytest.mark.nightly

Launch = Callable[..., Sweep]


def _mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a megabyte: three checkpoints fill it."""
    folder = tmp_path / "small"
    folder.mkdir()
    if not _mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)):
        pytest.skip("a file system cannot be mounted here: this needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_is_named_and_the_same_command_completes_once_there_is_room(
    launch: Launch, attach: Launch, commands: Preloaded, small_disk: Path, alone: Tables
) -> None:
    results = small_disk / "results"
    command = ("space.py", "--no-report", "--checkpoint-every", "2", "--results", str(results))
    full = attach(*command)
    assert full.wait() == 1
    assert full.errors.count("\n") == 1
    assert full.errors.startswith("clops-sweep: stopped: [Errno 28] No space left on device: '")
    assert str(results) in full.errors
    assert f"resume with: clops-sweep {' '.join((*command, *ATTACHED, *ONE_WORKER))}" in full.errors
    assert "Traceback" not in full.output

    status = launch("status", "--results", str(results), script=commands)
    assert status.wait() == 0
    assert "0 failed" in status.output

    assert _mount("-o", "remount,size=64m", str(small_disk))
    again = attach(*command)
    assert again.wait() == 0
    assert_same(results, alone)
    assert [path for path in results.rglob("*") if ".parquet." in path.name] == []
