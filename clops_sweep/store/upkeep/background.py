"""Compaction beside a sweep: `python -m clops_sweep.store.upkeep.background`, which the driver starts now and then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from clops_sweep.store.compaction import FEW
from clops_sweep.store.run_store import RunStore


class BackgroundCompaction:
    """Compact the store of a running sweep, step by step, in a process of its own.

    The driver has to answer its workers at once, and must not hold what is in hand while it does so. If the driver is
    killed meanwhile, that process goes on to its end; if that process is killed, nothing is lost.

    Args:
        store: which one.
    """

    def __init__(self, store: RunStore) -> None:
        self._uri = store.uri
        self._process: subprocess.Popen[bytes] | None = None
        self._recorded = 0

    def recorded(self, runs: int) -> None:
        """So many more runs have parts of their own. Returns at once."""
        self._recorded += runs
        if self._recorded >= FEW and (self._process is None or self._process.poll() is not None):
            self._recorded = 0
            self._start()

    def __enter__(self) -> BackgroundCompaction:
        return self

    def __exit__(self, *error: object) -> None:
        """Wait until it has finished what it began: readers then find each run once."""
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
            with self._process.stdin as told:  # it may hold a password, which a command line would show to everybody
                told.write(self._uri.encode())
        except OSError:  # no memory for a process, or it has been killed: the next one does what is left
            return


def main() -> None:
    """Compacts the store whose URI standard input holds."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the user means the sweep
    os.nice(10)
    RunStore(sys.stdin.read()).compact_if_many()


if __name__ == "__main__":
    main()
