"""Reports of jobs, from workers to store, display, feed and observers. Imports neither torch nor Ray."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from clops_sweep.errors import StoreError
from clops_sweep.execution.display.live import Display
from clops_sweep.execution.feeding.feed import Feed
from clops_sweep.execution.feeding.retries import Retries
from clops_sweep.execution.feeding.under_way import RunsUnderWay
from clops_sweep.execution.jobs import Job, Jobs
from clops_sweep.execution.observers.thread import Observers
from clops_sweep.execution.reports import (
    AttemptFailed,
    Begun,
    Computed,
    Finished,
    Observed,
    Paused,
    Report,
    Retrying,
    Running,
    RunReport,
    Scored,
    Unrecorded,
    WorkerReport,
)
from clops_sweep.store.rows import storing
from clops_sweep.store.run_logs import log_folder, stacks_file
from clops_sweep.store.run_store import RunStore

_FAILURES_IN_A_ROW = 3  # then the store is broken, and further runs would be lost
_SECONDS_BETWEEN_TRIES = 4.0


class Relay:
    """Passes on what workers report: rows to the store, events to observers, the rest to display and feed.

    It also asks the retry policy whether a job whose attempt failed gets another one.

    Args:
        store: the store.
        display: shows the progress.
        feed: chooses the jobs.
        observers: the observers.
        under_way: records the runs that are being computed.
        retries: the retry policy.

    Attributes:
        store_error: the error of writing to the store, set after several tries in a row failed, or after several runs
            in a row could not be recorded.
    """

    def __init__(
        self,
        store: RunStore,
        display: Display,
        feed: Feed,
        observers: Observers,
        under_way: RunsUnderWay,
        retries: Retries,
    ) -> None:
        self._store = store
        self._display = display
        self._feed = feed
        self._under_way = under_way
        self._retries = retries
        self._observers = observers
        self.store_error: str | None = None
        self.has_started = False
        """Whether a worker has started a job."""
        self._failed_tries = 0
        self._unrecorded = 0
        """Number of runs in a row that could not be recorded."""
        self._next_try = 0.0

    def look(self) -> None:
        """Write rows that have waited long enough, show how many wait, and look after the observers.

        It is called several times a second.
        """
        self._observers.look()
        if time.monotonic() >= self._next_try:
            try:
                with storing(self._store):
                    self._store.flush_if_due()
                self._failed_tries = 0
            except StoreError as error:
                self._failed_tries += 1
                self._next_try = time.monotonic() + _SECONDS_BETWEEN_TRIES
                if self._failed_tries == _FAILURES_IN_A_ROW:
                    self.store_error = str(error)
        self._display.not_stored(self._store.waiting_runs)

    def started(self, job: Job) -> None:
        """Record that a worker started a job."""
        self.has_started = True
        self._display.started(job)
        self._under_way.started(job)

    def returned(self, jobs: Jobs) -> None:
        """A worker is done with its jobs: those that have not ended are queued again, and no worker computes them."""
        for job in self._feed.unfinished(jobs):
            self._display.taken_back(job)
            self._under_way.taken_back(job)
        self._feed.returned(jobs)

    def pass_on(self, jobs: Jobs, reports: Sequence[tuple[int, WorkerReport]]) -> list[tuple[Job, Begun | Report]]:
        """Pass on the reports of a step of a worker.

        Args:
            jobs: the jobs of the worker.
            reports: its reports, each with the index of a job.

        Returns:
            What became of them: the jobs that began, and the reports that display and feed received.
        """
        passed_on: list[tuple[Job, Begun | Report]] = []
        for index, sent in reports:
            job = jobs[index]
            if isinstance(sent, Begun):
                self.started(job)
                passed_on.append((job, sent))
                continue
            report = self._received(job, sent)
            if report is not None:
                self._report(job, report)
                passed_on.append((job, report))
        return passed_on

    def _received(self, job: Job, sent: RunReport) -> Report | None:
        """Return what a worker's report means for display and feed; None for nothing."""
        match sent:
            case Observed(events):
                self._observers.tell(events)
                return None
            case Scored(scores):
                self._under_way.scored(job, scores)
                return None
            case Running() | Paused():
                return sent
            case Computed(tables, checkpoint, values, seconds):
                self._unrecorded = 0
                self._store.add(job.run_id, tables, checkpoint)
                return Finished(values, seconds)
            case AttemptFailed():
                return self._retries.after(job, sent)
            case Unrecorded():
                report = self._as_seen_here(sent)
                self._unrecorded += 1
                if self._unrecorded == _FAILURES_IN_A_ROW:
                    self.store_error = report.error
                return report

    def lost(self, jobs: Jobs, death: AttemptFailed) -> None:
        """Handle the death of the worker of some jobs.

        Reports of its last step are lost. If several jobs have not ended, it is not known in which one the worker died:
        none of them has failed, and each is computed again without the others.
        """
        unfinished = self._feed.unfinished(jobs)
        for job in unfinished:
            report = Retrying() if len(unfinished) > 1 else self._retries.after(job, death)
            self._report(job, report)
        self._feed.lost(jobs)

    def _report(self, job: Job, report: Report) -> None:
        self._display.report(job, report)
        self._under_way.report(job, report)
        self._feed.report(job, report)

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
"""Runs jobs of a feed. It may return before the feed is finished, and is then called again; see `driver.run_feeds`."""
