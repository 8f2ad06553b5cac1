"""Which pending runs a trial takes: those that can be trained in lockstep, seed 0 of every cell first."""

from __future__ import annotations

import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.execution.jobs import Resources, make_jobs
from clops_sweep.experiment.spaces.search_space import all_requests
from clops_sweep.learning.lockstep import lockstep_key
from clops_sweep.planning.plan import PlannedRun

GRID = SearchSpace(
    "grid",
    RunConfig(),
    {"storage_fraction": [0.1, 0.25], "storage_order": ["top", "random"], "mc_samples": [5, 20]},
    seeds=range(3),
)


def pending() -> list[PlannedRun]:
    configs = [request.config for request in all_requests([GRID])]
    return [PlannedRun(config.run_id("data"), config, "pending") for config in configs]


@pytest.mark.parametrize("runs_in_lockstep", [1, 5, 12, 40])
def test_every_run_is_in_one_job_with_runs_it_can_be_trained_with(runs_in_lockstep: int) -> None:
    runs = pending()
    jobs = make_jobs(runs, runs_in_lockstep)
    assert sorted(run_id for job in jobs for run_id in job.run_ids) == sorted(str(run.run_id) for run in runs)
    ids = {run.config: run.run_id for run in runs}
    for job in jobs:
        assert len(job.configs) <= runs_in_lockstep
        assert len({lockstep_key(config) for config in job.configs}) == 1
        assert [ids[config] for config in job.configs] == list(job.run_ids)
    # 2 storage fractions, each with 2 x 2 x 3 runs whose batches are alike.
    assert len(jobs) == 2 * -(-12 // runs_in_lockstep)
    firsts = [job.configs[0].seed for job in jobs]
    assert firsts == sorted(firsts)


def test_auto_computes_runs_together_on_a_gpu_alone() -> None:
    assert len(make_jobs(pending(), Resources().runs_in_lockstep)) == 24
    assert len(make_jobs(pending(), Resources(gpus_per_trial=0.5).runs_in_lockstep)) == 2
    assert len(make_jobs(pending(), Resources(lockstep=3).runs_in_lockstep)) == 8
