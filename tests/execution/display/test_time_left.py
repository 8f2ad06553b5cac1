"""How much longer a sweep takes, against sweeps in which every epoch takes its time and nothing else does."""

from __future__ import annotations

import pytest

from clops_sweep import RunConfig
from clops_sweep.execution.display.time_left import TimeLeft
from clops_sweep.execution.jobs import Job
from clops_sweep.execution.reports import Failed, Finished, FoundFinished, Paused, Resumed, Running, WorkerDied

TASKS, EPOCHS = 6, 4
BASE = RunConfig(epochs_per_task=EPOCHS)
DONE = Finished({"auc": (0.8,)})


def job(*configs: RunConfig, until: int | None = None) -> Job:
    return Job(configs, tuple(f"{config.identity}" for config in configs), until)


def work(config: RunConfig, epochs: float = TASKS * EPOCHS) -> float:
    """Seconds that the first epochs of a run take: GEM's ten times as long as those of others."""
    return epochs * (10 if config.strategy == "gem" else 1)


class Clock:
    """One worker that computes jobs and reports every epoch."""

    def __init__(self, left: TimeLeft) -> None:
        self.left, self.now = left, 1000.0

    def train(self, it: Job, *, first: int = 0, last: int = TASKS * EPOCHS) -> None:
        for epoch in range(first + 1, last + 1):
            self.now += sum(work(config, epoch) - work(config, epoch - 1) for config in it.configs)
            if epoch < TASKS * EPOCHS:
                task, done = divmod(epoch - 1, EPOCHS)
                self.left.report(it, Running(task + 1, TASKS, done + 1, EPOCHS), self.now)
            else:
                self.left.report(it, DONE, self.now)

    def run(self, it: Job) -> None:
        self.left.started(it, self.now)
        self.train(it)


CONFIGS = [BASE.replace(storage_fraction=b, seed=seed) for b in (0.1, 0.5, 1.0) for seed in range(3)]


def test_nothing_is_known_before_a_run_gets_somewhere_and_then_what_is_left_follows_from_its_cost() -> None:
    left = TimeLeft(CONFIGS)
    assert left.seconds() is None
    clock = Clock(left)
    for done, config in enumerate(CONFIGS, 1):
        clock.run(job(config))
        assert left.seconds() == pytest.approx(sum(map(work, CONFIGS[done:])))


def test_the_start_of_workers_and_of_their_first_job_does_not_count() -> None:
    left = TimeLeft(CONFIGS)
    clock, first = Clock(left), job(CONFIGS[0])
    clock.now += 60  # Ray starts, and a worker
    left.started(first, clock.now)
    clock.now += 30  # what is imported, compiled and opened by the first job of a worker
    clock.train(first, last=1)
    assert left.seconds() is None
    clock.train(first, first=1, last=EPOCHS)
    assert left.seconds() == pytest.approx(sum(map(work, CONFIGS)) - work(CONFIGS[0], EPOCHS))


def test_runs_of_a_job_are_counted_as_runs_and_their_time_as_that_of_the_job() -> None:
    cells = [CONFIGS[:3], CONFIGS[3:6], CONFIGS[6:]]
    left = TimeLeft(CONFIGS)
    clock = Clock(left)
    clock.run(job(*cells[0]))
    left.started(job(*cells[1]), clock.now)
    clock.train(job(*cells[1]), last=2 * EPOCHS)
    begun = sum(work(config) - work(config, 2 * EPOCHS) for config in cells[1])
    assert left.seconds() == pytest.approx(begun + sum(map(work, cells[2])))


def test_what_is_left_is_divided_among_workers_but_takes_no_less_than_the_longest_job() -> None:
    alike = [BASE.replace(seed=seed) for seed in range(6)]
    left = TimeLeft(alike)
    one, other = job(alike[0]), job(alike[1])
    left.started(one, 0)
    left.started(other, 0)
    left.report(one, DONE, 100)
    left.report(other, DONE, 100)
    assert left.seconds() == pytest.approx(200)
    for last in alike[2:4]:
        left.started(job(last), 100)
        left.report(job(last), DONE, 200)
    long = job(*alike[4:])
    left.started(long, 200)
    assert left.seconds() == pytest.approx(200)  # two runs in one job, on one of the two workers


def test_what_a_resumed_run_has_done_before_is_not_taken_for_done_now() -> None:
    left = TimeLeft(CONFIGS[:2])
    clock, first = Clock(left), job(CONFIGS[0])
    left.started(first, clock.now)
    left.report(first, Resumed(5, TASKS, 1, EPOCHS), clock.now)
    clock.train(first, first=4 * EPOCHS, last=5 * EPOCHS)
    clock.train(first, first=5 * EPOCHS)
    assert left.seconds() == pytest.approx(work(CONFIGS[1]))


def test_each_kind_of_run_takes_its_own_time() -> None:
    slow, fast = (BASE.replace(strategy=strategy) for strategy in ("gem", "finetune"))
    left = TimeLeft([slow, slow.replace(seed=1), fast, fast.replace(seed=1)])
    left.started(job(slow), 0)
    left.report(job(slow), DONE, 900)
    assert left.seconds() == pytest.approx(3 * 900)  # the mean of all kinds, until a run of this kind is timed
    left.started(job(fast), 900)
    left.report(job(fast), DONE, 910)
    assert left.seconds() == pytest.approx(910)


def test_what_a_dead_worker_has_done_is_to_be_gone_through_from_its_checkpoint() -> None:
    left = TimeLeft(CONFIGS[:1])
    clock, it = Clock(left), job(CONFIGS[0])
    left.started(it, clock.now)
    clock.train(it, last=2 * EPOCHS)
    left.report(it, WorkerDied("gone"), clock.now)
    left.started(it, clock.now + 50)
    left.report(it, Resumed(2, TASKS, 1, EPOCHS), clock.now + 50)
    assert left.seconds() == pytest.approx(work(CONFIGS[0]) - work(CONFIGS[0], EPOCHS))


def test_runs_that_fail_or_are_found_finished_leave_no_time_behind() -> None:
    left = TimeLeft(CONFIGS[:4])
    clock = Clock(left)
    clock.run(job(CONFIGS[0]))
    left.report(job(CONFIGS[1]), FoundFinished(), clock.now)
    left.started(job(CONFIGS[2]), clock.now)
    left.report(job(CONFIGS[2]), Failed(job(CONFIGS[2]).run_ids), clock.now + 1)
    assert left.seconds() == pytest.approx(work(CONFIGS[3]))


def test_the_trials_of_a_search_that_are_pruned_leave_no_time_behind() -> None:
    left = TimeLeft([BASE] * 6)
    clock = Clock(left)
    chosen = [BASE.replace(learning_rate=rate) for rate in (1e-3, 1e-4)]
    clock.run(job(chosen[0]))
    paused = job(chosen[1], until=2)
    left.started(paused, clock.now)
    clock.train(paused, last=2 * EPOCHS - 1)
    clock.now += work(BASE, 2 * EPOCHS) - work(BASE, 2 * EPOCHS - 1)
    left.report(paused, Paused({paused.run_ids[0]: 0.8}), clock.now)
    assert left.seconds() == pytest.approx(5 * work(BASE) - work(BASE, 2 * EPOCHS))
    left.left_out(paused.run_ids)
    assert left.seconds() == pytest.approx(4 * work(BASE))
