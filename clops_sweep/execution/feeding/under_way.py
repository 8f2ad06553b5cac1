"""Records running runs, their progress and their expected end, for other processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Self

from clops_sweep.execution.display.display_lines import called
from clops_sweep.execution.jobs import Job
from clops_sweep.execution.reports import Report, Running
from clops_sweep.experiment.events import Progress
from clops_sweep.store.launches import LaunchFile, UnderWay, request_id
from clops_sweep.store.run_logs import EpochScores, ScoresFile
from clops_sweep.store.run_store import RunStore


class RunsUnderWay:
    """Follows the reports of a sweep while entered. A thread writes the file, so that no sweep waits for a slow disk.

    Args:
        store: the store that contains the file.
        reserved: the runs that no other launch may compute meanwhile.
        log: the log of the launch; scores of epochs go to a file beside it.
    """

    def __init__(self, store: RunStore, reserved: Collection[str], log: Path) -> None:
        self._file = LaunchFile(store)
        self._reserved = reserved
        self._scores_file = ScoresFile(log)
        self._scores: list[tuple[str, EpochScores]] = []
        self._runs: dict[str, UnderWay] = {}
        self._since: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="runs under way", daemon=True)

    def __enter__(self) -> Self:
        """Begin.

        Raises:
            UsageError: another launch computes some of the runs.
        """
        self._file.begin(self._reserved)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join(self._file.seconds)

    def started(self, job: Job) -> None:
        """Record that a worker started a job."""
        with self._lock:
            self._runs[job.run_id] = UnderWay(job.run_id, called(job), request=request_id(job.config))
            self._since.pop(job.run_id, None)

    def taken_back(self, job: Job) -> None:
        """Record that a worker gave a job back before its end; it is queued again."""
        with self._lock:
            self._forget(job)

    def scored(self, job: Job, scores: EpochScores) -> None:
        """Record the scores of a job after an epoch."""
        with self._lock:
            self._scores.append((job.run_id, scores))

    def report(self, job: Job, report: Report, now: float | None = None) -> None:
        """Record a report of a job. The time before its first report is ignored, because it includes imports."""
        now = time.time() if now is None else now
        with self._lock:
            if isinstance(report, Running):
                self._advanced(job, report.progress, now)
            else:
                self._forget(job)

    def _forget(self, job: Job) -> None:
        self._runs.pop(job.run_id, None)
        self._since.pop(job.run_id, None)

    def _advanced(self, job: Job, progress: Progress, now: float) -> None:
        """Record the progress of a job, and expect its end anew."""
        if job.run_id not in self._runs:
            return
        done = progress.share
        before, share = self._since.setdefault(job.run_id, (now, done))
        ends_at = 0.0
        if done > share:
            ends_at = now + (now - before) * (1 - done) / (done - share)
        self._runs[job.run_id] = replace(self._runs[job.run_id], progress=progress, ends_at=ends_at)

    def write(self) -> None:
        """Write what is known now; the thread does so every few seconds."""
        with self._lock:
            runs = list(self._runs.values())
        self._file.write(runs)
        self._write_scores()

    def _work(self) -> None:
        ended = False
        while not ended:
            self.write()
            ended = self._ended.wait(self._file.seconds)
        self._write_scores()
        self._file.remove()

    def _write_scores(self) -> None:
        with self._lock:
            scores = self._scores
            self._scores = []
        self._scores_file.add(scores)
