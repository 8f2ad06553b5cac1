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
from clops_sweep.execution.reports import Begun, Report, Resumed, Retrying, Running, WorkerDied
from clops_sweep.experiment.events import Place
from clops_sweep.store.launches import LaunchFile, UnderWay
from clops_sweep.store.run_logs import EpochScores, ScoresFile
from clops_sweep.store.run_store import RunStore


class RunsUnderWay:
    """Follows the reports of a sweep while entered. A thread writes the file, so that no sweep waits for a slow disk.

    Args:
        store: the store that contains the file.
        pending: the runs that no other launch may compute meanwhile.
        log: the log of the launch; scores of epochs go to a file beside it.
    """

    def __init__(self, store: RunStore, pending: Collection[str], log: Path) -> None:
        self._file, self._pending = LaunchFile(store), pending
        self._scores_file = ScoresFile(log)
        self._scores: list[tuple[str, EpochScores]] = []
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

    def scored(self, job: Job, scores: EpochScores) -> None:
        """Record the scores of a job after an epoch."""
        with self._lock:
            self._scores.append((job.run_id, scores))

    def report(self, job: Job, report: Report | WorkerDied, now: float | None = None) -> None:
        """Record a report of a job. The time before its first report is ignored, because it includes imports."""
        now = time.time() if now is None else now
        with self._lock:
            match report:
                case Running(place):
                    self._came_to(job, place, place.epoch, now)
                case Resumed(place):
                    self._came_to(job, place, place.epoch - 1, now)
                case Begun() | Retrying():
                    pass
                case _:
                    self._runs.pop(job.run_id, None)
                    self._since.pop(job.run_id, None)

    def _came_to(self, job: Job, place: Place, epoch: int, now: float) -> None:
        """Record that a job has finished an epoch of its task, and expect its end anew."""
        if job.run_id not in self._runs:
            return
        done = ((place.task - 1) * place.epochs + epoch) / (place.tasks * place.epochs)
        before, share = self._since.setdefault(job.run_id, (now, done))
        ends_at = 0.0
        if done > share:
            ends_at = now + (now - before) * (1 - done) / (done - share)
        self._runs[job.run_id] = replace(
            self._runs[job.run_id],
            task=place.task,
            tasks=place.tasks,
            epoch=epoch,
            epochs=place.epochs,
            ends_at=ends_at,
        )

    def _work(self) -> None:
        ended = False
        while not ended:
            with self._lock:
                runs = list(self._runs.values())
            self._file.write(runs)
            self._write_scores()
            ended = self._ended.wait(self._file.seconds)
        self._write_scores()
        self._file.remove()

    def _write_scores(self) -> None:
        with self._lock:
            scores = self._scores
            self._scores = []
        self._scores_file.add(scores)
