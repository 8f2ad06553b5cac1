"""Job selection for grids: long runs first, many short runs at once, fewer near the end. Independent of Ray."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from math import inf
from typing import Protocol

from clops_sweep.execution.jobs import Job, Jobs, LeftOut
from clops_sweep.execution.reports import Finished, Report, ends
from clops_sweep.planning.costs import Costs, Kind, kind_of

_MOST_JOBS = 64
"""Jobs of a worker's trial at most: with runs of 10 ms, its start and end take a hundredth of the time."""

_FEWEST_AHEAD = 4  # on a cluster that has no machine yet

_TRIALS_A_PLACE = 4
"""Trials per place that should remain, so that the last workers end at about the same time."""


_Queue = Kind | str
"""A kind, or the id of a run that a worker gets without others."""


class Feed(Protocol):
    """Chooses the next jobs, and receives their progress.

    Of each tuple of jobs that `next_jobs` hands out, the driver first reports what happens to its jobs. Then it calls
    once, for the whole tuple, either `returned`, when the worker is done with them, or `lost`, when it has died. A job
    is queued again if it has not ended by then: its worker never began it, or an attempt failed and `Retries` allows
    another one, since `Retrying` does not end a job.

    Attributes:
        error: the error that ended it early, such as a journal that cannot be written to; there are no more jobs then.
    """

    error: str | None

    @property
    def left_out(self) -> Sequence[LeftOut]:
        """The runs that are over without the end of a job, so far: found finished, or of a trial that has ended."""

    @property
    def finished(self) -> bool:
        """Whether there are no more jobs and no job is running."""

    def next_jobs(self, places: int) -> Jobs | None:
        """Return the next jobs for one of `places` concurrent workers; None if no job is ready."""

    def report(self, job: Job, report: Report) -> None:
        """Handle a report of a job."""

    def unfinished(self, jobs: Jobs) -> Sequence[Job]:
        """Return those of a worker's jobs that were not reported as ended."""

    def returned(self, jobs: Jobs) -> None:
        """A worker is done with its jobs: queue those that have not ended."""

    def lost(self, jobs: Jobs) -> None:
        """A worker has died: queue those of its jobs that have not ended, one at a time."""


class GridFeed:
    """Hands out jobs, several of one kind at a time: fewer as fewer remain.

    The kind that takes longest comes first, so that no long run is left at the end; a kind of which no run has finished
    counts as longer, one job at a time. A queue holds a kind with all options: a worker gets fewer jobs of it if they
    are known to take longer than its mean. Within a queue the order is kept. A job that a worker returns is
    queued at the end; one that it loses gets a queue of its own, which comes first.

    Args:
        jobs: the jobs in order.
        may_grow: whether the cluster may grow with the number of waiting trials: then as many trials wait as there are
            places.
    """

    def __init__(self, jobs: Sequence[Job], *, may_grow: bool = False) -> None:
        self._queues: defaultdict[_Queue, deque[Job]] = defaultdict(deque)
        self._costs = Costs()
        self._queued_jobs = 0
        self._may_grow = may_grow
        self._queue(jobs)
        self._under_way: set[Jobs] = set()
        self._ended: set[Job] = set()
        self.error: str | None = None
        """Always None: nothing ends a grid early."""
        self.left_out: Sequence[LeftOut] = ()
        """Always empty: each run of a grid has a job that ends."""

    @property
    def finished(self) -> bool:
        """Whether all jobs have ended."""
        return not self._under_way and not self._queued_jobs

    def next_jobs(self, places: int) -> Jobs | None:
        """Return the next jobs; None if all places are taken."""
        places = max(places, 1)
        most_under_way = places
        if self._may_grow:
            most_under_way += max(places, _FEWEST_AHEAD)
        if not self._queued_jobs or len(self._under_way) >= most_under_way:
            return None
        queue = max(filter(self._queues.get, self._queues), key=lambda queue: self._mean(queue) or inf)
        most = self._queued_jobs // (_TRIALS_A_PLACE * places) if self._mean(queue) else 1
        jobs = self._taken(queue, min(max(most, 1), _MOST_JOBS))
        self._queued_jobs -= len(jobs)
        self._under_way.add(jobs)
        return jobs

    def report(self, job: Job, report: Report) -> None:
        """Handle a report of a job."""
        if ends(report):
            self._ended.add(job)
        if isinstance(report, Finished) and report.seconds is not None:
            self._costs.add(kind_of(job.config), report.seconds)

    def unfinished(self, jobs: Jobs) -> list[Job]:
        """Return those of a worker's jobs that were not reported as ended."""
        return [job for job in jobs if job not in self._ended]

    def returned(self, jobs: Jobs) -> None:
        """Queue those of a worker's jobs that it never began, or of which an attempt failed."""
        self._queue(self._forget(jobs))

    def lost(self, jobs: Jobs) -> None:
        """Queue those of a dead worker's jobs that have not ended, each without others."""
        for job in self._forget(jobs):
            self._queue([job], job.run_id)

    def _mean(self, queue: _Queue) -> float | None:
        """Return the mean seconds of a job in a queue; None before one has finished."""
        return self._costs.seconds(queue) if isinstance(queue, Kind) else None

    def _taken(self, queue: _Queue, most: int) -> Jobs:
        """Take at most `most` jobs from a queue, which together take no longer than `most` jobs of its mean."""
        queued = self._queues[queue]
        seconds = (most + 0.5) * (self._mean(queue) or 0)  # half a job for rounding
        jobs: list[Job] = []
        while queued and len(jobs) < most:
            seconds -= self._costs.guess(kind_of(queued[0].config)) or 0
            if jobs and seconds < 0:
                break
            jobs.append(queued.popleft())
        return tuple(jobs)

    def _queue(self, jobs: Sequence[Job], alone: str | None = None) -> None:
        self._queued_jobs += len(jobs)
        for job in jobs:
            self._queues[alone or kind_of(job.config).of_any_options].append(job)

    def _forget(self, jobs: Jobs) -> list[Job]:
        """Forget a worker's jobs, and return those that have not ended."""
        unfinished = self.unfinished(jobs)
        self._under_way.remove(jobs)
        self._ended -= set(jobs)
        return unfinished
