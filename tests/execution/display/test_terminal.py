"""Standard output that goes away: what a command does counts more than what it says."""

from __future__ import annotations

import subprocess
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
