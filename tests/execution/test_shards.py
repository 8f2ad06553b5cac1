"""Sixteen shards of a grid in sixteen processes, as in a job array; some are killed or stopped, and requeued."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from tests.helpers.launching import TABLES, assert_same, comparable

SPACE = Path(__file__).parents[2] / "search_spaces" / "class_il_grid.py"
SHARDS, AT_A_TIME = 16, 4
SEED = 40


@dataclass
class Task:
    """A process of the array, and when it gets which signal; 0 for none."""

    shard: int
    process: subprocess.Popen[bytes]
    signal: int
    due: float


class Array:
    """Starts tasks in a folder and counts their processor time.

    Attributes:
        seconds: user and system time of all tasks that have ended, with that of their children.
        endings: how often a task ended with each exit status.
    """

    def __init__(self, script: str, folder: Path, environment: dict[str, str]) -> None:
        self._script, self._folder, self._environment = script, folder, environment
        self.seconds = 0.0
        self.endings: dict[int, int] = {}

    def start(self, results: str, *options: str) -> subprocess.Popen[bytes]:
        command = [self._script, str(SPACE), "--set", "dataset=synthetic", "--seeds", "2", "--results", results]
        with open(self._folder / "log", "ab") as log:
            return subprocess.Popen(
                [*command, "--no-ray", "--no-report", *options],
                cwd=self._folder, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def wait(self, process: subprocess.Popen[bytes], *, block: bool = True) -> int | None:
        number, status, usage = os.wait4(process.pid, 0 if block else os.WNOHANG)
        if not number:
            return None
        process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds += usage.ru_utime + usage.ru_stime
        self.endings[process.returncode] = self.endings.get(process.returncode, 0) + 1
        return process.returncode


def run_array(array: Array, results: str) -> None:
    """Run all shards, some at a time; signal every second task once, and start again what has not ended well."""
    draw = random.Random(SEED)
    queue = list(range(1, SHARDS + 1))
    signals = dict(zip(queue[::2], [signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1] * SHARDS, strict=False))
    running: list[Task] = []
    while queue or running:
        while queue and len(running) < AT_A_TIME:
            shard = queue.pop(0)
            process = array.start(results, "--shard", f"{shard}/{SHARDS}", "--stop-status", "75")
            running.append(Task(shard, process, signals.pop(shard, 0), time.monotonic() + draw.uniform(5, 25)))
        time.sleep(0.1)
        for task in list(running):
            if task.signal and time.monotonic() > task.due:
                task.process.send_signal(task.signal)
                task.signal = 0
            if (status := array.wait(task.process, block=False)) is not None:
                running.remove(task)
                assert status in (0, 75, -signal.SIGKILL)
                if status:
                    queue.append(task.shard)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_sixteen_shards_give_what_one_launch_gives(
    console_script: str, environment: dict[str, str], tmp_path: Path
) -> None:
    together = Array(console_script, tmp_path, environment)
    assert together.wait(together.start("together")) == 0
    expected = {name: comparable(name, pd.read_parquet(tmp_path / "together" / name)) for name in TABLES}

    array = Array(console_script, tmp_path, environment)
    run_array(array, "sharded")
    assert_same(tmp_path / "sharded", expected)

    idle = Array(console_script, tmp_path, environment)
    assert idle.wait(idle.start("sharded", "--shard", f"1/{SHARDS}")) == 0
    runs = len(expected["runs"])
    print(f"{runs} runs; one launch {together.seconds:.1f} s, {SHARDS} shards {array.seconds:.1f} s of processor time")
    print(f"a command with nothing to do {idle.seconds:.1f} s; exit statuses of the tasks: {array.endings}")
