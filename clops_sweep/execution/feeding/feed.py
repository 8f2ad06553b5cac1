"""Job selection for grids: long runs first, jobs of many short runs, smaller ones near the end. Independent of Ray."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from math import inf
from typing import Protocol

from clops_sweep.execution.display.live import Display
from clops_sweep.execution.feeding.retries import Retries
from clops_sweep.execution.jobs import Job
from clops_sweep.execution.reports import Finished, Report, WorkerDied, ends
from clops_sweep.planning.costs import Costs, Kind, kind_of

_MOST_LOCKSTEPS = 64
"""Locksteps of a job at most: with runs of 10 ms, its start and end take a hundredth of the time."""

_FEWEST_AHEAD = 4  # on a cluster that has no machine yet

_JOBS_A_PLACE = 4
"""Jobs per place that should remain, so that the last workers end at about the same time."""


_Queue = Kind | tuple[str, ...]
"""A kind, or the run ids of a part that is computed alone."""


class Feed(Protocol):
    """Chooses the next job, and receives the progress of jobs.

    Attributes:
        error: the error that ended it early, such as a full disk; there are no more jobs then.
    """

    error: str | None

    @property
    def finished(self) -> bool:
        """Whether there are no more jobs and no job is running."""

    def next_job(self, places: int) -> Job | None:
        """Return the next job, for one of `places` concurrent jobs; None if no job is ready."""

    def report(self, job: Job, report: Report) -> None:
        """Handle a report of a part of a job."""

    def returned(self, job: Job) -> None:
        """Handle the end of a job; some of its parts may not have started."""

    def died(self, job: Job, death: WorkerDied) -> None:
        """Handle the death of a job's worker."""


class GridFeed:
    """Hands out locksteps, several of one kind per job: fewer as fewer remain.

    Jobs are formed on request. The kind that takes longest comes first, so that no long run is left at the end; a kind
    of which no run has finished counts as longer, one run per job. A queue holds a kind with all options: a job has
    fewer runs of it if they are known to take longer than its mean. Within a queue the order is kept, and parts that a
    worker returns or loses are queued at the end.

    Args:
        locksteps: the runs in order; each lockstep is a job of one part.
        retries: policy for runs whose worker died.
        display: shows the progress.
        may_grow: whether the cluster may grow with the number of waiting jobs: then as many jobs wait as there are
            places.
    """

    def __init__(
        self,
        locksteps: Sequence[Job],
        retries: Retries,
        display: Display,
        *,
        may_grow: bool = False,
    ) -> None:
        self._waiting: defaultdict[_Queue, deque[Job]] = defaultdict(deque)
        self._costs, self._left, self._may_grow = Costs(), 0, may_grow
        self._queue(locksteps)
        self._under_way: set[Job] = set()
        self._ended: set[Job] = set()
        self._retries, self._display = retries, display
        self.error: str | None = None

    @property
    def finished(self) -> bool:
        """Whether all jobs have ended, or no more are started and none is running."""
        return not self._under_way and (self.error is not None or not self._left)

    def next_job(self, places: int) -> Job | None:
        """Return the next locksteps as one job; None if all places are taken."""
        places = max(places, 1)
        out = places + max(places, _FEWEST_AHEAD) if self._may_grow else places
        if self.error is not None or not self._left or len(self._under_way) >= out:
            return None
        queue = max(filter(self._waiting.get, self._waiting), key=lambda queue: self._mean(queue) or inf)
        most = self._left // (_JOBS_A_PLACE * places) if self._mean(queue) else 1
        parts = self._next_parts(queue, min(max(most, 1), _MOST_LOCKSTEPS))
        self._left -= len(parts)
        job = Job.joined(parts)
        self._under_way.add(job)
        return job

    def report(self, job: Job, report: Report) -> None:
        """Handle a report of a part of a job."""
        if ends(report):
            self._ended.add(job)
        if isinstance(report, Finished) and report.seconds is not None:
            self._costs.add(kind_of(job.configs[0]), report.seconds)

    def returned(self, job: Job) -> None:
        """Handle the end of a job; parts that did not start are queued again."""
        self._queue(self._left_of(job))

    def died(self, job: Job, death: WorkerDied) -> None:
        """Handle the death of a job's worker.

        Reports of its last step are lost, so it is not known in which part it died: several parts are queued alone, and
        a part that is alone is retried or has failed.
        """
        left = self._left_of(job)
        found = self._retries.after_death(left[0], death) if len(left) == 1 else left
        if isinstance(found, list):
            for part in found:
                self._queue([part], part.run_ids)
        else:
            self._display.report(left[0], found)

    def _mean(self, queue: _Queue) -> float | None:
        """Return the mean seconds of a part in a queue; None before one has finished."""
        return self._costs.seconds(queue) if isinstance(queue, Kind) else None

    def _next_parts(self, queue: _Queue, most: int) -> list[Job]:
        """Take at most `most` parts from a queue, which together take no longer than `most` parts of its mean."""
        waiting = self._waiting[queue]
        left = (most + 0.5) * (self._mean(queue) or 0)  # half a part for rounding
        parts: list[Job] = []
        while waiting and len(parts) < most:
            left -= self._costs.guess(kind_of(waiting[0].configs[0])) or 0
            if parts and left < 0:
                break
            parts.append(waiting.popleft())
        return parts

    def _queue(self, parts: Sequence[Job], alone: tuple[str, ...] | None = None) -> None:
        self._left += len(parts)
        for part in parts:
            self._waiting[alone or kind_of(part.configs[0]).of_any_options].append(part)

    def _left_of(self, job: Job) -> list[Job]:
        """Return the parts of an ended job that were not reported as ended."""
        self._under_way.remove(job)
        parts = set(job.parts())
        left = [part for part in job.parts() if part not in self._ended]
        self._ended -= parts
        return left
