"""Seals of claims about tuned spaces, from real stores and studies whose runs were never trained."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clops_sweep import Claim, Contrast, FloatDistribution, OptunaSearch, RunConfig, SearchSpace, Side, TuneOn
from clops_sweep.data.catalog import DataKey
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError
from clops_sweep.execution.jobs import Job
from clops_sweep.experiment.spaces.claims import sha256
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.claim_seal import seal, seal_in_words
from clops_sweep.planning.request import Request
from clops_sweep.planning.searches import data_hashes
from clops_sweep.planning.state import State

CONTENT = "generated0001"
ABOVE = Claim("above", "ER is above SI", Contrast(Side("ER", {"strategy": "er"}), Side("SI", {"strategy": "si"})))
METHODS = {"er": {"replay_ratio": [0.5, 1.0]}, "si": {}}
SPACE = SearchSpace("it", RunConfig(), seeds=range(2), search=OptunaSearch(sampler="grid", methods=METHODS))

EARLIER = "an earlier version wrote it"


class AnyData(PreparedData):
    """Data that are the same under every split."""

    def data_hash(self, key: DataKey) -> str | None:
        return CONTENT


def asked_for(world: Any, space: SearchSpace = SPACE) -> Request:
    selection = Selection.of(space, files=(Path("space.py"),), titles=("it",), claims=(ABOVE,))
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


@pytest.mark.parametrize("tune_on", [TuneOn(splits=(7, 8)), TuneOn(dataset="chapman"), TuneOn(splits=(7,), seeds=(0,))])
def test_a_space_that_is_tuned_on_other_splits_takes_more_of_them(tune_on: TuneOn) -> None:
    on_others = replace(SPACE, search=OptunaSearch(sampler="grid", methods=METHODS, tune_on=tune_on))
    (tuned,) = Selection.of(on_others).tuned
    assert tuned.splits_fixed == ""


@pytest.mark.parametrize("tune_on", ["same", TuneOn(tasks=1), TuneOn(seeds=(7,))])
def test_a_space_that_is_tuned_on_its_splits_takes_no_more_of_them(tune_on: Any) -> None:
    on_its_own = replace(SPACE, search=OptunaSearch(sampler="grid", methods=METHODS, tune_on=tune_on))
    (tuned,) = Selection.of(on_its_own).tuned
    assert tuned.splits_fixed.startswith("tuning of 'it' uses the patient splits that it reports: ")


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


def tuned(seeds: int = 2, trials: int = 3, *, most: float = 1.0, **search: Any) -> SearchSpace:
    methods = {"er": {"replay_ratio": FloatDistribution(0.5, most), "memory_fraction": [0.1, 0.2]}, "si": {}}
    given = OptunaSearch(methods=methods, trials_each=trials, **search)
    return SearchSpace("it", RunConfig(), seeds=range(seeds), search=given)


@pytest.mark.parametrize(
    ("edited", "changes"),
    [
        (tuned(), []),
        (tuned(max_concurrent=1), []),
        (
            tuned(seeds=3),
            [
                "search it_selection_er has seeds [0, 1, 2] instead of [0, 1]",
                "tuned space it is reported on seeds 0, 1, 2 instead of 0, 1",
            ],
        ),
        (tuned(trials=8), ["search it_selection_er has n_trials 8 instead of 3"]),
        (tuned(sampler="random"), ['search it_selection_er has sampler "random" instead of "tpe"']),
        (tuned(sampler_seed=4), ["search it_selection_er has sampler_seed 4 instead of 0"]),
        (
            tuned(objectives={"auc": "minimize"}),
            ['search it_selection_er has objectives [["auc", "minimize"]] instead of [["auc", "maximize"]]'],
        ),
        (
            tuned(tune_on=TuneOn(seeds=[7])),
            [
                "the search space requests other runs",
                "search it_selection_er has seeds [7] instead of [0, 1]",
            ],
        ),
    ],
)
def test_an_edit_of_a_sealed_search_is_named(world: Any, edited: SearchSpace, changes: list[str]) -> None:
    seal(asked_for(world, tuned()))
    words = seal_in_words(State.of(asked_for(world, edited)))
    assert ("; changed since: " in words) == bool(changes)
    for change in changes:
        assert change in words
    assert EARLIER not in words


def test_a_change_of_the_methods_is_told_by_the_runs_that_were_requested(world: Any) -> None:
    """It counted the configs at the bounds of the searches: "(10 instead of 8)" where 4 runs were reported."""
    place = Path(seal(asked_for(world, tuned())).path)
    methods = {"er": {"replay_ratio": FloatDistribution(0.5, 1.0), "memory_fraction": [0.1, 0.2]}, "si": {}, "ewc": {}}
    more = SearchSpace("it", RunConfig(), seeds=range(2), search=OptunaSearch(methods=methods, trials_each=3))
    was, now = "3 trials of 1 method, then 4 runs", "3 trials of 1 method, then 6 runs"
    others = "changed since: the search space requests other runs"
    assert seal_in_words(State.of(asked_for(world, more))).endswith(f"{others}: it has {now} (sealed: {was})")
    content = json.loads(place.read_text())
    for name in ("sizes", "sha256"):
        del content[name]
    place.write_text(json.dumps({**content, "sha256": sha256(content)}))
    assert seal_in_words(State.of(asked_for(world, more))).endswith(others)


def test_a_seal_of_an_earlier_version_says_that_it_does_not_hold_the_searches(world: Any) -> None:
    (path,) = [Path(seal(asked_for(world, tuned())).path)]
    content = json.loads(path.read_text())
    for name in ("searches", "reported", "sha256"):
        del content[name]
    path.write_text(json.dumps({**content, "sha256": sha256(content)}))
    words = seal_in_words(State.of(asked_for(world, tuned(trials=8))))
    said = f"; {EARLIER}, so changes of searches and of the seeds of tuned spaces are not known"
    assert words.endswith(f"UTC, before the first run{said}")
    edited = seal_in_words(State.of(asked_for(world, tuned(most=2.0))))
    assert f"{said}; changed since: the search space requests other runs" in edited


def at_places(*fractions: float) -> Claim:
    places = tuple({"storage_fraction": fraction} for fraction in fractions)
    top, at_random = (Side(order, {"storage_order": order}) for order in ("top", "random"))
    return Claim("by_beta", "By beta is above random", Contrast(top, at_random, places=places))


def asked_at_places(world: Any, *fractions: float) -> Request:
    axes = {"storage_order": ["top", "random"], "storage_fraction": [0.1, 0.25, 0.5]}
    selection = Selection.of(
        SearchSpace("it", RunConfig(), axes, seeds=1),
        files=(Path("space.py"),),
        titles=("it",),
        claims=(at_places(*fractions),),
    )
    return Request(selection, AnyData(Path("nowhere"), None), world.store)


def test_an_edit_of_the_places_of_a_sealed_claim_is_named(world: Any) -> None:
    seal(asked_at_places(world, 0.1, 0.25, 0.5))
    assert seal_in_words(State.of(asked_at_places(world, 0.1, 0.25, 0.5))).endswith("before the first run")
    assert seal_in_words(State.of(asked_at_places(world, 0.5))).endswith("changed since: claim by_beta was edited")


@pytest.mark.parametrize(
    ("base", "axes", "changes"),
    [
        ({"epochs_per_task": 20}, {}, "the search space requests other runs: epochs_per_task 20 instead of 10"),
        (
            {},
            {"storage_fraction": [0.1, 0.5]},
            "the search space requests other runs (4 instead of 6): "
            "axis storage_fraction [0.1, 0.5] instead of [0.1, 0.25, 0.5]",
        ),
    ],
)
def test_changed_settings_of_a_sealed_grid_are_named(
    world: Any, base: dict[str, Any], axes: dict[str, Any], changes: str
) -> None:
    """It said that the search space requests other runs (6 instead of 6)."""
    request = asked_at_places(world, 0.5)
    (space,) = request.selection.given
    edited = replace(space, base=space.base.replace(**base), axes={**space.axes, **axes})
    first = replace(space, base=space.base.replace(epochs_per_task=10))
    if not base:
        edited = replace(edited, base=first.base)
    seal(replace(request, selection=replace(request.selection, given=(first,))))
    words = seal_in_words(State.of(replace(request, selection=replace(request.selection, given=(edited,)))))
    assert words.endswith(f"changed since: {changes}")


def test_a_seal_of_an_earlier_version_says_that_it_does_not_hold_places(world: Any, tmp_path: Path) -> None:
    path = Path(seal(asked_at_places(world, 0.1, 0.5)).path)
    content = json.loads(path.read_text())
    del content["sha256"]
    for contrast in content["claims"]["by_beta"]["contrasts"]:
        del contrast["places"]
    path.write_text(json.dumps({**content, "sha256": sha256(content)}))
    said = f"before the first run; {EARLIER}, so changes of the places of claims are not known"
    request = asked_at_places(world, 0.5)
    assert seal_in_words(State.of(request)).endswith(said)
    moved = replace(request.selection, files=(tmp_path / "elsewhere.py",), titles=("another",))
    words = seal_in_words(State.of(replace(request, selection=moved)))
    assert words.partition("; ")[2] == said.partition("; ")[2]
    other = replace(at_places(0.5), matters=0.1)
    edited = replace(request, selection=replace(request.selection, claims=(other,)))
    assert seal_in_words(State.of(edited)).endswith(f"{said}; changed since: claim by_beta was edited")
