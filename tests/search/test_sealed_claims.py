"""Seals of claims about tuned spaces, from real stores and studies whose runs were never trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clops_sweep import Claim, Contrast, OptunaSearch, RunConfig, SearchSpace, Side
from clops_sweep.data.catalog import DataKey
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError
from clops_sweep.execution.jobs import Job
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.claim_seal import seal, seal_in_words
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State, data_hashes

CONTENT = "generated0001"
ABOVE = Claim("above", "ER is above SI", Contrast(Side("ER", {"strategy": "er"}), Side("SI", {"strategy": "si"})))
METHODS = {"er": {"replay_ratio": [0.5, 1.0]}, "si": {}}
SPACE = SearchSpace("it", RunConfig(), seeds=range(2), search=OptunaSearch(sampler="grid", methods=METHODS))


class AnyData(PreparedData):
    """Data that are the same under every split."""

    def data_hash(self, key: DataKey) -> str | None:
        return CONTENT


def asked_for(world: Any) -> Request:
    selection = Selection.of(SPACE, files=(Path("space.py"),), studies=("it",), claims=(ABOVE,))
    return Request(selection, AnyData(Path("nowhere"), None), world.store)


def finish_tuning(world: Any) -> None:
    (search,) = State.of(asked_for(world)).searches
    world.data = data_hashes(asked_for(world), search.space)
    world.finish(search.space)


def test_claims_of_a_tuned_space_are_not_sealed_once_a_run_of_a_trial_is_finished(world: Any) -> None:
    (search,) = State.of(asked_for(world)).searches
    world.data = data_hashes(asked_for(world), search.space)
    feed, _ = world.driver(search.space)
    (job,) = feed.next_jobs(1)
    feed.report(job, world.work(job))
    with pytest.raises(UsageError, match="--seal: 1 run of this file ended already"):
        seal(asked_for(world))


def test_claims_of_a_tuned_space_are_not_sealed_after_the_choice(world: Any) -> None:
    finish_tuning(world)
    with pytest.raises(UsageError, match="--seal: 4 runs of this file ended already"):
        seal(asked_for(world))


def test_the_choice_and_the_reported_runs_of_a_tuned_space_leave_its_seal_as_it_is(world: Any) -> None:
    seal(asked_for(world))
    before = seal_in_words(State.of(asked_for(world)))
    assert before.endswith("UTC, before the first run")
    finish_tuning(world)
    chosen = State.of(asked_for(world))
    assert chosen.tuned[0].reported is not None
    assert seal_in_words(chosen) == before
    for run in chosen.plan.of("pending"):
        world.work(Job.of(run))
    assert seal_in_words(State.of(asked_for(world))) == before
