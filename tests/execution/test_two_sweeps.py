"""Two sweeps on one store at the same time."""

from __future__ import annotations

import collections
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from launching import ONE_WORKER, Counted, Sweep
from preloaded import Preloaded

from clops_sweep import RunConfig
from clops_sweep.planning.plan import PlannedRun
from clops_sweep.store.run_store import RunStore

Launch = Callable[..., Sweep]

RUNS = 16
SECONDS_TO_BEGIN = 3  # from the worker's look at the store to the first task, on a busy machine


def test_two_sweeps_on_one_store_share_the_work(
    launch: Launch, attach: Launch, forked: Preloaded, tmp_path: Path
) -> None:
    counted = Counted(tmp_path, runs=RUNS, epochs=3)
    command = ("space.py", "--no-report")
    sweeps = [launch(*command, *ONE_WORKER, script=forked), attach(*command)]
    assert [sweep.wait() for sweep in sweeps] == [0, 0]
    for sweep in sweeps:
        assert f"{RUNS} runs asked for, {RUNS} finished, 0 pending, 0 failed" in sweep.output
    results = tmp_path / "results"
    runs = pd.read_parquet(results / "runs").set_index("seed")
    assert sorted(runs.index) == list(range(RUNS))
    for name in ("r_matrix", "curves", "instances"):
        sizes = pd.read_parquet(results / name).groupby("run_id").size()
        assert set(sizes.index) == set(runs["run_id"])
        assert len(set(sizes)) == 1

    began = counted.beginnings(task=0)
    assert max(collections.Counter((one.seed, one.tag) for one in began).values()) == 1
    for one in began:  # nobody began what had been recorded
        recorded = (results / "runs" / f"finished-{runs['run_id'][one.seed]}.parquet").stat().st_mtime_ns
        assert one.moment < recorded + SECONDS_TO_BEGIN * 10**9
    twice = len(began) - RUNS
    print(f"{twice} of {RUNS} runs were computed twice")
    assert twice < RUNS // 2


def test_the_second_sweep_on_a_store_goes_through_it_in_another_order(tmp_path: Path) -> None:
    """Runs of equal length in the same order would be in flight at both all the time."""
    from clops_sweep.execution.driver import only_sweep
    from clops_sweep.execution.jobs import make_jobs, shuffled

    store = RunStore(tmp_path / "results")
    with only_sweep(store) as first, only_sweep(store) as second:
        assert (first, second) == (True, False)
    with only_sweep(store) as again:
        assert again
    configs = [RunConfig(seed=seed, mc_samples=samples) for seed in (7, 3) for samples in range(1, 51)]
    jobs = make_jobs([PlannedRun(str(index), config, "pending") for index, config in enumerate(configs)], 1)
    for at_least in (1, 32, 50):
        other = shuffled(jobs, at_least)
        assert [job.configs[0].seed for job in other] == [7] * 50 + [3] * 50
        assert sorted(job.run_ids for job in other) == sorted(job.run_ids for job in jobs)
        assert sum(mine == theirs for mine, theirs in zip(jobs, other, strict=True)) < 20


def test_seeds_are_mixed_where_one_alone_has_too_few_jobs_for_another_order() -> None:
    from clops_sweep.execution.jobs import make_jobs, shuffled

    configs = [RunConfig(seed=seed, mc_samples=samples) for seed in range(10) for samples in (5, 10)]
    jobs = make_jobs([PlannedRun(str(index), config, "pending") for index, config in enumerate(configs)], 1)
    seeds = [job.configs[0].seed for job in shuffled(jobs, at_least=7)]
    assert [sorted(seeds[first : first + 8]) for first in (0, 8, 16)] == [
        sorted(2 * list(range(first, min(first + 4, 10)))) for first in (0, 4, 8)
    ]
    assert seeds != sorted(seeds)
