"""Which runs become a job, against workers that take their time by a clock of their own and compute nothing."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from clops_sweep import RunConfig
from clops_sweep.execution.feeding.feed import GridFeed
from clops_sweep.execution.feeding.retries import Retries
from clops_sweep.execution.jobs import Job
from clops_sweep.execution.reports import Failed, Finished, Report, WorkerDied
from clops_sweep.store.run_store import RunStore


@dataclass
class Said:
    """What a display was told of runs, by the first of each lockstep."""

    reports: list[tuple[str, Report | WorkerDied]] = field(default_factory=list)

    warnings: list[str] = field(default_factory=list)

    def report(self, job: Job, report: Report | WorkerDied) -> None:
        self.reports.append((job.run_ids[0], report))

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def lockstep(number: int, runs: int = 1, **settings: Any) -> Job:
    seeds = range(number * runs, (number + 1) * runs)
    return Job(
        tuple(RunConfig(seed=seed, **settings) for seed in seeds), tuple(f"{seed:024x}" for seed in seeds), None, ()
    )


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    return store


def feed_of(locksteps: Sequence[Job], store: RunStore, **options: Any) -> tuple[GridFeed, Said]:
    said: Any = Said()
    retries = Retries(store, 1, lambda config: "generated0001", {})
    return GridFeed(locksteps, retries, said, **options), said


@dataclass
class Worked:
    """What workers have done: jobs in the order of their ends, and seconds for which each had one."""

    jobs: list[Job]
    busy: list[float]
    end: float


def work(feed: GridFeed, workers: int, seconds: Callable[[Job], float], most: float = 60.0) -> Worked:
    """Workers that have nothing to do but to take their time: each gets a job when it is free."""
    free = [(0.0, worker) for worker in range(workers)]
    running: list[tuple[float, int, int, Job, list[Job]]] = []
    worked, number = Worked([], [0.0] * workers, 0.0), itertools.count()
    while not feed.finished:
        while free and (job := feed.next_job(workers)) is not None:
            since, worker = heapq.heappop(free)
            done, lasted = [], 0.0
            for part in job.parts():
                if lasted > most:
                    break
                done.append(part)
                lasted += seconds(part)
            worked.busy[worker] += lasted
            heapq.heappush(running, (since + lasted, next(number), worker, job, done))
        worked.end, _, worker, job, done = heapq.heappop(running)
        for part in done:
            feed.report(part, Finished({"auc": (0.8,)}, seconds(part)))
        feed.returned(job)
        worked.jobs.append(job)
        heapq.heappush(free, (worked.end, worker))
        free = [(max(since, worked.end), one) for since, one in free]
    return worked


@pytest.mark.parametrize("each", [0.01, 1.0, 7.0])
def test_jobs_become_smaller_and_all_workers_end_together(store: RunStore, each: float) -> None:
    runs, workers = 2_000, 8
    feed, _ = feed_of([lockstep(number) for number in range(runs)], store)
    worked = work(feed, workers, lambda job: each)
    done = {run_id for job in worked.jobs for run_id in job.run_ids}
    assert done == {f"{number:024x}" for number in range(runs)}
    assert sum(worked.busy) == pytest.approx(runs * each)
    sizes = [len(job.run_ids) for job in worked.jobs]
    assert max(sizes) == runs // (4 * workers)
    assert sizes[-workers:] == [1] * workers
    assert sum(worked.busy) > 0.99 * workers * worked.end


def test_long_runs_are_not_left_to_the_end(store: RunStore) -> None:
    short = [lockstep(number) for number in range(60)]
    long = [lockstep(number, epochs_per_task=100) for number in range(60, 65)]
    feed, _ = feed_of([*short, *long], store)
    worked = work(feed, 4, lambda job: 20.0 if job.configs[0].epochs_per_task == 100 else 1.0)
    assert worked.end < 45.0  # 40 s at least; 55 s in the order of the plan


def test_a_job_has_fewer_of_the_runs_that_are_known_to_take_longer(store: RunStore) -> None:
    """Runs that differ in an option that decides the cost share a queue, in the order of the plan."""
    samples = [1, 200, *[200] * 50, *[1] * 50]
    feed, _ = feed_of([lockstep(number, mc_samples=it) for number, it in enumerate(samples)], store)
    for seconds in (0.1, 20.0):
        job = feed.next_job(2)
        feed.report(job, Finished({"auc": (0.8,)}, seconds))
        feed.returned(job)
    job = feed.next_job(2)  # at most an eighth of the 100 that are left, whose mean is 10.05 s
    assert [it.mc_samples for it in job.configs] == [200] * 6


def test_stacks_stay_together_and_no_more_jobs_are_out_than_there_are_places(store: RunStore) -> None:
    feed, _ = feed_of([lockstep(number, runs=5) for number in range(40)], store)
    (first, second) = feed.next_job(2), feed.next_job(2)
    assert second is not None
    assert feed.next_job(2) is None
    for part in first.parts():
        feed.report(part, Finished({"auc": (0.8,) * 5}, 2.0))
    feed.returned(first)
    job = feed.next_job(2)
    assert [len(part.run_ids) for part in job.parts()] == [5] * 4  # an eighth of the 38 that are left
    assert [part.configs[0].seed for part in job.parts()] == list(range(10, 30, 5))
    growing, _ = feed_of([lockstep(number) for number in range(40)], store, may_grow=True)
    assert [sum(growing.next_job(places) is not None for _ in range(20)) for places in (0, 2, 6)] == [5, 1, 6]


def test_a_run_that_kills_its_worker_fails_and_no_other_of_its_job(store: RunStore) -> None:
    """Reports of the last step are lost with the worker, so it is not known which run it was in."""
    runs = [lockstep(number) for number in range(40)]
    bad = runs[5]
    feed, said = feed_of(runs, store)
    deaths, sizes, done = 0, [], set[str]()
    while (job := feed.next_job(1)) is not None:
        if bad in job.parts():
            deaths += 1
            sizes.append(len(job.parts()))
            feed.died(job, WorkerDied("killed"))
            continue
        for part in job.parts():
            feed.report(part, Finished({"auc": (0.8,)}, 1.0))
            done |= set(part.run_ids)
        feed.returned(job)
    assert deaths == 3
    assert sizes == [9, 1, 1]
    assert said.reports == [(bad.run_ids[0], Failed(bad.run_ids))]
    assert store.statuses() == {bad.run_ids[0]: "failed"}
    assert done == {run_id for part in runs for run_id in part.run_ids} - set(bad.run_ids)


@pytest.mark.parametrize("timed_out", [False, True])
def test_a_lockstep_that_kills_its_worker_is_halved_until_the_run_at_fault_is_alone(
    store: RunStore, timed_out: bool
) -> None:
    job = lockstep(0, runs=5)
    bad = job.run_ids[3]
    feed, said = feed_of([job], store)
    deaths, done = 0, set[str]()
    while (part := feed.next_job(1)) is not None:
        if bad in part.run_ids:
            deaths += 1
            feed.died(part, WorkerDied("killed", timed_out))
        else:
            feed.report(part, Finished({"auc": (0.8,) * len(part.run_ids)}, 1.0))
            feed.returned(part)
            done |= set(part.run_ids)
    assert said.reports == [(bad, Failed((bad,)))]
    assert done == set(job.run_ids) - {bad}
    assert deaths == (4 if timed_out else 5)  # of 5, 3, 2 and 1 runs; the lockstep is tried once more
