"""The start of Ray on machines that make it hard: it takes longer, or one sentence says what is in the way."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.launching import ONE_WORKER, Sweep, Tables, assert_same

Launch = Callable[..., Sweep]

CLOCK = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu" / "faketime" / "libfaketimeMT.so.1"

BUSY = """
import os
import signal
from ray._private import services
from clops_sweep.cli.command import main

start = services.start_raylet
stopped = []

def slowly(*arguments, **options):
    started = start(*arguments, **options)
    if len(stopped) < {times}:
        os.kill(started.process.pid, signal.SIGSTOP)
        stopped.append(started.process.pid)
    return started

services.start_raylet = slowly
main()
"""
"""The command, with a raylet that does nothing the first times."""

COMMAND = ("space.py", "--no-report", "--set", "epochs_per_task=1", "--seeds", "1", *ONE_WORKER)
LIMITS = {"RAY_raylet_start_wait_time_s": "3", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


def test_a_busy_machine_gets_more_time_than_ray_gives(launch: Launch) -> None:
    sweep = launch("-c", BUSY.format(times=1), *COMMAND, script=sys.executable, changes=LIMITS)
    assert sweep.wait() == 0, sweep.errors


def test_a_machine_that_is_too_busy_is_no_bad_input(launch: Launch) -> None:
    sweep = launch("-c", BUSY.format(times=9), *COMMAND, script=sys.executable, changes=LIMITS)
    assert sweep.wait() == 1
    assert sweep.errors.startswith("clops-sweep: stopped: Ray has not started on this machine (")
    assert sweep.errors.endswith(f"resume with: clops-sweep {' '.join(COMMAND)}\n")
    assert sweep.errors.count("\n") == 1
    sweep.wait_until_gone()


def test_a_user_without_roots_rights(console_script: str, environment: dict[str, str]) -> None:
    """In a temporary folder whose name is not ASCII."""
    user = os.getuid()
    before: list[str] = []
    if user == 0:  # what the interpreter lies in may be root's alone to read
        user = pwd.getpwnam("nobody").pw_uid
        rights = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
        before = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *rights]
        if shutil.which("setpriv") is None or subprocess.run([*before, "true"], capture_output=True).returncode:
            pytest.skip("root's rights cannot be given up here")
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        (folder / "space.py").write_text(
            "from clops_sweep import RunConfig, SearchSpace\nSPACE = SearchSpace('s', RunConfig(strategy='finetune'))\n"
        )
        temporary = folder / "\N{LATIN SMALL LETTER E WITH ACUTE}"
        temporary.mkdir()
        for path in (folder, temporary, folder / "space.py"):
            os.chown(path, user, -1)
        changes = {"HOME": name, "TMPDIR": str(temporary), "CLOPS_PREPARED_ROOT": str(folder / "prepared")}
        done = subprocess.run(
            [*before, console_script, *COMMAND],
            cwd=folder, env={**environment, **changes}, capture_output=True, text=True, check=False, timeout=250,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        assert {path.stat().st_uid for path in folder.rglob("*")} == {user}
        assert list(temporary.iterdir()) == []


@pytest.mark.skipif(not CLOCK.exists(), reason="libfaketime is not installed")
def test_a_clock_that_jumps_changes_nothing(launch: Launch, alone: Tables, tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("+0")
    changes = {
        "LD_PRELOAD": str(CLOCK),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
    }
    sweep = launch("space.py", "--no-report", "--max-retries", "0", changes=changes)
    # libfaketime moves the monotonic clock too: whoever waits on it waits 20 s longer after the step back
    for number, jump in ((1, "+172800"), (3, "+172780")):
        sweep.read_until(f"[{number}/")
        clock.write_text(jump)
    assert sweep.wait() == 0, sweep.output
    assert sweep.errors == ""
    assert_same(tmp_path / "results", alone)
