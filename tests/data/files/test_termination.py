"""Killed preparations leave no process behind, and clean up if possible."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from clops_sweep.data.files.termination import terminated_like_interrupted

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are looked up as on Linux")

SCRIPT = """
import time
from clops_sweep.data.prepared.record_pool import record_pool

with record_pool("mitbih", records=100, workers=2) as run:
    list(run(time.sleep, [600] * 100))
"""


def _workers(process: int) -> list[int]:
    """Return the worker processes of a process."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def _alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _until(condition: Callable[[], bool], seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def test_processes_end_with_a_killed_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", SCRIPT]) as parent:
        workers: list[int] = []
        try:
            assert _until(lambda: len(_workers(parent.pid)) == 2)
            workers = _workers(parent.pid)
            time.sleep(2)  # they sleep already, or still import modules: both must end
            parent.kill()
            parent.wait()
            assert _until(lambda: not any(map(_alive, workers)))
        finally:
            for process in (parent.pid, *workers):
                if _alive(process):
                    os.kill(process, signal.SIGKILL)


def test_outside_the_main_thread_signals_are_left_alone() -> None:
    def handler() -> Any:
        with terminated_like_interrupted():
            return signal.getsignal(signal.SIGTERM)

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(handler).result() == signal.getsignal(signal.SIGTERM)
