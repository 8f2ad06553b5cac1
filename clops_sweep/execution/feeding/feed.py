"""Job selection for grids: long runs first, many short runs at once, fewer near the end. Independent of Ray."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from math import inf
from typing import Protocol

from clops_sweep.execution.display.live import Display
from clops_sweep.execution.feeding.retries import Retries
from clops_sweep.execution.jobs import Job, Jobs
from clops_sweep.execution.reports import Finished, Report, WorkerDied, ends
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

    Attributes:
        error: the error that ended it early, such as a full disk; there are no more jobs then.
    """

    error: str | None

    @property
    def finished(self) -> bool:
        """Whether there are no more jobs and no job is running."""

    def next_jobs(self, places: int) -> Jobs | None:
        """Return the next jobs for one of `places` concurrent workers; None if no job is ready."""

    def report(self, job: Job, report: Report) -> None:
        """Handle a report of a job."""

    def returned(self, jobs: Jobs) -> None:
        """Handle the end of a worker's jobs; some of them may not have started."""

    def died(self, jobs: Jobs, death: WorkerDied) -> None:
        """Handle the death of the worker of some jobs."""


class GridFeed:
    """Hands out jobs, several of one kind at a time: fewer as fewer remain.

    The kind that takes longest comes first, so that no long run is left at the end; a kind of which no run has finished
    counts as longer, one job at a time. A queue holds a kind with all options: a worker gets fewer jobs of it if they
    are known to take longer than its mean. Within a queue the order is kept, and jobs that a worker returns or loses
    are queued at the end.

    Args:
        jobs: the jobs in order.
        retries: policy for runs whose worker died.
        display: shows the progress.
        may_grow: whether the cluster may grow with the number of waiting trials: then as many trials wait as there are
            places.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        retries: Retries,
        display: Display,
        *,
        may_grow: bool = False,
    ) -> None:
        self._waiting: defaultdict[_Queue, deque[Job]] = defaultdict(deque)
        self._costs, self._left, self._may_grow = Costs(), 0, may_grow
        self._queue(jobs)
        self._under_way: set[Jobs] = set()
        self._ended: set[Job] = set()
        self._retries, self._display = retries, display
        self.error: str | None = None

    @property
    def finished(self) -> bool:
        """Whether all jobs have ended, or no more are started and none is running."""
        return not self._under_way and (self.error is not None or not self._left)

    def next_jobs(self, places: int) -> Jobs | None:
        """Return the next jobs; None if all places are taken."""
        places = max(places, 1)
        out = places + max(places, _FEWEST_AHEAD) if self._may_grow else places
        if self.error is not None or not self._left or len(self._under_way) >= out:
            return None
        queue = max(filter(self._waiting.get, self._waiting), key=lambda queue: self._mean(queue) or inf)
        most = self._left // (_TRIALS_A_PLACE * places) if self._mean(queue) else 1
        jobs = self._taken(queue, min(max(most, 1), _MOST_JOBS))
        self._left -= len(jobs)
        self._under_way.add(jobs)
        return jobs

    def report(self, job: Job, report: Report) -> None:
        """Handle a report of a job."""
        if ends(report):
            self._ended.add(job)
        if isinstance(report, Finished) and report.seconds is not None:
            self._costs.add(kind_of(job.config), report.seconds)

    def returned(self, jobs: Jobs) -> None:
        """Handle the end of a worker's jobs; those that did not start are queued again."""
        self._queue(self._left_of(jobs))

    def died(self, jobs: Jobs, death: WorkerDied) -> None:
        """Handle the death of the worker of some jobs.

        Reports of its last step are lost, so it is not known in which job it died: several are queued again, each
        without others, and a job that was the only one is retried or has failed.
        """
        left = self._left_of(jobs)
        failed = self._retries.after_death(left[0], death) if len(left) == 1 else None
        if failed is None:
            for job in left:
                self._queue([job], job.run_id)
        else:
            self._display.report(left[0], failed)

    def _mean(self, queue: _Queue) -> float | None:
        """Return the mean seconds of a job in a queue; None before one has finished."""
        return self._costs.seconds(queue) if isinstance(queue, Kind) else None

    def _taken(self, queue: _Queue, most: int) -> Jobs:
        """Take at most `most` jobs from a queue, which together take no longer than `most` jobs of its mean."""
        waiting = self._waiting[queue]
        left = (most + 0.5) * (self._mean(queue) or 0)  # half a job for rounding
        jobs: list[Job] = []
        while waiting and len(jobs) < most:
            left -= self._costs.guess(kind_of(waiting[0].config)) or 0
            if jobs and left < 0:
                break
            jobs.append(waiting.popleft())
        return tuple(jobs)

    def _queue(self, jobs: Sequence[Job], alone: str | None = None) -> None:
        self._left += len(jobs)
        for job in jobs:
            self._waiting[alone or kind_of(job.config).of_any_options].append(job)

    def _left_of(self, jobs: Jobs) -> list[Job]:
        """Return those of a worker's jobs that were not reported as ended."""
        self._under_way.remove(jobs)
        left = [job for job in jobs if job not in self._ended]
        self._ended -= set(jobs)
        return left
