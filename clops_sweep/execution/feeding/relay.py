"""Distribution of reports of jobs. Imports neither torch nor Ray."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clops_sweep.errors import StoreError
from clops_sweep.execution.display.live import Display
from clops_sweep.execution.feeding.feed import Feed
from clops_sweep.execution.feeding.under_way import RunsUnderWay
from clops_sweep.execution.jobs import Job
from clops_sweep.execution.observers.thread import Observers
from clops_sweep.execution.reports import Begun, Failed, Finished, FoundFinished, Paused, Report, Unrecorded, WorkerDied
from clops_sweep.experiment.events import Event
from clops_sweep.store.rows import storing
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.upkeep.background import BackgroundCompaction

_UNRECORDED_IN_A_ROW = 3  # then the store is broken, and further runs would be lost


class Relay:
    """Passes reports on to display, feed, compaction, observers and the file of runs under way.

    Attributes:
        observers: the observers; the loop of the sweep must call their `look` regularly.
        store_error: the error of recording runs, set after it occurred for several runs in a row.
    """

    def __init__(
        self,
        store: RunStore,
        display: Display,
        feed: Feed,
        compaction: BackgroundCompaction,
        observers: Observers,
        under_way: RunsUnderWay,
    ) -> None:
        self._store, self._display, self._feed, self._compaction = store, display, feed, compaction
        self._under_way, self.observers = under_way, observers
        self.store_error: str | None = None
        self._unrecorded = 0

    def started(self, part: Job) -> None:
        """Record that a worker started a part of a job."""
        self._display.started(part)
        self._under_way.started(part)

    def report(self, part: Job, report: Report | WorkerDied) -> None:
        """Show a report of a part."""
        self._display.report(part, report)
        self._under_way.report(part, report)

    def pass_on(
        self,
        parts: Sequence[Job],
        reports: Sequence[tuple[int, Report]],
        events: Sequence[Event],
        begun: Callable[[Job], None],
    ) -> None:
        """Pass on a step of a job.

        Args:
            parts: the parts of the job.
            reports: reports, each with the index of a part.
            events: events for observers.
            begun: called with each part that the worker started.
        """
        self.observers.tell(events)
        for index, report in reports:
            match report:
                case Begun():
                    begun(parts[index])
                    continue
                case Unrecorded():
                    report = self._as_seen_here(report)
                    self._unrecorded += 1
                    if self._unrecorded == _UNRECORDED_IN_A_ROW:
                        self.store_error = report.error
                case Finished() | Failed() | FoundFinished() | Paused():
                    self._unrecorded = 0
            self.report(parts[index], report)
            self._feed.report(parts[index], report)
            if isinstance(report, Finished):
                self._compaction.recorded(len(parts[index].run_ids))

    def _as_seen_here(self, report: Unrecorded) -> Unrecorded:
        """Return the report; if the results folder is missing, that replaces its error."""
        try:
            with storing(self._store):
                return report
        except StoreError as error:
            return Unrecorded(str(error))

    def check(self) -> None:
        """Raise a StoreError if one run after the other could not be recorded."""
        if self.store_error:
            raise StoreError(self.store_error)


RunFed = Callable[[Feed, Relay], None]
"""Runs the jobs of a feed, until there are no more, a batch is done, or the user interrupts it."""
