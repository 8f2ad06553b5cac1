"""Remaining time of a sweep, estimated from its runs so far. Imports neither torch nor Ray, and reads no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from clops_sweep.execution.jobs import Job
from clops_sweep.execution.reports import (
    Failed,
    Finished,
    FoundFinished,
    Paused,
    Report,
    Resumed,
    Running,
    WorkerDied,
    ends,
)
from clops_sweep.experiment.config import RunConfig
from clops_sweep.planning.costs import Costs, Kind, kind_of


@dataclass
class _UnderWay:
    """A running job: the share of its epochs done, when that was reported, and whether to time its next step."""

    kinds: list[Kind]
    done: float
    since: float
    timed: bool


class TimeLeft:
    """Expected seconds of the remaining runs (`Costs`), divided among the workers seen so far.

    Epochs are timed as workers report them. The first step of a worker's first job is not timed: it includes imports
    and the opening of the data. Moments are seconds of any clock.

    Args:
        configs: the runs to do; for a search, its base config once for each run that it may ask for.
    """

    def __init__(self, configs: Iterable[RunConfig]) -> None:
        self._waiting = Counter(kind_of(vars(config)) for config in configs)
        self._begun: dict[str, tuple[Kind, float]] = {}
        self._under_way: dict[tuple[str, ...], _UnderWay] = {}
        self._over: set[str] = set()
        self._costs = Costs()
        self._workers = 0

    def started(self, job: Job, now: float) -> None:
        """Record that a worker started a job."""
        kinds = [kind_of(vars(config)) for config in job.configs]
        for run_id, kind in zip(job.run_ids, kinds, strict=True):
            if run_id not in self._begun:
                self._take(kind)
                self._begun[run_id] = kind, 0.0
        self._under_way[job.run_ids] = _UnderWay(kinds, self._begun[job.run_ids[0]][1], now, timed=bool(self._over))
        self._workers = max(self._workers, len(self._under_way))

    def report(self, job: Job, report: Report | WorkerDied, now: float) -> None:
        """Record a report of a job."""
        it = self._under_way.get(job.run_ids)
        if it is None:  # found in the store, or given up after the death of its worker
            self.left_out(job.run_ids if isinstance(report, FoundFinished | Failed) else ())
            return
        match report:
            case Resumed():
                it.done, it.since = _share(report, report.epoch - 1), now
            case Running():
                self._advance(it, _share(report, report.epoch), now)
            case Paused():
                done = (job.until or 1) * job.configs[0].epochs_per_task / it.kinds[0].epochs
                self._advance(it, min(1.0, done), now)
            case Finished():
                self._advance(it, 1.0, now)
            case _:
                pass
        if isinstance(report, Paused | WorkerDied):  # these runs will be retried
            self._begun |= {run_id: (kind, it.done) for run_id, kind in zip(job.run_ids, it.kinds, strict=True)}
        elif not ends(report):
            return
        else:
            self.left_out(job.run_ids)
        del self._under_way[job.run_ids]

    def left_out(self, run_ids: Collection[str]) -> None:
        """Remove runs that are over or will not be run."""
        for run_id in set(run_ids) - self._over:
            if self._begun.pop(run_id, None) is None:
                self._take(None)
            self._over.add(run_id)

    def seconds(self) -> float | None:
        """Return the expected seconds until the end; None until an epoch has been timed."""
        jobs = [(1 - it.done) * sum(map(self._expected, it.kinds)) for it in self._under_way.values()]
        busy = {run_id for run_ids in self._under_way for run_id in run_ids}
        rest = sum((1 - done) * self._expected(it) for run_id, (it, done) in self._begun.items() if run_id not in busy)
        rest += sum(runs * self._expected(kind) for kind, runs in self._waiting.items())
        total = max([(sum(jobs) + rest) / max(1, self._workers), *jobs])
        return None if total != total else total

    def _expected(self, kind: Kind) -> float:
        found = self._costs.seconds(kind, any_kind=True)
        return float("nan") if found is None else found

    def _advance(self, it: _UnderWay, done: float, now: float) -> None:
        if it.timed or done == 1:
            for kind in it.kinds:
                self._costs.add(kind, (now - it.since) / len(it.kinds), max(0.0, done - it.done))
        it.done, it.since, it.timed = done, now, True

    def _take(self, kind: Kind | None) -> None:
        """Remove a waiting run: this one, or any one if a search requests other configs than its base."""
        key = kind if kind in self._waiting else next(iter(self._waiting), None)
        if key is not None:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key]


def _share(at: Running | Resumed, epochs: int) -> float:
    """Return the share of a run's epochs that is done."""
    return ((at.task - 1) * at.epochs + epochs) / (at.tasks * at.epochs)
