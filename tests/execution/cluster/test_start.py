"""The start of Ray on machines that make it hard: it takes longer, or one sentence says what is in the way."""

from __future__ import annotations

import sys

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


def test_a_busy_machine_gets_more_time_than_ray_gives(launch: Launch) -> None:
    sweep = launch("-c", BUSY.format(times=1), *COMMAND, script=sys.executable, changes=LIMITS)
    assert sweep.wait() == 0, sweep.errors
