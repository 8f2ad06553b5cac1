"""Distribution of reports of jobs. Imports neither torch nor Ray."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from clops_sweep.errors import StoreError
from clops_sweep.execution.display.live import Display
from clops_sweep.execution.feeding.feed import Feed
from clops_sweep.execution.feeding.under_way import RunsUnderWay
from clops_sweep.execution.jobs import Job, Jobs
from clops_sweep.execution.observers.thread import Observers
from clops_sweep.execution.reports import Begun, Recorded, Report, Unrecorded, WorkerDied
from clops_sweep.experiment.events import Event
from clops_sweep.store.rows import storing
from clops_sweep.store.run_logs import EpochScores, log_folder, stacks_file
from clops_sweep.store.run_store import RunStore

_FAILURES_IN_A_ROW = 3  # then the store is broken, and further runs would be lost
_SECONDS_BETWEEN_TRIES = 4.0


class Relay:
    """Passes on what workers return: rows to the store, reports to display, feed and the file of runs under way.

    Attributes:
        observers: the observers; the loop of the sweep must call their `look` regularly.
        store_error: the error of writing to the store, set after it occurred several times in a row.
    """

    def __init__(
        self,
        store: RunStore,
        display: Display,
        feed: Feed,
        observers: Observers,
        under_way: RunsUnderWay,
    ) -> None:
        self._store, self._display, self._feed = store, display, feed
        self._under_way, self.observers = under_way, observers
        self.store_error: str | None = None
        self._failures, self._next_try = 0, 0.0

    def look(self) -> None:
        """Write rows that have waited long enough, and look after the observers; called several times a second."""
        self.observers.look()
        if time.monotonic() >= self._next_try:
            try:
                with storing(self._store):
                    self._store.flush_if_due()
                self._failures = 0
            except StoreError as error:
                self._failed(str(error))

    def _failed(self, error: str) -> None:
        self._failures += 1
        self._next_try = time.monotonic() + _SECONDS_BETWEEN_TRIES
        if self._failures == _FAILURES_IN_A_ROW:
            self.store_error = error

    def started(self, job: Job) -> None:
        """Record that a worker started a job."""
        self._display.started(job)
        self._under_way.started(job)

    def report(self, job: Job, report: Report | WorkerDied) -> None:
        """Show a report of a job."""
        self._display.report(job, report)
        self._under_way.report(job, report)

    def pass_on(
        self,
        jobs: Jobs,
        rows: Iterable[Recorded],
        reports: Sequence[tuple[int, Report | EpochScores]],
        events: Sequence[Event],
        begun: Callable[[Job], None],
    ) -> None:
        """Pass on a step of a worker.

        Args:
            jobs: the jobs of the worker.
            rows: the rows of runs that have finished or failed.
            reports: reports and scores, each with the index of a job.
            events: events for observers.
            begun: called with each job that the worker started.
        """
        for run_id, tables, checkpoint in rows:
            self._store.add(run_id, tables, checkpoint)
        self.observers.tell(events)
        for index, report in reports:
            match report:
                case Begun():
                    begun(jobs[index])
                    continue
                case EpochScores():
                    self._under_way.scored(jobs[index], report)
                    continue
                case Unrecorded():
                    report = self._as_seen_here(report)
                    self._failed(report.error)
            self.report(jobs[index], report)
            self._feed.report(jobs[index], report)

    def _as_seen_here(self, report: Unrecorded) -> Unrecorded:
        """Return the report; if the results folder is missing, that replaces its error."""
        try:
            with storing(self._store):
                return report
        except StoreError as error:
            return Unrecorded(str(error))

    def left_stacks(self, jobs: Jobs) -> bool:
        """Return whether the time limit of an epoch ended the worker of some jobs, as far as can be seen from here."""
        files = [stacks_file(log_folder(self._store), job.run_id) for job in jobs]
        return not self._store.files.local or any(file.exists() and file.stat().st_size for file in files)

    def check(self) -> None:
        """Raise a StoreError if one run after the other could not be recorded."""
        if self.store_error:
            raise StoreError(self.store_error)


RunFed = Callable[[Feed, Relay], None]
"""Runs the jobs of a feed, until there are no more, a batch is done, or the user interrupts it."""
