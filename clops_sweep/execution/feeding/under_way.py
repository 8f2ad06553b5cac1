"""Records running runs, their progress and their expected end, for other processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from dataclasses import replace
from typing import Self

from clops_sweep.execution.display.display_lines import called
from clops_sweep.execution.jobs import Job
from clops_sweep.execution.reports import Paused, Report, Resumed, Running, WorkerDied, ends
from clops_sweep.store.launches import LaunchFile, UnderWay
from clops_sweep.store.run_store import RunStore


class RunsUnderWay:
    """Follows the reports of a sweep while entered. A thread writes the file, so that no sweep waits for a slow disk.

    Args:
        store: the store that contains the file.
        pending: the runs that no other launch may compute meanwhile.
    """

    def __init__(self, store: RunStore, pending: Collection[str]) -> None:
        self._file, self._pending = LaunchFile(store), pending
        self._runs: dict[str, UnderWay] = {}
        self._since: dict[str, tuple[float, float]] = {}
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="runs under way", daemon=True)

    def __enter__(self) -> Self:
        """Begin.

        Raises:
            UsageError: another launch computes some of the runs.
        """
        self._file.begin(self._pending)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join(self._file.seconds)

    def started(self, job: Job) -> None:
        """Record that a worker started a job."""
        with self._lock:
            self._runs[job.run_id] = UnderWay(job.run_id, called(job))
            self._since.pop(job.run_id, None)

    def report(self, job: Job, report: Report | WorkerDied, now: float | None = None) -> None:
        """Record a report of a job. The time before its first report is ignored, because it includes imports."""
        now = time.time() if now is None else now
        with self._lock:
            known = self._runs.get(job.run_id)
            if isinstance(report, WorkerDied | Paused) or (not isinstance(report, Running | Resumed) and ends(report)):
                self._runs.pop(job.run_id, None)
                self._since.pop(job.run_id, None)
            elif isinstance(report, Running | Resumed) and known is not None:
                epoch = report.epoch - isinstance(report, Resumed)
                done = ((report.task - 1) * report.epochs + epoch) / (report.tasks * report.epochs)
                before, share = self._since.setdefault(job.run_id, (now, done))
                left = (now - before) * (1 - done) / (done - share) if done > share else None
                self._runs[job.run_id] = replace(
                    known,
                    task=report.task,
                    tasks=report.tasks,
                    epoch=epoch,
                    epochs=report.epochs,
                    ends_at=0.0 if left is None else now + left,
                )

    def _work(self) -> None:
        ended = False
        while not ended:
            with self._lock:
                runs = list(self._runs.values())
            self._file.write(runs)
            ended = self._ended.wait(self._file.seconds)
        self._file.remove()
