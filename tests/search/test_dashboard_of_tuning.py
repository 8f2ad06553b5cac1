"""The dashboard of a tuned space: every page, at each moment of its sweep."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from clops_sweep import OptunaSearch, RunConfig, SearchSpace, TuneOn
from clops_sweep.analysis.dashboard.app import PAGES, Dashboard
from clops_sweep.analysis.dashboard.overview import counts, progress
from clops_sweep.analysis.dashboard.snapshot import FollowedStore
from clops_sweep.analysis.dashboard.source import StoreSource
from clops_sweep.data.catalog import DataKey
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.execution.jobs import Job
from clops_sweep.experiment.spaces.search_space import search_of
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.request import Request
from clops_sweep.planning.searches import data_hashes
from clops_sweep.planning.state import State
from clops_sweep.store.run_store import RunStore

VALUES = [0.25, 0.5]


class AnyData(PreparedData):
    """Data that are the same under every split."""

    def data_hash(self, key: DataKey) -> str | None:
        return "generated0001"


def tuned() -> SearchSpace:
    methods = {"er": {"replay_ratio": VALUES}, "derpp": {"replay_ratio": VALUES}, "finetune": {}}
    search = OptunaSearch(sampler="grid", methods=methods, tune_on=TuneOn(splits=(7,)))
    return SearchSpace("sites", RunConfig(), {"split_seed": [1, 2]}, search=search)


def state(world: Any) -> State:
    return State.of(Request(Selection.of(tuned()), AnyData(Path("nowhere"), None), world.store))


def studies(world: Any) -> Sequence[SearchSpace]:
    request = state(world).resolved
    for study in request.selection.searches:
        world.data = data_hashes(request, study)
    return request.selection.searches


def nothing(world: Any) -> None:
    """Before the first trial."""


def first_trial(world: Any) -> None:
    """The first trial of the first method is under way."""
    world.driver(studies(world)[0])[0].next_jobs(1)


def first_method(world: Any) -> None:
    """Between two methods: the study of the second does not exist."""
    world.finish(studies(world)[0])


def second_method(world: Any) -> None:
    """Within the second method, one of whose trials has ended."""
    first_method(world)
    feed, _ = world.driver(studies(world)[1])
    (job,) = feed.next_jobs(1)
    feed.report(job, world.work(job))


def selection(world: Any) -> None:
    """After the selection, before a reported run."""
    for study in studies(world):
        world.finish(study)


def all_runs(world: Any) -> None:
    """After the last reported run."""
    selection(world)
    for run in state(world).plan.of("pending"):
        world.work(Job(run.config.run_id("generated0001"), run.config))


def of_store(request: Request, store: RunStore) -> list[SearchSpace]:
    return State.of(replace(request, store=store)).spaces


def methods_in(overview: str) -> list[str]:
    """The methods in the table of tuning, in its order."""
    table = overview.partition('aria-label="Tuning"')[2]
    return re.findall('<th scope="row" class="label"><a[^>]*>(.*?)</a>', table)


@pytest.mark.parametrize("moment", [nothing, first_trial, first_method, second_method, selection, all_runs])
@pytest.mark.nightly
def test_every_page_is_shown_at_each_moment_of_a_tuned_sweep(
    world: Any, moment: Callable[[Any], None], caplog: pytest.LogCaptureFixture
) -> None:
    moment(world)
    request = state(world).asked
    with_file = StoreSource(world.store, lambda key: None, partial(of_store, request), whole=False)
    without_file = StoreSource(world.store, lambda key: None)
    for source in (with_file, without_file):
        followed = FollowedStore(world.store, source, 0)
        dashboard = Dashboard(followed)
        for path in PAGES:
            for name in ("", *followed.snapshot.sections):
                html, status = dashboard.answer(path, {"experiment": name})
                assert (html is not None, status) == (True, 200), (path, name)
        if source is with_file:
            overview = dashboard.page("", {})
            assert overview is not None
            assert methods_in(overview) == ["derpp", "er"]
        dashboard.close()
    assert [it.getMessage() for it in caplog.records if it.levelno >= logging.ERROR] == []  # faults of pages are logged


def test_runs_of_trials_to_come_are_asked_for(world: Any) -> None:
    """Of a search that has begun, of one that has not, and in the header."""
    second_method(world)
    request = state(world).asked
    followed = FollowedStore(
        world.store, StoreSource(world.store, lambda key: None, partial(of_store, request), whole=False), 0
    )
    spaces = {space.name: space for space in studies(world)}
    found = {it.name: it for it in progress(followed.snapshot)}
    asked = {}
    for name, space in spaces.items():
        asked[name] = search_of(space).n_trials * len(space.replicates())
        assert found[name].total == asked[name]
    assert found["sites_selection_er"].missing == 0
    assert found["sites_selection_derpp"].finished == 1
    reported = 2 * len(tuned().replicates())  # of er, which is chosen, and of fine-tuning
    expected = {"finished": asked["sites_selection_er"] + 1, "missing": asked["sites_selection_derpp"] - 1 + reported}
    assert counts(followed.snapshot) == expected
    dashboard = Dashboard(followed)
    overview = dashboard.page("", {})
    assert overview is not None
    words = re.sub("<[^>]+>", "", overview)
    assert f"1 / {asked['sites_selection_derpp']}" in words
    dashboard.close()


def test_searches_are_listed_by_method_before_they_begin(world: Any) -> None:
    request = state(world).asked
    source = StoreSource(world.store, lambda key: None, partial(of_store, request), whole=False)
    dashboard = Dashboard(FollowedStore(world.store, source, 0))
    overview = dashboard.page("", {})
    assert overview is not None
    assert methods_in(overview) == ["derpp", "er"]
    dashboard.close()
