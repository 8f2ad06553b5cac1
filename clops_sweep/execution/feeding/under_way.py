"""Records running runs, their progress and their expected end, for other processes."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Self

from clops_sweep.execution.display.display_lines import called
from clops_sweep.execution.jobs import Job
from clops_sweep.execution.reports import Paused, Report, Resumed, Running, WorkerDied, ends
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.under_way import SECONDS_APART, UnderWay, UnderWayFile


class RunsUnderWay:
    """Follows the reports of a sweep while entered. A thread writes the file, so that no sweep waits for a slow disk.

    Args:
        store: the store that contains the file.
        shard: see `UnderWayFile`.
    """

    def __init__(self, store: RunStore, shard: str = "") -> None:
        self._file = UnderWayFile(store, shard)
        self._taken: set[str] = set()
        self._runs: dict[tuple[str, ...], UnderWay] = {}
        self._since: dict[tuple[str, ...], tuple[float, float]] = {}
        self._lock, self._changed, self._ended = threading.Lock(), threading.Event(), threading.Event()
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="runs under way", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._changed.set()
        self._thread.join(self._file.seconds)

    def elsewhere(self) -> frozenset[str]:
        """Return the runs that other launches on the store have taken."""
        return self._file.taken_elsewhere()

    def take(self, job: Job) -> None:
        """Tell other launches that a worker gets a job, so that they postpone its runs."""
        with self._lock:
            self._taken.update(job.run_ids)
        if self._file.is_local:  # remote stores are written by the thread, so that jobs do not wait for the network
            self._write()
        else:
            self._changed.set()

    def give_back(self, job: Job) -> None:
        """Release the runs of a job that has ended."""
        with self._lock:
            self._taken.difference_update(job.run_ids)

    def started(self, job: Job) -> None:
        """Record that a worker started a job."""
        with self._lock:
            self._runs[job.run_ids] = UnderWay(job.run_ids, called(job))
            self._since.pop(job.run_ids, None)

    def report(self, job: Job, report: Report | WorkerDied, now: float | None = None) -> None:
        """Record a report of a job. The time before its first report is ignored, because it includes imports."""
        now = time.time() if now is None else now
        with self._lock:
            known = self._runs.get(job.run_ids)
            if isinstance(report, WorkerDied | Paused) or (not isinstance(report, Running | Resumed) and ends(report)):
                self._runs.pop(job.run_ids, None)
                self._since.pop(job.run_ids, None)
            elif isinstance(report, Running | Resumed) and known is not None:
                epoch = report.epoch - isinstance(report, Resumed)
                done = ((report.task - 1) * report.epochs + epoch) / (report.tasks * report.epochs)
                before, share = self._since.setdefault(job.run_ids, (now, done))
                left = (now - before) * (1 - done) / (done - share) if done > share else None
                self._runs[job.run_ids] = replace(
                    known,
                    task=report.task,
                    tasks=report.tasks,
                    epoch=epoch,
                    epochs=report.epochs,
                    ends_at=0.0 if left is None else now + left,
                )

    def _write(self) -> None:
        with self._writing:
            with self._lock:
                runs, taken = list(self._runs.values()), sorted(self._taken)
            self._file.write(runs, taken)

    def _work(self) -> None:
        while True:
            self._changed.clear()
            self._write()
            self._changed.wait(self._file.seconds)
            if self._ended.wait(SECONDS_APART):
                break
        self._file.remove()
