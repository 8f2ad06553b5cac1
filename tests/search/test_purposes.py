"""What the trials of a study are for: it may change between launches, while the definition stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clops_sweep import OptunaSearch, RunConfig, SearchSpace, TuneOn
from clops_sweep.data.catalog import DataKey
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.execution.feeding.sweep_feeds import record_purposes
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.request import Request
from clops_sweep.planning.searches import data_hashes
from clops_sweep.planning.state import State
from clops_sweep.search.roles import tuning_runs
from clops_sweep.search.study import open_study

METHODS = {"er": {"learning_rate": [1e-3, 1e-4]}}


class AnyData(PreparedData):
    """Data that are the same under every split."""

    def data_hash(self, key: DataKey) -> str | None:
        return "generated0001"


def space(tune_on: Any, seeds: list[int]) -> SearchSpace:
    search = OptunaSearch(sampler="grid", methods=METHODS, tune_on=tune_on)
    return SearchSpace("it", RunConfig(), seeds=seeds, search=search)


ON_REPORTED, ON_OTHERS = space("same", [0, 1]), space(TuneOn(seeds=[0, 1]), [2, 3])


def state_of(world: Any, asked: SearchSpace) -> State:
    return State.of(Request(Selection.of(asked), AnyData(Path("nowhere"), None), world.store))


def finish(world: Any, asked: SearchSpace) -> None:
    request = state_of(world, asked).asked
    (search,) = state_of(world, asked).searches
    world.data = data_hashes(request, search.space)
    world.finish(search.space)


@pytest.mark.parametrize(("first", "then", "tuning"), [(ON_REPORTED, ON_OTHERS, 4), (ON_OTHERS, ON_REPORTED, 2)])
@pytest.mark.parametrize("is_done", [True, False])
def test_runs_of_trials_are_reported_if_the_last_launch_reports_them(
    world: Any, first: SearchSpace, then: SearchSpace, tuning: int, is_done: bool
) -> None:
    finish(world, first)
    assert len(tuning_runs(world.store)) == 6 - tuning
    if is_done:
        record_purposes(state_of(world, then))
    else:
        finish(world, then)
    assert len(tuning_runs(world.store)) == tuning


def test_trials_that_run_are_left_even_if_fewer_are_asked_for_now(world: Any) -> None:
    search = OptunaSearch({"learning_rate": (1e-4, 1e-2)}, n_trials=4)
    asked = SearchSpace("fewer", RunConfig(), seeds=[0], search=search)
    feed, _ = world.driver(asked)
    jobs = [job for _ in range(3) for job in feed.next_jobs(3) or ()]
    feed.report(jobs[0], world.work(jobs[0]))  # and here the driver is killed
    fewer = replace(asked, search=replace(search, n_trials=1))
    (now,) = state_of(world, fewer).searches
    assert (now.count("complete"), now.count("running")) == (1, 2)
    assert now.left == open_study(fewer, world.store, world.data).left == 2
    assert not now.complete
    world.finish(fewer)
    (ended,) = state_of(world, fewer).searches
    assert (ended.left, ended.complete, ended.count("complete")) == (0, True, 3)
