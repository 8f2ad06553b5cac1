"""What the dashboard shows, as records: against pandas and numpy on stores of generated numbers. Needs no browser."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from clops_sweep import RunConfig, SearchSpace, folds
from clops_sweep.analysis.as_stored import recorded_experiments
from clops_sweep.analysis.collect import Experiment
from clops_sweep.analysis.dashboard.contexts import shown_columns
from clops_sweep.analysis.dashboard.instances import instances_table
from clops_sweep.analysis.dashboard.records.compare import Compared, best_of_each, comparison
from clops_sweep.analysis.dashboard.records.overlay import overlay
from clops_sweep.analysis.dashboard.records.overview import MOST_DOTS, best_value, counts, progress, run_history
from clops_sweep.analysis.dashboard.records.parallel import MOST_LINES, parallel_coordinates
from clops_sweep.analysis.dashboard.records.run_log import MOST_LINES as MOST_LOGGED
from clops_sweep.analysis.dashboard.records.run_log import run_log
from clops_sweep.analysis.dashboard.records.runs_table import PAGE, matching, runs_csv, runs_table
from clops_sweep.analysis.dashboard.scene import Scene
from clops_sweep.analysis.dashboard.snapshot import FollowedStore
from clops_sweep.analysis.dashboard.source import StoreSource
from clops_sweep.analysis.dashboard.view import MOST_CELLS, PAGES, View
from clops_sweep.analysis.failures import failures
from clops_sweep.analysis.figures.tracings import Frames
from clops_sweep.data.catalog import DataKey
from clops_sweep.errors import UsageError
from clops_sweep.search.records import StudyRecord
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.writing import merge_parts
from tests.stores import record_failure, write_finished

START = pd.Timestamp("2026-01-05", tz="UTC")


class Recorded:
    """The runs of a store as experiments; counts how often it was asked, and for how many runs."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def experiments(self, runs: pd.DataFrame) -> list[tuple[Experiment, StudyRecord | None]]:
        self.asked.append(len(runs))
        return [(it, None) for it in recorded_experiments(runs.reset_index(drop=True))]

    def frames(self, experiments: Sequence[Experiment]) -> Sequence[Frames]:
        return ()

    def mark(self) -> Hashable:
        return ()


@pytest.fixture(scope="module")
def followed(store: RunStore) -> FollowedStore:
    return FollowedStore(store, Recorded(), 0)


@pytest.fixture(scope="module")
def experiment(followed: FollowedStore) -> Experiment:
    return followed.snapshot.followed["synthetic class_il clops"].experiment


# --- addresses --------------------------------------------------------------------------------------------------------


def test_an_address_holds_a_view_whole() -> None:
    view = View(
        page="heatmap", experiment="a & b=c", metric="bwt", rows="x", columns="y", slice=("é=λ = 1", "z=2"),
        cells=("1", "2"), reference="1", where='auc > 0.5 and storage_order == "top"', find="b = 0.5", group=("x",),
        show=("auc",), sort="-auc", at=3, run="ab", task="0-1", instance=7,
    )  # fmt: skip
    assert View.read(view.address()) == view
    assert View().address() == "?"
    assert View.read("") == View()


@pytest.mark.parametrize(
    "query", ["?page=nowhere&at=-3", "?at=x&instance=999999999999999999999", "?unknown=1&page=&&&=", "?at=٣", "%00?%ff"]
)
def test_an_address_that_nobody_has_made_is_the_page_that_everybody_begins_with(query: str) -> None:
    assert View.read(query) == View()


def test_cells_are_chosen_and_left_out_under_any_of_their_runs() -> None:
    view = View(cells=("a1", "b1"))
    assert view.with_cell("c1") == ("a1", "b1", "c1")
    assert view.with_cell("b2", alike=("b1", "b2")) == ("a1",)
    many = View(cells=tuple(map(str, range(MOST_CELLS))))
    assert many.with_cell("new") == (*map(str, range(1, MOST_CELLS)), "new")
    assert set(PAGES) == {"overview", "runs", "compare", "heatmap", "parallel", "run", "instances", "search"}


def test_axes_change_places() -> None:
    view = View(rows="a", columns="b")
    assert View.read(view.after("rows", "b")) == View(rows="b", columns="a")
    assert View.read(view.after("rows", "c")) == View(rows="c", columns="b")


def test_a_slice_keeps_the_other_labels_and_the_last_choice_last() -> None:
    view = View(slice=("a=1", "b=2", "gone=3"))
    shown = {"b": "2", "c": "5", "a": "1"}
    assert View.read(view.sliced(shown, "b", "4")).slice == ("c=5", "a=1", "b=4")
    assert View.read(view.sliced(shown, "c", "6")).slice == ("a=1", "b=2", "c=6")


# --- following --------------------------------------------------------------------------------------------------------


def test_only_what_is_new_is_read(tmp_path: Path, generated: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    space = SearchSpace(
        name="s", base=RunConfig(epochs_per_task=5), axes={"storage_fraction": [0.1, 0.5]}, seeds=[0, 1]
    )
    requests = list(space.requests())
    store, source = RunStore(tmp_path / "results"), Recorded()
    store.open_for_writing()
    followed = FollowedStore(store, source, 0)
    assert followed.snapshot.followed == {}

    def write(position: int, fails: bool = False) -> str:
        config = requests[position].config
        run_id = config.run_id("generated0001")
        if fails:
            generated.write_failed_run(store, config, run_id)
        else:
            write_finished(store, run_id, generated.generated_tables(config, run_id, instances=2, epochs=1))
        return run_id

    first, second = write(0), write(1, fails=True)
    snapshot = followed.refresh()
    assert snapshot.runs["status"].to_dict() == {first: "finished", second: "failed"}
    assert followed.refresh() is snapshot, "nothing has changed, and nothing is made anew"

    read: list[Sequence[str] | None] = []
    plain = RunStore.read

    def noted(self: RunStore, table: str, run_ids: Sequence[str] | None = None, *rest: object) -> pd.DataFrame:
        read.append(run_ids)
        return plain(self, table, run_ids, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(RunStore, "read", noted)
    third = write(2)
    write(1)
    after = followed.refresh()
    assert read == [sorted([second, third])], "the new run, and the one whose failure was made good"
    assert after.version == snapshot.version + 1
    assert dict.fromkeys([first, second, third], "finished") == after.runs["status"].to_dict()

    with store.locked():
        merge_parts(store)
    assert followed.refresh() is after, "put together, the runs are the same"
    pd.testing.assert_frame_equal(
        after.runs.reset_index(drop=True), plain(store, "runs"), check_dtype=False, check_like=True
    )
    for part in (tmp_path / "results" / "runs").glob("*.parquet"):
        part.unlink()
    assert followed.refresh().runs.empty


def test_a_store_that_cannot_be_read_is_shown_as_it_was(tmp_path: Path, generated: ModuleType) -> None:
    space = SearchSpace(name="s", base=RunConfig(epochs_per_task=5), seeds=[0])
    store = RunStore(tmp_path / "results")
    generated.write_generated_runs(store, [space], instances=2, epochs=1)
    followed = FollowedStore(store, Recorded(), 0)
    good = followed.snapshot
    damaged = tmp_path / "results" / "runs" / f"{store.next_stem()}-0123456789abcdef.parquet"
    damaged.write_bytes(b"not Parquet")
    shown = followed.refresh()
    assert "its bytes are not those that were written there" in shown.problem
    assert (shown.runs is good.runs, shown.version) == (True, good.version + 1)
    assert followed.refresh().version == shown.version, "the same problem is no news"
    damaged.unlink()
    assert followed.refresh().problem == ""


def test_a_run_that_fails_again_shows_its_new_error(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "results")
    config = RunConfig()
    run_id = config.run_id("generated0001")

    def fail(error: str) -> None:
        record_failure(store, {run_id: config}, f"ValueError: {error}\n", lambda _: "generated0001", {})

    fail("first")
    followed = FollowedStore(store, StoreSource(store, lambda key: None), 0)
    assert [it.reason for it in failures(followed.snapshot.runs)] == ["ValueError: first"]
    version = followed.refresh().version
    fail("other")
    assert followed.refresh().version == version + 1
    assert [it.reason for it in failures(followed.snapshot.runs)] == ["ValueError: other"]
    assert followed.refresh().version == version + 1


@pytest.mark.parametrize("replacement", ["nothing", "a FIFO", "a device", "a file"])
@pytest.mark.parametrize("place", ["", "runs"])
def test_a_store_that_is_replaced_while_it_is_followed_is_a_sentence(
    place: str, replacement: str, tmp_path: Path, generated: ModuleType
) -> None:
    store = RunStore(tmp_path / "results")
    generated.write_generated_runs(store, [SearchSpace(name="one", base=RunConfig(), seeds=[0])])
    followed = FollowedStore(store, StoreSource(store, lambda key: None), 0)
    path = tmp_path / "results" / place
    path.rename(tmp_path / "before")
    if replacement == "a FIFO":
        os.mkfifo(path)
    elif replacement == "a device":
        path.symlink_to("/dev/zero")
    elif replacement == "a file":
        path.write_text("no folder")
    snapshot = followed.refresh()
    if place and replacement == "nothing":  # as in a store that has no run yet
        assert (snapshot.problem, len(snapshot.runs)) == ("", 0)
    else:
        assert "results" in snapshot.problem
        assert len(snapshot.runs) == 1, "what was there is shown still"
    if path.is_symlink() or path.exists():
        path.unlink()
    (tmp_path / "before").rename(path)
    assert followed.refresh().problem == ""
    assert len(followed.snapshot.runs) == 1


def test_of_many_who_ask_at_a_time_one_reads(store: RunStore) -> None:
    source = Recorded()
    followed = FollowedStore(store, source, seconds=3600)
    followed.refresh()
    followed.refresh()
    assert len(source.asked) == 1


# --- experiments ------------------------------------------------------------------------------------------------------


def test_a_grid_that_is_not_everywhere_keeps_its_axes(experiment: Experiment, store: RunStore) -> None:
    assert set(experiment.axes) == {"storage_order", "storage_fraction", "acquisition_fraction"}
    runs = store.read("runs")
    clops = runs[runs["strategy"] == "clops"]
    assert len(experiment.runs) == len(clops)
    assert len(experiment.cells) == 11, "twelve places, of one of which there is no run"
    for cell, it in enumerate(experiment.cells):
        mine = clops[
            np.logical_and.reduce([clops[axis] == label for axis, label in it.labels.items()])
            & (clops["status"] == "finished")
        ]
        assert set(experiment.run_ids(cell)) == set(mine["run_id"])


def test_fields_without_a_value_are_one_label() -> None:
    configs = [RunConfig(seed=seed, weight_seed=weights) for seed in (0, 1) for weights in (None, 3)]
    rows = [{**config.model_dump(mode="json"), "run_id": str(i)} for i, config in enumerate(configs)]
    facts = {"status": "finished", "data_hash": "a", "semantics_version": 1, "started_at": pd.Timestamp(0, tz="UTC")}
    (experiment,) = recorded_experiments(pd.DataFrame(rows).assign(**facts))
    assert experiment.axes == {"weight_seed": (3.0, None)}
    assert len(experiment.cells) == 2


# --- tables -----------------------------------------------------------------------------------------------------------


def finished(experiment: Experiment) -> pd.DataFrame:
    """The finished runs with their labels, for pandas."""
    runs = experiment.runs[experiment.runs["status"] == "finished"].copy()
    return runs.drop(columns="cell")


@pytest.mark.parametrize(
    ("condition", "query"),
    [
        ("auc > 0.75 and storage_fraction in [0.5, 1.0]",) * 2,
        ('storage_order == "top" or seed == 1',) * 2,
        ("not bwt < -0.05", "~(bwt < -0.05)"),
    ],
)
def test_a_condition_says_what_pandas_says(experiment: Experiment, condition: str, query: str) -> None:
    kept = experiment.runs[matching(experiment, condition)]
    kept = kept[kept["status"] == "finished"]
    expected = finished(experiment).query(query)
    assert sorted(kept["run_id"]) == sorted(expected["run_id"])
    assert 0 < len(kept) < len(finished(experiment))


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("aucs > 0.5", r"there is no column 'aucs' \(did you mean 'auc'\?\)"),
        ("auc = 0.5", "compares with == and not with ="),
        ("__import__('os')", "it takes comparisons"),
        ("status < 3", "'<' not supported"),
        ("auc", "neither true nor false"),
    ],
)
def test_a_condition_that_is_none_is_a_sentence(experiment: Experiment, condition: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        matching(experiment, condition)


@pytest.mark.parametrize("group", [["storage_fraction"], ["storage_order", "acquisition_fraction"]])
def test_groups_are_those_of_pandas(experiment: Experiment, group: list[str]) -> None:
    table = runs_table(experiment, ["auc", "bwt"], group=group, sort="-auc")
    grouped = finished(experiment).groupby(group)[["auc", "bwt"]].agg(["mean", "std", "count"])
    assert len(table.rows) == len(grouped)
    means = [row.values[0].mean for row in table.rows]
    assert means == sorted(means, reverse=True)
    for row in table.rows:
        expected = grouped.loc[row.labels if len(group) > 1 else row.labels[0]]
        for column, value in zip(("auc", "bwt"), row.values, strict=True):
            assert (value.mean, value.sd, value.n) == pytest.approx(tuple(expected[column]))
    assert sum(sum(row.counts.values()) for row in table.rows) == len(experiment.runs) == table.runs


def test_pages_hold_every_run_once_whatever_the_order(generated: ModuleType, tmp_path: Path) -> None:
    space = SearchSpace(
        name="s",
        base=RunConfig(),
        axes={"storage_fraction": [i / 40 for i in range(1, 41)]},
        seeds=range(3),
    )
    store = RunStore(tmp_path / "results")
    rng = np.random.default_rng(0)
    given = [(request.config, {"auc": float(rng.random())}) for request in space.requests()]
    given[7][1]["auc"] = float("nan")
    generated.write_given_runs(store, given)
    (experiment,) = recorded_experiments(store.read("runs"))
    for sort, expected in (
        ("auc", sorted(it["auc"] for _, it in given if it["auc"] == it["auc"])),
        ("-auc", sorted((it["auc"] for _, it in given if it["auc"] == it["auc"]), reverse=True)),
    ):
        pages = [runs_table(experiment, ["auc"], sort=sort, at=at) for at in (1, 2, 3)]
        assert [len(page.rows) for page in pages] == [PAGE, PAGE, 120 - 2 * PAGE]
        rows = [row for page in pages for row in page.rows]
        assert [row.values[0].mean for row in rows[:-1]] == expected
        assert rows[-1].values[0].n == 0, "what has no value is last in either direction"
        assert len({row.run_ids for row in rows}) == 120
    plain = runs_table(experiment, ["auc"], at=99)
    assert (plain.at, plain.pages) == (3, 3)
    assert [row.labels for row in plain.rows] == sorted(row.labels for row in plain.rows), "by axes and seeds"
    assert runs_table(experiment, ["auc"], condition="storage_fraction > 9").rows == ()


def test_progress_counts_and_failures_have_their_errors(followed: FollowedStore, store: RunStore) -> None:
    runs = store.read("runs")
    found = {it.name: it for it in progress(followed.snapshot)}
    assert set(found) == {"synthetic class_il clops", "synthetic class_il finetune"}
    clops = runs[runs["strategy"] == "clops"]
    it = found["synthetic class_il clops"]
    assert (it.finished, it.failed, it.missing) == (len(clops) - 3, 3, 0)
    ended = clops["started_at"] + clops["seconds"].fillna(0).map(lambda seconds: timedelta(seconds=seconds))
    assert it.last is not None
    assert abs(it.last - ended.max()) < timedelta(milliseconds=1)
    (failure,) = failures(followed.snapshot.followed["synthetic class_il clops"].experiment.runs)
    assert failure.reason == "ValueError: generated failure"
    assert failure.error.startswith("Traceback (most recent call last):")
    assert set(failure.run_ids) == set(runs.loc[runs["status"] == "failed", "run_id"])


# --- figures ----------------------------------------------------------------------------------------------------------


def test_lines_go_through_the_places_of_their_configuration(experiment: Experiment) -> None:
    record = parallel_coordinates(experiment, "auc", range(len(experiment.cells)))
    assert record.axes == tuple(experiment.axes)
    assert record.total == len(record.cells) == 10, "one configuration has failed"
    assert record.values.tolist() == sorted(record.values.tolist()), "the best is drawn last"
    for line, cell in enumerate(record.cells):
        values = experiment.by_replicate("auc")[cell]
        assert record.values[line] == np.nanmean(values)
        for at, axis in enumerate(record.axes):
            labels = experiment.axes[axis]
            assert labels[round(record.places[line, at] * (len(labels) - 1))] == experiment.cells[cell].labels[axis]
    falling = parallel_coordinates(experiment, "seconds", range(len(experiment.cells)))
    assert falling.values.tolist() == sorted(falling.values.tolist(), reverse=True), "fewer seconds are better"
    assert MOST_LINES >= 1000


def scene_of(followed: FollowedStore, **given: object) -> Scene:
    view = View(page="heatmap", experiment="synthetic class_il clops", **given)  # type: ignore[arg-type]
    scene = Scene.of(view, followed.snapshot, followed.store)
    assert scene is not None
    return scene


def test_a_scene_without_a_validation_set_shows_test_metrics(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path / "results")
    configs = [RunConfig(strategy="finetune", seed=seed) for seed in range(2)]
    generated.write_given_runs(store, [(config, {"test_auc": 0.7, "test_bwt": -0.1}) for config in configs])
    found = FollowedStore(store, Recorded(), 0)
    scene = Scene.of(View(page="heatmap"), found.snapshot, store)
    assert scene is not None
    assert scene.view.metric == "test_auc"
    (panel,) = scene.heatmap().panels
    assert panel.mean.tolist() == [[pytest.approx(0.7)]]
    assert shown_columns(scene) == ("test_auc", "test_bwt")


def test_a_scene_fills_in_what_is_not_chosen(followed: FollowedStore) -> None:
    scene = scene_of(followed, metric="nothing", rows="nothing")
    assert (scene.view.metric, scene.view.rows, scene.view.columns) == (
        "auc",
        "storage_fraction",
        "acquisition_fraction",
    )
    assert scene_of(followed, columns="storage_fraction").view.rows == "acquisition_fraction"
    assert scene_of(followed, rows="storage_order").view.columns == "storage_fraction"
    panel = scene.panel()
    assert panel is not None
    assert panel.title == "random", "both have five cells, and it is the first"
    chosen = scene_of(followed, slice=("storage_order=top",)).panel()
    assert chosen is not None
    assert chosen.title == "top"


def test_a_scene_begins_with_the_headline_metric_of_the_scenario(tmp_path: Path, generated: ModuleType) -> None:
    space = SearchSpace("union", RunConfig(scenario="class_il_union"), {"storage_fraction": [0.1, 0.5]}, [0])
    store = RunStore(tmp_path / "results")
    values = {"auc": 0.9, "balanced_accuracy": 0.4, "balanced_accuracy_forgetting": 0.5}
    generated.write_given_runs(store, [(request.config, values) for request in space.requests()])
    followed = FollowedStore(store, StoreSource(store, lambda key: None, lambda: [space]), 0)
    scene = Scene.of(View(page="heatmap"), followed.snapshot, store)
    assert scene is not None
    assert scene.view.metric == "balanced_accuracy"
    assert scene.followed.metrics[:2] == ("balanced_accuracy", "balanced_accuracy_forgetting")


def test_a_cell_is_found_under_any_of_its_runs(followed: FollowedStore, experiment: Experiment) -> None:
    for run_id in experiment.run_ids(3):
        assert scene_of(followed, cells=(run_id,)).chosen() == [3]
    assert scene_of(followed, cells=("nothing", experiment.run_ids(3)[0], experiment.run_ids(3)[1])).chosen() == [3]


def test_of_cells_that_share_a_run_that_of_the_panel_is_chosen(tmp_path: Path, generated: ModuleType) -> None:
    space = SearchSpace(
        "shared",
        RunConfig(acquisition_fraction=1.0),
        {
            "variant": {"CLOPS": {}, "Random": {"acquisition": "random"}},
            "storage_fraction": [0.1, 0.5],
            "epochs_per_task": [5, 6],
        },
        [0],
    )
    store = RunStore(tmp_path / "results")
    configs = {it.config.identity: it.config for it in space.requests()}
    assert len(configs) == 4, "at a = 1 everything is replayed"
    generated.write_given_runs(store, [(config, {"auc": 0.7}) for config in configs.values()])
    followed = FollowedStore(store, StoreSource(store, lambda key: None, lambda: [space]), 0)
    for label, cells in (("CLOPS", range(4)), ("Random", range(4, 8))):
        shown = View(page="heatmap", slice=(f"variant={label}",))
        scene = Scene.of(shown, followed.snapshot, store)
        assert scene is not None
        for cell in cells:
            key = scene.key_of(cell)
            assert key is not None
            again = Scene.of(replace(shown, cells=(key,)), followed.snapshot, store)
            assert again is not None
            assert again.chosen() == [cell]


def test_curves_and_r_are_those_of_the_cell(followed: FollowedStore, experiment: Experiment, store: RunStore) -> None:
    scene = scene_of(followed)
    curves, matrix = store.read("curves", experiment.run_ids(3)), store.read("r_matrix", experiment.run_ids(3))
    record = scene.curves(3)
    expected = curves.pivot_table("auc", index="task", columns="epoch", aggfunc=["mean", "std"])
    np.testing.assert_allclose(record.mean, expected["mean"].loc[list(record.tasks)])
    np.testing.assert_allclose(record.sd, expected["std"].loc[list(record.tasks)])
    for metric, split in (("auc", "validation"), ("test_auc", "test")):
        r = scene_of(followed, metric=metric).r_matrix(3)
        of_split = matrix[matrix["split"] == split]
        mean = of_split.pivot_table("auc", index="trained_on", columns="evaluated_on", aggfunc="mean")
        np.testing.assert_allclose(r.mean, mean)


@pytest.mark.parametrize(("axes", "shape"), [({}, (1, 1)), ({"storage_fraction": [0.1, 0.5, 1.0]}, (3, 1))])
def test_an_experiment_of_fewer_axes_has_a_heatmap(
    axes: dict[str, list[float]], shape: tuple[int, int], generated: ModuleType, tmp_path: Path
) -> None:
    space = SearchSpace(name="s", base=RunConfig(), axes=axes, seeds=range(2))
    store = RunStore(tmp_path / "results")
    generated.write_given_runs(store, [(it.config, {"auc": 0.5 + 0.1 * it.config.seed}) for it in space.requests()])
    followed = FollowedStore(store, Recorded(), 0)
    scene = Scene.of(View(page="heatmap"), followed.snapshot, store)
    assert scene is not None
    panel = scene.panel()
    assert panel is not None
    np.testing.assert_allclose(panel.mean, np.full(shape, 0.55))


def test_instances_are_sorted_and_those_of_a_task(experiment: Experiment, store: RunStore) -> None:
    rows = store.read("instances", [experiment.run_ids(3)[0]])
    table = instances_table(rows, task="2-3", sort="-times_replayed")
    expected = rows[rows["task"] == "2-3"]
    assert table.total == len(expected) == 24
    assert table.rows["times_replayed"].tolist() == sorted(expected["times_replayed"], reverse=True)
    everything = [instances_table(rows, task="no task", sort="no column", at=at) for at in range(1, 5)]
    hardest_first = pd.concat([page.rows for page in everything])
    assert hardest_first["s"].tolist() == sorted(rows["s"])
    assert (everything[0].pages, everything[0].total) == (4, 96)


# --- where experiments come from --------------------------------------------------------------------------------------


def test_with_search_spaces_missing_runs_are_counted(tmp_path: Path, generated: ModuleType) -> None:
    space = SearchSpace("own", RunConfig(), {"storage_fraction": [0.1, 0.5]}, range(2))
    store = RunStore(tmp_path / "results")
    done = [(it.config, {"auc": 0.7}) for it in space.requests() if it.config.storage_fraction == 0.1]
    generated.write_given_runs(store, done)
    followed = FollowedStore(store, StoreSource(store, lambda key: None, lambda: [space]), 0)
    (it,) = progress(followed.snapshot)
    assert (it.name, it.finished, it.missing, it.asked) == ("own", 2, 2, 4)


def test_frames_are_looked_for_once_for_every_split(tmp_path: Path, generated: ModuleType) -> None:
    configs = [RunConfig(dataset="synthetic", split_seed=split) for split in (0, 3, 5)]
    store = RunStore(tmp_path / "results")
    generated.write_given_runs(store, [(config, {"auc": 0.7}) for config in configs])
    keys: list[DataKey] = []
    followed = FollowedStore(store, StoreSource(store, keys.append), 0)
    generated.write_given_runs(store, [(configs[0].replace(seed=1), {"auc": 0.7})])
    assert followed.refresh().version == 2
    assert keys == [config.data_key for config in configs]


# --- overview ---------------------------------------------------------------------------------------------------------


def test_the_best_configuration_has_the_best_mean_and_students_interval(experiment: Experiment) -> None:
    runs = finished(experiment).assign(cell=experiment.runs["cell"])
    by_cell = runs.groupby("cell")["auc"].agg(["mean", "std", "count"])
    competing = by_cell[by_cell["count"] >= 3]
    best = best_value(experiment, "auc")
    assert best is not None
    assert best.cell == competing["mean"].idxmax()
    assert (best.estimate.mean, best.estimate.sd, best.estimate.n) == pytest.approx(tuple(by_cell.loc[best.cell]))
    assert best.interval is not None
    expected = stats.t.interval(0.95, 2, best.estimate.mean, best.estimate.sd / np.sqrt(3))
    assert (best.interval.low, best.interval.high) == pytest.approx(expected)
    lowest = best_value(experiment, "seconds")
    assert lowest is not None
    of_cells = runs.groupby("cell")["seconds"].mean()[competing.index]
    assert lowest.cell == of_cells.idxmin(), "fewer seconds are better"
    assert best_value(experiment, "replayed") is None, "neither more nor less is better"


def test_one_lucky_seed_is_no_best_configuration(tmp_path: Path, generated: ModuleType) -> None:
    space = SearchSpace("s", RunConfig(), {"storage_fraction": [0.1, 0.5]}, range(3))
    store = RunStore(tmp_path / "results")
    given = [(it.config, {"auc": 0.7}) for it in space.requests() if it.config.storage_fraction == 0.1]
    lucky = next(it.config for it in space.requests() if it.config.storage_fraction == 0.5)
    generated.write_given_runs(store, [given[0], (lucky, {"auc": 0.9})])
    (young,) = recorded_experiments(store.read("runs"))
    best = best_value(young, "auc")
    assert best is not None
    assert best.estimate.mean == 0.9, "as long as none has three runs"
    assert not best.has_interval
    generated.write_given_runs(store, given)
    (grown,) = recorded_experiments(store.read("runs"))
    best = best_value(grown, "auc")
    assert best is not None
    assert (best.estimate.mean, best.estimate.n) == (pytest.approx(0.7), 3)
    assert not best.has_interval, "equal values have no spread to judge by"


def test_runs_stand_in_the_order_in_which_they_ended(experiment: Experiment) -> None:
    n = MOST_DOTS + 500
    values = np.random.default_rng(0).random(n)
    runs = (
        finished(experiment)
        .iloc[np.arange(n) % 20]
        .assign(run_id=[f"{at:024x}" for at in range(n)], auc=values, seconds=np.arange(n, 0, -1.0), started_at=START)
    )
    record = run_history(replace(experiment, runs=runs), "auc")
    in_order = values[::-1]
    assert record.total == n
    assert MOST_DOTS <= len(record.values) < MOST_DOTS + 50
    np.testing.assert_array_equal(record.values, in_order[record.numbers - 1])
    np.testing.assert_array_equal(record.best, np.maximum.accumulate(in_order)[record.numbers - 1])
    assert record.values.max() == values.max(), "the best of all is never left out"


def test_a_run_of_two_experiments_is_counted_once(tmp_path: Path, generated: ModuleType) -> None:
    one = SearchSpace("one", RunConfig(), {"storage_fraction": [0.1, 0.5]}, [0, 1])
    two = SearchSpace("two", RunConfig(), {"storage_fraction": [0.5, 0.9]}, [0, 1])
    store = RunStore(tmp_path / "results")
    done = [it.config for it in one.requests()][:3]
    generated.write_given_runs(store, [(config, {"auc": 0.7}) for config in done])
    followed = FollowedStore(store, StoreSource(store, lambda key: None, lambda: [one, two]), 0)
    unique = {it.config.identity for space in (one, two) for it in space.requests()}
    assert counts(followed.snapshot) == {"finished": 3, "missing": len(unique) - 3}


# --- curves of several, and comparison --------------------------------------------------------------------------------


def test_a_line_is_the_mean_over_the_tasks_seen_so_far(experiment: Experiment, store: RunStore) -> None:
    ids = experiment.run_ids(3)
    rows = store.read("curves", ids)
    (line,) = overlay("auc", [("a", rows)]).lines
    order = list(dict.fromkeys(rows.sort_values("epoch")["training_task"]))
    for at, epoch in enumerate(line.epochs):
        of_epoch = rows[rows["epoch"] == epoch]
        seen = order[: order.index(of_epoch["training_task"].iloc[0]) + 1]
        by_run = [of_epoch[(of_epoch["run_id"] == run) & of_epoch["task"].isin(seen)]["auc"].mean() for run in ids]
        assert line.mean[at] == pytest.approx(np.mean(by_run))
        assert line.sd[at] == pytest.approx(np.std(by_run, ddof=1))
    final = experiment.runs.set_index("run_id").loc[list(ids), "auc"].mean()
    assert line.mean[-1] == pytest.approx(final), "it ends at the average AUC"


def test_tasks_that_are_trained_together_are_all_seen_from_the_start() -> None:
    rows = pd.DataFrame(
        [("r", epoch, "all tasks", task, 0.1 * epoch + at) for epoch in (1, 2) for at, task in enumerate("abc")],
        columns=["run_id", "epoch", "training_task", "task", "auc"],
    )
    found = overlay("auc", [("joint", rows), ("none", rows[:0])])
    assert found.without == ("none",)
    np.testing.assert_allclose(found.lines[0].mean, [1.1, 1.2])


def test_configurations_of_two_experiments_are_compared_by_seed(followed: FollowedStore, store: RunStore) -> None:
    experiments = {name: it.experiment for name, it in followed.snapshot.followed.items()}
    found = comparison("auc", best_of_each("auc", list(experiments.items())))
    assert [it.name for it in found] == ["synthetic class_il clops", "synthetic class_il finetune"]
    clops, finetune = found
    assert (clops.is_reference, finetune.is_reference, finetune.difference) == (False, True, None)
    runs = store.read("runs").set_index("run_id")

    def by_seed(it: Compared) -> pd.Series:
        ids = list(it.experiment.run_ids(it.value.cell))
        return runs.loc[ids].set_index("seed")["auc"]

    differences = (by_seed(clops) - by_seed(finetune)).dropna()
    assert clops.difference is not None
    assert (clops.difference.mean, clops.difference.n) == (pytest.approx(differences.mean()), 3)
    expected = stats.t.interval(0.95, 2, differences.mean(), differences.std() / np.sqrt(3))
    assert (clops.difference.low, clops.difference.high) == pytest.approx(expected)
    other = comparison("auc", [(it.name, it.experiment, it.value.cell) for it in found], (clops.name, clops.value.cell))
    assert [it.is_reference for it in other] == [True, False]
    assert other[1].difference is not None
    assert other[1].difference.mean == pytest.approx(-differences.mean())


def test_what_was_computed_on_other_data_has_no_difference(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path / "results")
    configs = [
        RunConfig(dataset=dataset, strategy=strategy, seed=seed)
        for dataset, strategy in (("synthetic", "clops"), ("synthetic", "finetune"), ("cardiology", "clops"))
        for seed in range(3)
    ]
    generated.write_given_runs(store, [(it, {"auc": 0.7 + it.seed / 100}) for it in configs])
    experiments = [(it.name, it) for it in recorded_experiments(store.read("runs"))]
    found = {it.name: it for it in comparison("auc", best_of_each("auc", experiments))}
    assert found["synthetic class_il clops"].difference is not None
    assert found["cardiology class_il clops"].difference is None


# --- slices -----------------------------------------------------------------------------------------------------------


def test_a_slice_has_the_label_that_was_chosen_last(tmp_path: Path, generated: ModuleType) -> None:
    axes = {
        "storage_fraction": [0.1, 0.5, 0.9],
        "acquisition_fraction": [0.25, 0.5, 0.75],
        "mc_samples": [10, 20],
        "storage_order": ["top", "random"],
    }
    space = SearchSpace("s", RunConfig(), axes, [0])
    store = RunStore(tmp_path / "results")
    kept = [it.config for it in space.requests() if (it.config.mc_samples, it.config.storage_order) != (20, "random")]
    generated.write_given_runs(store, [(it, {"auc": 0.7}) for it in kept])
    followed = FollowedStore(store, Recorded(), 0)

    def labels(*chosen: str) -> dict[str, str]:
        scene = Scene.of(View(page="heatmap", slice=chosen), followed.snapshot, store)
        assert scene is not None
        panel, found = scene.slice()
        assert panel is not None
        cells = [scene.experiment.cells[cell].config for cell in panel.cells.ravel().tolist()]
        assert {(str(it.mc_samples), it.storage_order) for it in cells} == {
            (found["mc_samples"], found["storage_order"])
        }
        return found

    assert labels("mc_samples=20") == {"mc_samples": "20", "storage_order": "top"}
    assert labels("mc_samples=20", "storage_order=random") == {"mc_samples": "10", "storage_order": "random"}
    assert labels("storage_order=random", "mc_samples=20") == {"mc_samples": "20", "storage_order": "top"}
    assert labels("nothing=1", "mc_samples=99")["mc_samples"] in ("10", "20")


# --- tables and logs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [[], ["storage_fraction"]])
def test_the_csv_has_every_row_in_full_precision(experiment: Experiment, group: list[str]) -> None:
    csv = StringIO(runs_csv(experiment, condition="auc > 0.75", group=group, sort="-auc"))
    found = pd.read_csv(csv, converters={"auc": float, "test_bwt": float, "seconds": float})
    expected = finished(experiment).query("auc > 0.75")
    if group:
        means = expected.groupby(group)["auc"].agg(["mean", "std", "count"]).sort_values("mean", ascending=False)
        np.testing.assert_allclose(found[["auc_mean", "auc_sd", "auc_n"]], means, rtol=1e-13)
        assert found["storage_fraction"].tolist() == means.index.tolist()
    else:
        expected = expected.sort_values("auc", ascending=False)
        assert found["run_id"].tolist() == expected["run_id"].tolist()
        for column in ("auc", "test_bwt", "seconds"):
            assert found[column].tolist() == expected[column].tolist(), "every digit"


@pytest.mark.parametrize("sort", ["status", "ended", "seed", "storage_order"])
def test_a_table_goes_by_any_column(sort: str, experiment: Experiment) -> None:
    rows = runs_table(experiment, ["auc"], sort=sort).rows
    falling = runs_table(experiment, ["auc"], sort=f"-{sort}").rows
    runs = experiment.runs.set_index("run_id").loc[[row.run_ids[0] for row in rows]]
    if sort == "status":
        assert runs["status"].tolist() == sorted(runs["status"]), "failed before finished"
    elif sort == "ended":
        ended = runs["started_at"] + pd.to_timedelta(runs["seconds"].fillna(0), unit="s")
        assert ended.is_monotonic_increasing
    else:
        assert runs[sort].tolist() == sorted(runs[sort])
    assert {row.run_ids for row in rows} == {row.run_ids for row in falling}
    assert rows[0].run_ids != falling[0].run_ids


def test_the_log_of_a_run_has_its_lines_of_all_launches(tmp_path: Path) -> None:
    run, other = "a" * 24, "b" * 24
    empty = RunStore(tmp_path / "results")
    folder = empty.log_folder / "logs"
    folder.mkdir(parents=True)
    (folder / "20260101-000000-1.log").write_text(f"[run {run[:12]}] first\n[run {other[:12]}] not this\n")
    (folder / "20260102-000000-1.log").write_text(f"noise\n[runs {other[:12]} {run[:12]}] second\n")
    os.mkfifo(folder / "20260103-000000-1.log")
    (folder / f"{run}.stacks").write_text("in epoch 3")
    found = run_log(empty, run)
    assert (found.lines, found.whole, found.stacks) == (("first", "second"), True, "in epoch 3")
    many = "".join(f"[run {run[:12]}] {at}\n" for at in range(MOST_LOGGED + 5))
    (folder / "20260104-000000-1.log").write_text(many)
    found = run_log(empty, run)
    assert (found.lines[-1], len(found.lines), found.whole) == (str(MOST_LOGGED + 4), MOST_LOGGED, False)
    for wrong in ("../../../etc/passwd", "", "A" * 24, run[:6]):
        assert run_log(empty, wrong).lines == ()


def test_the_newest_error_of_runs_that_failed_alike_is_shown() -> None:
    runs = pd.DataFrame(
        {
            "run_id": ["a", "b", "c"],
            "status": "failed",
            "error": [
                f"Traceback (most recent call last):\n  {at}\nValueError: same" for at in ("old", "new", "never")
            ],
            "started_at": pd.to_datetime(["2026-01-01", "2026-01-02", None], utc=True),
        }
    )
    (found,) = failures(runs)
    assert found.run_ids == ("b", "a", "c")
    assert "new" in found.error


def test_folds_have_names_and_a_column_of_their_own(tmp_path: Path, generated: ModuleType) -> None:
    store, space = RunStore(tmp_path), SearchSpace("folds", RunConfig(), {"split": folds(3)}, seeds=[0])
    for request in space.requests():
        generated.write_given_runs(store, [(request.config, {"auc": 0.5})], data_hash=f"of_{request.config.split}")
    snapshot = FollowedStore(store, Recorded(), 0).snapshot
    (name,) = snapshot.followed
    scene = Scene.of(View(experiment=name, page="runs"), snapshot, store)
    assert scene is not None
    assert [it.split(", ")[-2] for it in scene.run_names().values()] == [
        f"fold {i}/3 of split seed 0" for i in (1, 2, 3)
    ]
    rows = pd.read_csv(StringIO(runs_csv(scene.experiment, sort="-split")))
    assert rows["split"].tolist() == ["fold:3/3", "fold:2/3", "fold:1/3"]
    assert runs_table(scene.experiment, ["auc"]).label_names[-3:] == ("split_seed", "split", "seed")
