"""A dashboard that is open while data are prepared again: it shows the runs on the new data, and says what changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.dashboard.app import Dashboard
from clops_sweep.analysis.dashboard.followed_data import FollowedData
from clops_sweep.analysis.dashboard.launched_editions import launched_editions
from clops_sweep.analysis.dashboard.snapshot import FollowedStore
from clops_sweep.analysis.dashboard.source import StoreSource
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.launched import LaunchedOn, launched_on, launched_spaces, remember
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State
from clops_sweep.store.run_store import RunStore
from tests.data.declared_files import declare, forget

ROOMS = """
@dataset("rooms", files=["labels.npy"], scenarios=("class_il",))
def rooms(data_root):
    signals = np.random.default_rng(1).normal(size=(120, 1, 40)).astype(np.float32)
    people = np.repeat(np.arange(20), 6)
    return Recordings(
        signals, 50, ["II"], "mV", np.load(data_root / "labels.npy"), ("a", "b", "c", "d"), people,
        names=[f"r{i}" for i in range(120)],
    )
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with a declared data set whose labels are in a file."""
    _label(tmp_path, 0)
    forget("rooms")
    declare(tmp_path / "rooms.py", ROOMS)
    yield tmp_path
    forget("rooms")


def _label(folder: Path, corrected: int) -> None:
    labels = np.arange(120) % 4
    labels[:corrected] ^= 1
    np.save(folder / "labels.npy", labels)


def _shown_since(dashboard: Dashboard, before: str) -> str:
    """The overview that a browser gets that shows an earlier one."""
    version = re.search('data-version="([^"]+)"', before)
    assert version is not None
    page = dashboard.page("", {}, version[1])
    assert page is not None, "the page of the browser is outdated"
    return page


def test_runs_and_update_reports_on_data_prepared_again_are_shown(folder: Path, generated: ModuleType) -> None:
    base = RunConfig(dataset="rooms", scenario="class_il", strategy="er", epochs_per_task=1)
    space = SearchSpace("rooms", base, seeds=[0])
    (config,) = [request.config for request in space.requests()]
    root = folder / "prepared"
    store = RunStore(folder / "results")

    def compute(score: float) -> str:
        """Prepare as a launch in another process does, and store the run with a score; returns its id."""
        data = PreparedData(root, folder)
        data.prepare([config.data_key])
        content = data.data_hash(config.data_key)
        assert content is not None
        values = {"auc": score, "prepared_hash": data.prepared_hash("rooms")}
        generated.write_given_runs(store, [(config, values)], content)
        return config.run_id(content)

    former = compute(0.25)
    data = PreparedData(root, folder)
    followed = FollowedData(data)
    request = Request(Selection.of(space), data, store)

    def spaces(at_one_moment: RunStore) -> list[SearchSpace]:
        return State.of(replace(request, store=at_one_moment)).spaces

    source = StoreSource(store, lambda key: None, spaces, whole=False, present=request.edition, data=followed)
    dashboard = Dashboard(FollowedStore(store, source, 0), changes=followed.prepared_again)
    before = dashboard.page("", {}) or ""
    assert "0.250" in before
    assert "prepared again" not in before

    _label(folder, 3)
    newer = compute(0.75)
    assert newer != former
    reports = folder / "results" / "report"
    reports.mkdir()
    (reports / f"update-{newer}.html").write_text('<p class="verdict met">All criteria met.</p>')
    now = _shown_since(dashboard, before)
    assert "0.750" in now
    assert "0.250" not in now
    assert f"/update-report/update-{newer}.html" in now
    assert re.search(
        "Data set rooms was prepared again at [-0-9: ]+ UTC, while this dashboard ran: 3 recordings have other labels.",
        now,
    )
    dashboard.close()


def test_data_prepared_again_with_equal_content_are_no_change(folder: Path) -> None:
    root = folder / "prepared"
    data = PreparedData(root, folder)
    key = RunConfig(dataset="rooms", scenario="class_il").data_key
    data.prepare([key])
    followed = FollowedData(data)
    mark = followed.mark()
    assert followed.mark() == mark
    declare(folder / "rooms.py", ROOMS.replace("np.repeat(np.arange(20), 6)", "np.arange(120) // 6"))
    PreparedData(root, folder).prepare([key])
    with_other_code = followed.mark()
    assert with_other_code != mark
    assert followed.prepared_again() == []
    _label(folder, 1)
    PreparedData(root, folder).prepare([key])
    assert followed.mark() != with_other_code
    (sentence,) = followed.prepared_again()
    assert sentence.endswith("1 recording has other labels")


def test_each_experiment_is_shown_on_the_edition_that_it_was_launched_on(folder: Path, generated: ModuleType) -> None:
    base = RunConfig(dataset="rooms", scenario="class_il", strategy="er", epochs_per_task=1)
    store = RunStore(folder / "results")
    data = PreparedData(folder / "prepared", folder)
    hashes = []

    def launch(name: str, score: float | None = None) -> None:
        """Prepare and remember a space as a launch does, and store its run with a score if one is given."""
        space = SearchSpace(name, base, seeds=[0])
        (config,) = [request.config for request in space.requests()]
        data.forget()
        data.prepare([config.data_key])
        prepared_hash = data.prepared_hash("rooms")
        hashes.append(prepared_hash)
        if score is not None:
            content = data.data_hash(config.data_key)
            assert content is not None
            values = {"auc": score, "prepared_hash": prepared_hash}
            generated.write_given_runs(store, [(config, values)], content)
        remember(Selection.of(space), store, data.prepared_hash)

    def scores() -> dict[str, list[float]]:
        sections = followed.refresh().sections
        return {name: section.experiment.runs["auc"].tolist() for name, section in sections.items()}

    launch("before", 0.25)
    _label(folder, 3)
    launch("after", 0.75)
    assert len(set(hashes)) == 2
    source = StoreSource(
        store,
        lambda key: None,
        lambda moment: launched_spaces(moment, str),
        present=data.prepared_hash,
        launched=lambda moment: launched_on(moment, str),
    )
    followed = FollowedStore(store, source, 0)
    dashboard = Dashboard(followed)
    assert scores() == {"before": [0.25], "after": [0.75]}
    assert "not shown" not in (dashboard.page("", {}) or "")
    launch("before")  # on the present edition, which has its run
    assert scores() == {"before": [0.75], "after": [0.75]}
    page = dashboard.page("", {}) or ""
    assert f"1 of 2 runs is of another edition of the data and not shown (1 of rooms@{str(hashes[0])[:12]})" in page
    dashboard.close()


def test_editions_of_earlier_launches_are_those_of_runs_that_name_their_files() -> None:
    rows = [
        ("rooms", "E1", "a.py", 1),
        ("rooms", "E2", "b.py", 3),
        ("rooms", "E0", "a.py", 0),
        ("halls", "E3", "b.py", 2),
    ]
    runs = pd.DataFrame(
        [
            {
                "dataset": data,
                "prepared_hash": edition,
                "plugins": f'{{"{data}": ["work/{file}", "0"]}}',
                "started_at": at,
            }
            for data, edition, file, at in rows
        ]
    )
    launched = {
        "one": LaunchedOn(frozenset({"a.py"}), {}),
        "two": LaunchedOn(frozenset({"b.py"}), {}),
        "recorded": LaunchedOn(frozenset({"b.py"}), {"rooms": "E1"}),
        "moved": LaunchedOn(frozenset({"c.py"}), {}),
    }
    assert launched_editions(launched, runs) == {
        "one": {"rooms": "E1"},
        "two": {"rooms": "E2", "halls": "E3"},
        "recorded": {"rooms": "E1"},
        "moved": {},
    }
    assert launched_editions(launched, runs.drop(columns="plugins"))["one"] == {}
