"""How much longer a sweep takes, from what its runs have taken so far. No torch, no Ray, no clock."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.declarations import Fields
from clops_sweep.planning.cost_model import Kind, Load, modelled, share_of_work, tasks_of
from clops_sweep.sweep.jobs import Job
from clops_sweep.sweep.reports import (
    Begun,
    Failed,
    Finished,
    FoundFinished,
    Noted,
    Paused,
    Report,
    Resumed,
    Retrying,
    Running,
    Unrecorded,
    WorkerDied,
)


@dataclass
class _UnderWay:
    """A job that a worker has: what it consists of, how much is done, when that was known, and if it is to count."""

    fields: Fields
    loads: tuple[Load, ...]
    done: float
    at: float
    counts: bool


class TimeLeft:
    """Adds up what workers do, in units of work (`cost_model`), in the time that they have their jobs for.

    A worker has its first job when it is there, so that the start of Ray and of workers counts for nothing; nor does
    the beginning of a first job, which takes longer than any other step. A unit of work takes what it has taken in runs
    of its kind, or in all where none of a kind has got anywhere yet. What is left goes on as many workers as there have
    been, and takes no less than the longest of the jobs under way.

    Moments are seconds of any clock.

    Args:
        configs: the runs that are to be done; of a search, as many as it may ask for, like its base config.
    """

    def __init__(self, configs: Iterable[RunConfig]) -> None:
        self._waiting = Counter(Load.of(config.model_dump(mode="json")) for config in configs)
        self._under_way: dict[tuple[str, ...], _UnderWay] = {}
        self._begun: dict[str, tuple[Load, float]] = {}
        self._seconds: defaultdict[Kind, float] = defaultdict(float)
        self._work: defaultdict[Kind, float] = defaultdict(float)
        self._over: set[str] = set()
        self._workers = 0

    def started(self, job: Job, now: float) -> None:
        """A worker has a job."""
        fields = [config.model_dump(mode="json") for config in job.configs]
        loads = tuple(map(Load.of, fields))
        for run_id, load in zip(job.run_ids, loads, strict=True):
            if run_id not in self._begun:
                self._take(load)
                self._begun[run_id] = load, 0.0
        done = self._begun[job.run_ids[0]][1]
        self._under_way[job.run_ids] = _UnderWay(fields[0], loads, done, now, counts=bool(self._over))
        self._workers = max(self._workers, len(self._under_way))

    def report(self, job: Job, report: Report | WorkerDied, now: float) -> None:
        """A job has reported."""
        it = self._under_way.get(job.run_ids)
        if it is None:  # found in the store, or given up after its worker had died
            self.left_out(job.run_ids if isinstance(report, FoundFinished | Failed) else ())
            return
        match report:
            case Resumed():
                it.done, it.at = _share(it.fields, report), now
            case Running():
                self._advance(it, _share(it.fields, report), now)
            case Paused():
                epochs = min(1.0, (job.until or 1) / tasks_of(it.fields))
                self._advance(it, share_of_work(it.fields, epochs), now)
            case Finished():
                self._advance(it, 1.0, now)
            case Begun() | Retrying() | Noted() | Failed() | FoundFinished() | Unrecorded() | WorkerDied():
                pass
        match report:
            case Begun() | Running() | Resumed() | Retrying() | Noted():
                return
            case Paused() | WorkerDied():  # more is to come of them
                self._begun |= {run_id: (load, it.done) for run_id, load in zip(job.run_ids, it.loads, strict=True)}
            case _:
                self.left_out(job.run_ids)
        del self._under_way[job.run_ids]

    def left_out(self, run_ids: Collection[str]) -> None:
        """Some runs are over, or will not be run."""
        for run_id in set(run_ids) - self._over:
            if self._begun.pop(run_id, None) is None:
                self._take(None)
            self._over.add(run_id)

    def seconds(self) -> float | None:
        """How much longer it takes; None while no run has got anywhere."""
        if not sum(self._work.values()):
            return None
        usual = sum(self._seconds.values()) / sum(self._work.values())
        kinds = {kind: self._seconds[kind] / work for kind, work in self._work.items() if work}

        def time(load: Load) -> float:
            return modelled(load.work) * kinds.get(load.kind, usual)

        jobs = [(1 - it.done) * sum(map(time, it.loads)) for it in self._under_way.values()]
        busy = {run_id for run_ids in self._under_way for run_id in run_ids}
        paused = sum((1 - done) * time(load) for run_id, (load, done) in self._begun.items() if run_id not in busy)
        waiting = sum(runs * time(load) for load, runs in self._waiting.items())
        return max([(sum(jobs) + paused + waiting) / self._workers, *jobs])

    def _advance(self, it: _UnderWay, done: float, now: float) -> None:
        if it.counts or done == 1:
            kind = it.loads[0].kind
            self._seconds[kind] += now - it.at
            self._work[kind] += max(0.0, done - it.done) * sum(modelled(load.work) for load in it.loads)
        it.done, it.at, it.counts = done, now, True

    def _take(self, load: Load | None) -> None:
        """One run less to be begun: of that load, or of any, where a search asks for others than its base config."""
        key = load if load in self._waiting else next(iter(self._waiting), None)
        if key is not None:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key]


def _share(fields: Fields, at: Running | Resumed) -> float:
    """How much of a run's work is done."""
    epochs = at.epoch - 1 if isinstance(at, Resumed) else at.epoch
    return share_of_work(fields, ((at.task - 1) * at.epochs + epochs) / (at.tasks * at.epochs))
