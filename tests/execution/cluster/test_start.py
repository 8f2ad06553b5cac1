"""The start of Ray on machines that make it hard: it takes longer, or one sentence says what is in the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from clops_sweep.execution.cluster.start import signals_kept
from tests.execution.conftest import Launch
from tests.helpers.launching import ONE_WORKER

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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere, Ray ends its processes by their group")
def test_what_ray_starts_is_in_no_group_that_gets_the_signals_of_the_driver() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with signals_kept():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # as Ray replaces it
        apart = _group_of_a_process_with_a_hook()
    assert apart != os.getpgrp()
    assert _group_of_a_process_with_a_hook() == os.getpgrp()
    assert signal.getsignal(signal.SIGTERM) == before


def _group_of_a_process_with_a_hook() -> int:
    """Return the process group of a process that is started as Ray starts its own, with a `preexec_fn`."""
    command = [sys.executable, "-S", "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, preexec_fn=os.getpid) as process:  # any function will do
        group = os.getpgid(process.pid)
        process.communicate(b"\n")
    return group


def test_a_busy_machine_gets_more_time_than_ray_gives(launch: Launch) -> None:
    sweep = launch("-c", BUSY.format(times=1), *COMMAND, script=sys.executable, changes=LIMITS)
    assert sweep.wait() == 0, sweep.errors
