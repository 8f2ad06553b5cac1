"""Which runs a worker gets, against workers that take their time by a clock of their own and compute nothing."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from clops_sweep import RunConfig
from clops_sweep.execution.feeding.feed import GridFeed
from clops_sweep.execution.feeding.retries import Retries
from clops_sweep.execution.jobs import Job, Jobs
from clops_sweep.execution.reports import (
    AttemptFailed,
    Begun,
    Computed,
    Failed,
    Finished,
    Report,
    Retrying,
    Unrecorded,
    WorkerReport,
)
from clops_sweep.store.run_store import RunStore
from tests.helpers.relays import relay_of


@dataclass
class Said:
    """What a display was told of runs, by id."""

    reports: list[tuple[str, Report]] = field(default_factory=list)

    warnings: list[str] = field(default_factory=list)

    def report(self, job: Job, report: Report) -> None:
        self.reports.append((job.run_id, report))

    def started(self, job: Job) -> None: ...
    def taken_back(self, job: Job) -> None: ...
    def not_stored(self, runs: int) -> None: ...

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def run(seed: int, **settings: Any) -> Job:
    return Job(f"{seed:024x}", RunConfig(seed=seed, **settings))


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    return store


@dataclass
class Worked:
    """What workers have done: jobs in the order of their ends, and seconds for which each had some."""

    jobs: list[Jobs]
    busy: list[float]
    end: float


def work(feed: GridFeed, workers: int, seconds: Callable[[Job], float], most: float = 60.0) -> Worked:
    """Workers that have nothing to do but to take their time: each gets jobs when it is free."""
    free = [(0.0, worker) for worker in range(workers)]
    running: list[tuple[float, int, int, Jobs, list[Job]]] = []
    worked, number = Worked([], [0.0] * workers, 0.0), itertools.count()
    while not feed.finished:
        while free and (jobs := feed.next_jobs(workers)) is not None:
            since, worker = heapq.heappop(free)
            done, lasted = [], 0.0
            for job in jobs:
                if lasted > most:
                    break
                done.append(job)
                lasted += seconds(job)
            worked.busy[worker] += lasted
            heapq.heappush(running, (since + lasted, next(number), worker, jobs, done))
        worked.end, _, worker, jobs, done = heapq.heappop(running)
        for job in done:
            feed.report(job, Finished({"auc": 0.8}, seconds(job)))
        feed.returned(jobs)
        worked.jobs.append(jobs)
        heapq.heappush(free, (worked.end, worker))
        free = [(max(since, worked.end), one) for since, one in free]
    return worked


@pytest.mark.parametrize("each", [0.01, 1.0, 7.0])
def test_jobs_become_smaller_and_all_workers_end_together(each: float) -> None:
    runs, workers = 2_000, 8
    feed = GridFeed([run(number) for number in range(runs)])
    worked = work(feed, workers, lambda job: each)
    done = {job.run_id for jobs in worked.jobs for job in jobs}
    assert done == {f"{number:024x}" for number in range(runs)}
    assert sum(worked.busy) == pytest.approx(runs * each)
    sizes = list(map(len, worked.jobs))
    assert max(sizes) == runs // (4 * workers)
    assert sizes[-workers:] == [1] * workers
    assert sum(worked.busy) > 0.99 * workers * worked.end


def test_long_runs_are_not_left_to_the_end() -> None:
    short = [run(number) for number in range(60)]
    long = [run(number, epochs_per_task=100) for number in range(60, 65)]
    feed = GridFeed([*short, *long])
    worked = work(feed, 4, lambda job: 20.0 if job.config.epochs_per_task == 100 else 1.0)
    assert worked.end < 45.0  # 40 s at least; 55 s in the order of the plan


def test_a_worker_gets_fewer_of_the_runs_that_are_known_to_take_longer() -> None:
    """Runs that differ in an option that decides the cost share a queue, in the order of the plan."""
    samples = [1, 200, *[200] * 50, *[1] * 50]
    feed = GridFeed([run(number, mc_samples=count) for number, count in enumerate(samples)])
    for seconds in (0.1, 20.0):
        jobs = feed.next_jobs(2)
        feed.report(jobs[0], Finished({"auc": 0.8}, seconds))
        feed.returned(jobs)
    jobs = feed.next_jobs(2)  # at most an eighth of the 100 that are left, whose mean is 10.05 s
    assert [job.config.mc_samples for job in jobs] == [200] * 6


def test_no_more_trials_are_out_than_there_are_places() -> None:
    feed = GridFeed([run(number) for number in range(40)])
    (first, second) = feed.next_jobs(2), feed.next_jobs(2)
    assert second is not None
    assert feed.next_jobs(2) is None
    for job in first:
        feed.report(job, Finished({"auc": 0.8}, 2.0))
    feed.returned(first)
    jobs = feed.next_jobs(2)
    assert [job.config.seed for job in jobs] == [2, 3, 4, 5]  # an eighth of the 38 that are left
    growing = GridFeed([run(number) for number in range(40)], may_grow=True)
    assert [sum(growing.next_jobs(places) is not None for _ in range(20)) for places in (0, 2, 6)] == [5, 1, 6]


def test_a_run_that_kills_its_worker_fails_and_no_other_of_its_job(store: RunStore) -> None:
    """Reports of the last step are lost with the worker, so it is not known which run it was in."""
    runs = [run(number) for number in range(40)]
    bad = runs[5]
    feed, said = GridFeed(runs), Said()
    relay = relay_of(feed, store, said)
    deaths, sizes, done = 0, list[int](), set[str]()
    while (jobs := feed.next_jobs(1)) is not None:
        if bad in jobs:
            deaths += 1
            sizes.append(len(jobs))
            relay.lost(jobs, AttemptFailed("killed", "killed"))
            continue
        for job in jobs:
            feed.report(job, Finished({"auc": 0.8}, 1.0))
            done.add(job.run_id)
        feed.returned(jobs)
    assert deaths == 3
    assert sizes == [9, 1, 1]
    assert [report for run_id, report in said.reports if run_id == bad.run_id] == [Retrying(), Retrying(), Failed()]
    assert sum(isinstance(report, Failed) for _, report in said.reports) == 1
    assert store.statuses() == {bad.run_id: "failed"}
    assert done == {job.run_id for job in runs} - {bad.run_id}


def test_a_run_that_exceeds_the_time_limit_of_an_epoch_is_not_tried_again(store: RunStore) -> None:
    job = run(0)
    feed, said = GridFeed([job]), Said()
    assert feed.next_jobs(1) == (job,)
    relay_of(feed, store, said).lost((job,), AttemptFailed("killed", "killed", is_final=True))
    assert feed.finished
    assert said.reports == [(job.run_id, Failed())]
    assert store.statuses() == {job.run_id: "failed"}


def test_exceptions_and_deaths_of_workers_count_as_attempts_of_one_run(store: RunStore) -> None:
    job, other = run(0), run(1)
    feed, said = GridFeed([job, other]), Said()
    relay = relay_of(feed, store, said, max_retries=2)
    raised = AttemptFailed(
        "Traceback ...", "Traceback ...", facts={"host": "here", "started_at": datetime(2026, 1, 1, tzinfo=UTC)}
    )
    attempts = 0
    while (jobs := feed.next_jobs(1)) is not None:
        if job not in jobs:
            relay.pass_on(jobs, [(0, Computed({}, None, {"auc": 0.8}, 1.0))])
            feed.returned(jobs)
            continue
        attempts += 1
        if attempts == 2:
            relay.lost(jobs, AttemptFailed("killed", "killed"))
        else:
            relay.pass_on(jobs, [(0, raised)])
            feed.returned(jobs)
    assert attempts == 3
    assert feed.finished
    assert [report for run_id, report in said.reports if run_id == job.run_id] == [Retrying(), Retrying(), Failed()]
    (row,) = store.rows("runs", ["error", "host", "started_at"], [job.run_id])
    assert (row["error"], row["host"]) == ("Traceback ...", "here")
    assert pd.Timestamp(row["started_at"]) == pd.Timestamp("2026-01-01", tz="UTC")


def test_a_run_that_paused_for_pruning_has_no_more_retries_than_others(store: RunStore) -> None:
    raised = AttemptFailed("Traceback ...", "Traceback ...")
    retries = Retries(store, 2, lambda config: "generated0001", {})
    before, after = replace(run(0), until=1), replace(run(0), until=2)
    assert [retries.after(job, raised) for job in (before, before, after)] == [Retrying(), Retrying(), Failed()]
    assert store.statuses() == {before.run_id: "failed"}


def test_runs_that_cannot_be_recorded_stop_the_sweep_however_slow_they_are(store: RunStore) -> None:
    jobs = [run(number) for number in range(5)]
    relay = relay_of(GridFeed(jobs), store, Said())
    for job, sent in zip(
        jobs,
        [Unrecorded("full"), Unrecorded("full"), Computed({}, None, {"auc": 0.8}, 1.0), *[Unrecorded("full")] * 2],
        strict=True,
    ):
        relay.pass_on((job,), [(0, sent)])
        relay.look()  # nothing is due, so there is nothing to write
        assert relay.store_error is None
    relay.pass_on((jobs[0],), [(0, Unrecorded("full"))])
    assert relay.store_error == "full"


def test_a_job_that_raised_leaves_the_others_of_its_worker_alone(store: RunStore) -> None:
    jobs = [run(number) for number in range(24)]
    feed, said = GridFeed(jobs), Said()
    relay = relay_of(feed, store, said)
    first = feed.next_jobs(1)
    assert first is not None
    relay.pass_on(first, [(0, Computed({}, None, {"auc": 0.8}, 1.0))])
    feed.returned(first)
    several = feed.next_jobs(1)
    assert several is not None
    assert len(several) > 2
    sent: list[tuple[int, WorkerReport]] = [(0, AttemptFailed("Traceback ...", "Traceback ..."))]
    for index in range(1, len(several)):
        sent += [(index, Begun()), (index, Computed({}, None, {"auc": 0.8}, 1.0))]
    passed_on = relay.pass_on(several, sent)
    assert passed_on[0] == (several[0], Retrying())
    feed.returned(several)
    left: list[Job] = []
    while (more := feed.next_jobs(1)) is not None:
        left += more
        relay.pass_on(more, [(index, Computed({}, None, {"auc": 0.8}, 1.0)) for index in range(len(more))])
        feed.returned(more)
    assert several[0] in left
    assert not set(several[1:]) & set(left)
