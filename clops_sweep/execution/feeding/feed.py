"""Which job comes next in a sweep over grids: as many runs as last a while, fewer near the end. Without Ray."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from clops_sweep.errors import StoreError, several
from clops_sweep.execution.display.live import Display
from clops_sweep.execution.feeding.retries import Retries
from clops_sweep.execution.feeding.under_way import RunsUnderWay
from clops_sweep.execution.jobs import Job
from clops_sweep.execution.reports import Finished, FoundFinished, Report, WorkerDied, ends
from clops_sweep.planning.costs import Costs, kind_of
from clops_sweep.store.rows import storing
from clops_sweep.store.run_store import RunStore

SECONDS = 30.0
"""What a job is to last, as far as that is known: a hundred times what its beginning and its end cost."""

_FEWEST_AHEAD = 4  # on a cluster that has started no machine yet

_JOBS_A_PLACE = 2
"""While so many jobs a place are left, no worker has more than its share: the last ones end at about the same time."""


class Feed(Protocol):
    """Chooses the next job, and receives the progress of jobs.

    Attributes:
        error: what ended it early, such as a full disk; there are no more jobs then.
    """

    error: str | None

    @property
    def finished(self) -> bool:
        """Whether there are no more jobs, and none is under way."""

    def next_job(self, places: int) -> Job | None:
        """The next job, for one of so many places where jobs can be under way; None if no job is ready."""

    def report(self, job: Job, report: Report) -> None:
        """A part of a job has reported."""

    def returned(self, job: Job) -> None:
        """A job has ended; its worker may not have begun with some of its parts."""

    def died(self, job: Job, death: WorkerDied) -> None:
        """A job's worker has died."""


class GridFeed:
    """Hands out locksteps in their order, as many at a time as last `SECONDS` by what others like them have taken.

    What has not been computed yet like nothing before is a job alone: that tells what it takes. So is what takes long.
    A job is only cut when it is asked for. What a worker returns or loses comes after all others, and so do runs that
    another launch on the store has taken.

    Args:
        locksteps: the runs in order; each lockstep is a job of one part.
        store: what is finished.
        retries: what becomes of runs whose worker has died.
        display: shows what becomes of them.
        may_grow: whether there may be more places by what is waiting for one: as many jobs as there are places wait.
        leases: the runs that launches have taken; None if this launch is alone.
    """

    def __init__(
        self,
        locksteps: Sequence[Job],
        store: RunStore,
        retries: Retries,
        display: Display,
        *,
        may_grow: bool = False,
        leases: RunsUnderWay | None = None,
    ) -> None:
        self._waiting, self._may_grow, self._leases = deque(locksteps), may_grow, leases
        self._has_said_waiting = False
        self._under_way: set[Job] = set()
        self._ended: set[Job] = set()
        self._store, self._retries, self._display = store, retries, display
        self._costs = Costs()
        self.error: str | None = None

    @property
    def finished(self) -> bool:
        """Whether all jobs have ended, or no more are started and none is running."""
        return not self._under_way and (self.error is not None or not self._waiting)

    def next_job(self, places: int) -> Job | None:
        """The next locksteps as one job; None if all places are taken, or nothing is waiting that others leave."""
        places = max(places, 1)
        out = places + max(places, _FEWEST_AHEAD) if self._may_grow else places
        if self.error is not None or not self._waiting or len(self._under_way) >= out:
            return None
        most = -(-len(self._waiting) // (_JOBS_A_PLACE * places))
        elsewhere = self._leases.elsewhere() if self._leases else frozenset()
        first = self._next_free(elsewhere)
        if first is None:
            self._say_waiting()
            return None
        parts = [first]
        seconds = self._seconds(parts[0])
        while self._waiting and len(parts) < most and seconds is not None:
            more = self._seconds(self._waiting[0])
            if more is None or seconds + more > SECONDS or not elsewhere.isdisjoint(self._waiting[0].run_ids):
                break
            parts.append(self._waiting.popleft())
            seconds += more
        job = Job.joined(parts)
        self._under_way.add(job)
        if self._leases:
            self._leases.take(job)
        return job

    def _next_free(self, elsewhere: frozenset[str]) -> Job | None:
        """The next lockstep that no other launch computes; those before it come after all others."""
        for _ in range(len(self._waiting)):
            part = self._waiting.popleft()
            if elsewhere.isdisjoint(part.run_ids):
                return part
            self._waiting.append(part)
        return None

    def _say_waiting(self) -> None:
        if not (self._under_way or self._has_said_waiting):
            self._has_said_waiting = True
            runs = sum(len(part.run_ids) for part in self._waiting)
            self._display.warn(f"waiting for {several(runs, 'run')} that another launch on this store computes")

    def report(self, job: Job, report: Report) -> None:
        """A part of a job has reported."""
        if isinstance(report, Finished) and report.seconds is not None:
            for config in job.configs:
                self._costs.add(kind_of(vars(config)), report.seconds / len(job.configs))
        if ends(report):
            self._ended.add(job)

    def returned(self, job: Job) -> None:
        """A job has ended: with what its worker has not begun another one goes on."""
        self._waiting.extend(self._left_of(job))

    def died(self, job: Job, death: WorkerDied) -> None:
        """A job's worker has died, in the first part that is not finished: the others have lost nothing."""
        parts = self._left_of(job)
        try:
            with storing(self._store):
                finished = self._store.finished([run_id for part in parts for run_id in part.run_ids])
            left = [part for part in parts if not finished.issuperset(part.run_ids)]
            for part in parts:
                if part not in left:  # it was recorded, and the worker had no time to say so
                    self._display.report(part, FoundFinished(elsewhere=False))
            if left:
                self._waiting.extend(self._after_death(left[0], death))
                self._waiting.extend(left[1:])
        except StoreError as error:
            self.error = str(error)

    def _seconds(self, lockstep: Job) -> float | None:
        """What the runs of a lockstep are expected to take together."""
        found = self._costs.seconds(kind_of(vars(lockstep.configs[0])))
        return None if found is None else found * len(lockstep.configs)

    def _left_of(self, job: Job) -> list[Job]:
        """The parts of an ended job that were not reported as ended."""
        self._under_way.remove(job)
        if self._leases:
            self._leases.give_back(job)
        parts = set(job.parts())
        left = [part for part in job.parts() if part not in self._ended]
        self._ended -= parts
        return left

    def _after_death(self, part: Job, death: WorkerDied) -> list[Job]:
        """The runs of a dead worker that are retried."""
        found = self._retries.after_death(part, death)
        if isinstance(found, list):
            return found
        self._display.report(part, found)
        return []
