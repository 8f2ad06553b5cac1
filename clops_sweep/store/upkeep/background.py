"""Compaction during a sweep, in a process that the driver starts: `python -m clops_sweep.store.upkeep.background`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from clops_sweep.store.compaction import FEW
from clops_sweep.store.run_store import RunStore


class BackgroundCompaction:
    """Compact the store of a running sweep gradually, in a separate process.

    The driver must answer its workers without delay. If the driver is killed, the process still completes; if the
    process is killed, nothing is lost.

    Args:
        store: the store.
    """

    def __init__(self, store: RunStore) -> None:
        self._uri = store.uri
        self._process: subprocess.Popen[bytes] | None = None
        self._recorded = 0

    def recorded(self, runs: int) -> None:
        """Count newly recorded runs, and start a compaction once there are enough. Returns at once."""
        self._recorded += runs
        if self._recorded >= FEW and (self._process is None or self._process.poll() is not None):
            self._recorded = 0
            self._start()

    def __enter__(self) -> BackgroundCompaction:
        return self

    def __exit__(self, *error: object) -> None:
        """Wait for a compaction that has begun, so that readers of the folders find each run once."""
        if self._process is not None:
            self._process.wait()

    def _start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "clops_sweep.store.upkeep.background"],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
            )  # fmt: skip
            assert self._process.stdin is not None
            with self._process.stdin as told:  # a command line would show its password
                told.write(self._uri.encode())
        except OSError:  # no memory for a process, or it was killed: the next one continues
            return


def main() -> None:
    """Compact the store whose URI is read from standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the sweep
    os.nice(10)
    RunStore(sys.stdin.read()).compact_if_many()


if __name__ == "__main__":
    main()
