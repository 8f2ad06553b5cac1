"""Standard output that goes away: what a command does counts more than what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SPACE = "from clops_sweep import RunConfig, SearchSpace\nSPACE = SearchSpace('one', RunConfig(), seeds=range(3))\n"
FULL = Path("/dev/full")

Shell = Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def shell(tmp_path: Path, console_script: str, environment: dict[str, str]) -> Shell:
    (tmp_path / "space.py").write_text(SPACE)

    def run(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", line.replace("clops-sweep", console_script)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


def test_a_reader_that_has_had_enough_is_no_error(shell: Shell) -> None:
    done = shell("clops-sweep plan space.py | head -n 0")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence(shell: Shell) -> None:
    done = shell("clops-sweep plan space.py > /dev/full")
    assert done.returncode == 1
    assert done.stderr == "clops-sweep: standard output: [Errno 28] No space left on device\n"


def test_no_output_at_all(shell: Shell) -> None:
    done = shell("clops-sweep plan space.py >&- && clops-sweep plan space.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("3 runs asked for, 0 finished, 3 pending, 0 failed\n")


def test_a_current_folder_that_has_gone_is_one_sentence(shell: Shell) -> None:
    done = shell("mkdir gone && cd gone && rmdir ../gone && clops-sweep plan space.py")
    assert done.returncode == 2
    assert done.stderr.startswith("clops-sweep: the current folder: ")
    assert done.stderr.count("\n") == 1


def test_a_display_goes_on_without_anybody_to_see_it(tmp_path: Path) -> None:
    """On a pipe whose other end is closed, in a process of its own: it is about file number 1."""
    code = (
        "import sys; from pathlib import Path; from clops_sweep import RunConfig\n"
        "from clops_sweep.execution.display.live import SweepDisplay\n"
        "with SweepDisplay() as display:\n"
        "    display.begin([RunConfig()] * 3, Path('log'))\n"
        "    for _ in range(100): display.warn('x' * 1000)\n"
        "sys.stderr.write('to the end')"
    )
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60, cwd=tmp_path
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "to the end")
