"""What the dashboard shows, as records: against pandas and numpy on stores of generated numbers. Needs no browser."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Sequence
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
from clops_sweep.analysis.dashboard.drawings import Drawings
from clops_sweep.analysis.dashboard.overview import best, counts, progress
from clops_sweep.analysis.dashboard.run_log import MOST_LINES as MOST_LOGGED
from clops_sweep.analysis.dashboard.run_log import run_log
from clops_sweep.analysis.dashboard.runs import PAGE, run_names, runs_table
from clops_sweep.analysis.dashboard.snapshot import FollowedStore
from clops_sweep.analysis.dashboard.source import StoreSource
from clops_sweep.analysis.failures import failures
from clops_sweep.analysis.figures.tracings import Frames
from clops_sweep.analysis.report.planned import Found
from clops_sweep.data.catalog import DataKey
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.writing import merge_parts
from tests.helpers.stores import record_failure, write_finished


class Recorded:
    """The runs of a store as experiments; counts how often it was asked, and for how many runs."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def experiments(self, runs: pd.DataFrame) -> list[Found]:
        self.asked.append(len(runs))
        return [(it, None, None) for it in recorded_experiments(runs.reset_index(drop=True))]

    def frames(self, experiments: Sequence[Experiment]) -> Sequence[Frames]:
        return ()

    def mark(self) -> Hashable:
        return ()


@pytest.fixture(scope="module")
def followed(store: RunStore) -> FollowedStore:
    return FollowedStore(store, Recorded(), 0)


@pytest.fixture(scope="module")
def experiment(followed: FollowedStore) -> Experiment:
    return followed.snapshot.sections["synthetic class_il clops"].experiment


def finished(experiment: Experiment) -> pd.DataFrame:
    """The finished runs, for pandas."""
    return experiment.runs[experiment.runs["status"] == "finished"]


def until(condition: Callable[[], bool]) -> None:
    """Waits until something is true; a minute, for a machine that has other things to do."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# --- following --------------------------------------------------------------------------------------------------------


def test_only_what_is_new_is_read(tmp_path: Path, generated: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    space = SearchSpace(
        name="s", base=RunConfig(epochs_per_task=5), axes={"storage_fraction": [0.1, 0.5]}, seeds=[0, 1]
    )
    requests = list(space.requests())
    store, source = RunStore(tmp_path / "results"), Recorded()
    store.open_for_writing()
    followed = FollowedStore(store, source, 0)
    assert followed.snapshot.sections == {}

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


def test_with_search_spaces_missing_runs_are_counted(tmp_path: Path, generated: ModuleType) -> None:
    space = SearchSpace("own", RunConfig(), {"storage_fraction": [0.1, 0.5]}, range(2))
    store = RunStore(tmp_path / "results")
    done = [(it.config, {"auc": 0.7}) for it in space.requests() if it.config.storage_fraction == 0.1]
    generated.write_given_runs(store, done)
    followed = FollowedStore(store, StoreSource(store, lambda key: None, lambda: [space]), 0)
    (it,) = progress(followed.snapshot)
    assert (it.name, it.finished, it.missing, it.total) == ("own", 2, 2, 4)


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


def test_progress_counts_and_failures_have_their_errors(followed: FollowedStore, store: RunStore) -> None:
    runs = store.read("runs")
    found = {it.name: it for it in progress(followed.snapshot)}
    assert set(found) == {"synthetic class_il clops", "synthetic class_il finetune"}
    clops = runs[runs["strategy"] == "clops"]
    it = found["synthetic class_il clops"]
    assert (it.finished, it.failed, it.running, it.missing) == (len(clops) - 3, 3, 0, 0)
    ended = clops["started_at"] + clops["seconds"].fillna(0).map(lambda seconds: timedelta(seconds=seconds))
    assert it.ended == pytest.approx(ended.max().timestamp())
    (failure,) = failures(followed.snapshot.sections["synthetic class_il clops"].experiment.runs)
    assert failure.reason == "ValueError: generated failure"
    assert failure.error.startswith("Traceback (most recent call last):")
    assert set(failure.run_ids) == set(runs.loc[runs["status"] == "failed", "run_id"])


def test_the_best_configuration_has_the_best_mean_and_students_interval(experiment: Experiment) -> None:
    by_cell = finished(experiment).groupby("cell")["auc"].agg(["mean", "std", "count"])
    expected = by_cell.loc[by_cell[by_cell["count"] >= 3]["mean"].idxmax()]
    found = best(experiment)
    assert found is not None
    assert (found.estimate.mean, found.estimate.sd, found.estimate.n) == pytest.approx(tuple(expected))
    assert found.interval is not None
    limits = stats.t.interval(0.95, 2, found.estimate.mean, found.estimate.sd / np.sqrt(3))
    assert (found.interval.low, found.interval.high) == pytest.approx(limits)
    assert found.interval_text == f"[{limits[0]:.3f}, {limits[1]:.3f}]"
    of_seconds = finished(experiment).groupby("cell")["seconds"].mean()[by_cell["count"] >= 3]
    lowest = best(experiment.judged_by(["seconds"]))
    assert lowest is not None
    assert lowest.estimate.mean == pytest.approx(of_seconds.min()), "fewer seconds are better"
    assert best(experiment.judged_by(["replayed"])) is None, "neither more nor less is better"


def test_without_a_validation_set_the_best_is_of_the_test_set(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path / "results")
    configs = [RunConfig(strategy="finetune", seed=seed) for seed in range(2)]
    generated.write_given_runs(store, [(config, {"test_auc": 0.7, "test_bwt": -0.1}) for config in configs])
    (it,) = progress(FollowedStore(store, Recorded(), 0).snapshot)
    assert it.best is not None
    assert (it.best.metric.column, it.best.estimate.mean) == ("test_auc", pytest.approx(0.7))


def test_one_lucky_seed_is_no_best_configuration(tmp_path: Path, generated: ModuleType) -> None:
    space = SearchSpace("s", RunConfig(), {"storage_fraction": [0.1, 0.5]}, range(3))
    store = RunStore(tmp_path / "results")
    given = [(it.config, {"auc": 0.7}) for it in space.requests() if it.config.storage_fraction == 0.1]
    lucky = next(it.config for it in space.requests() if it.config.storage_fraction == 0.5)
    generated.write_given_runs(store, [given[0], (lucky, {"auc": 0.9})])
    (young,) = recorded_experiments(store.read("runs"))
    found = best(young)
    assert found is not None
    assert (found.estimate.mean, found.interval_text) == (0.9, ""), "as long as none has three runs"
    generated.write_given_runs(store, given)
    (grown,) = recorded_experiments(store.read("runs"))
    found = best(grown)
    assert found is not None
    assert (found.estimate.mean, found.estimate.n) == (pytest.approx(0.7), 3)
    assert found.interval_text == "", "equal values have no spread to judge by"


def test_a_run_of_two_experiments_is_counted_once(tmp_path: Path, generated: ModuleType) -> None:
    one = SearchSpace("one", RunConfig(), {"storage_fraction": [0.1, 0.5]}, [0, 1])
    two = SearchSpace("two", RunConfig(), {"storage_fraction": [0.5, 0.9]}, [0, 1])
    store = RunStore(tmp_path / "results")
    done = [it.config for it in one.requests()][:3]
    generated.write_given_runs(store, [(config, {"auc": 0.7}) for config in done])
    followed = FollowedStore(store, StoreSource(store, lambda key: None, lambda: [one, two]), 0)
    unique = {it.config.identity for space in (one, two) for it in space.requests()}
    assert counts(followed.snapshot) == {"finished": 3, "missing": len(unique) - 3}


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


# --- runs -------------------------------------------------------------------------------------------------------------


def test_pages_hold_every_run_once_whatever_the_order(generated: ModuleType, tmp_path: Path) -> None:
    space = SearchSpace("s", RunConfig(), {"storage_fraction": [i / 40 for i in range(1, 41)]}, range(3))
    store = RunStore(tmp_path / "results")
    rng = np.random.default_rng(0)
    given = [(request.config, {"auc": float(rng.random())}) for request in space.requests()]
    given[7][1]["auc"] = float("nan")
    generated.write_given_runs(store, given)
    (experiment,) = recorded_experiments(store.read("runs"))
    known = sorted(it["auc"] for _, it in given if it["auc"] == it["auc"])
    for sort, expected in (("auc", known), ("-auc", known[::-1])):
        table = runs_table(experiment, frozenset(), sort=sort)
        rows = pd.concat([table.page(at)[0] for at in (1, 2, 3)])
        assert (table.page(1)[2], len(table.page(3)[0])) == (3, 120 - 2 * PAGE)
        assert rows["auc"].tolist()[:-1] == expected
        assert np.isnan(rows["auc"].iloc[-1]), "what has no value is last in either direction"
        assert rows["run_id"].is_unique
    rows, at, _ = runs_table(experiment, frozenset()).page(99)
    labels = rows[["storage_fraction", "seed"]].astype(float).to_numpy().tolist()
    assert (at, labels) == (3, sorted(labels)), "by axes and seeds"


def test_the_csv_has_every_row_in_full_precision(experiment: Experiment) -> None:
    table = runs_table(experiment, frozenset(), sort="-auc", status="finished")
    found = pd.read_csv(StringIO(table.csv()), converters={"auc": float, "test_bwt": float, "seconds": float})
    expected = finished(experiment).sort_values("auc", ascending=False)
    assert found["run_id"].tolist() == expected["run_id"].tolist()
    for column in ("auc", "test_bwt", "seconds"):
        assert found[column].tolist() == expected[column].tolist(), "every digit"
    assert found["storage_fraction"].tolist() == expected["storage_fraction"].tolist()


@pytest.mark.parametrize("sort", ["status", "ended", "seed", "storage_order", "storage_fraction"])
def test_a_table_goes_by_any_column(sort: str, experiment: Experiment) -> None:
    rows = runs_table(experiment, frozenset(), sort=sort).frame
    falling = runs_table(experiment, frozenset(), sort=f"-{sort}").frame
    runs = experiment.runs.set_index("run_id").loc[rows["run_id"]]
    if sort == "ended":
        assert (runs["started_at"] + pd.to_timedelta(runs["seconds"].fillna(0), unit="s")).is_monotonic_increasing
    else:
        assert runs[sort].tolist() == sorted(runs[sort])
    assert set(rows["run_id"]) == set(falling["run_id"])
    assert rows["run_id"].iloc[0] != falling["run_id"].iloc[0]


def test_folds_have_names_and_a_column_of_their_own(tmp_path: Path, generated: ModuleType) -> None:
    store, space = RunStore(tmp_path), SearchSpace("folds", RunConfig(), {"split": folds(3)}, seeds=[0])
    for request in space.requests():
        generated.write_given_runs(store, [(request.config, {"auc": 0.5})], data_hash=f"of_{request.config.split}")
    (section,) = FollowedStore(store, Recorded(), 0).snapshot.sections.values()
    names = run_names(section.experiment, section.experiment.runs.sort_values("split"))
    assert names == [f"fold {i}/3 of split seed 0, seed 0" for i in (1, 2, 3)]
    table = runs_table(section.experiment, frozenset(), sort="-split")
    assert pd.read_csv(StringIO(table.csv()))["split"].tolist() == ["fold:3/3", "fold:2/3", "fold:1/3"]
    assert table.labels[-3:] == ("split_seed", "split", "seed")


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


# --- the open section -------------------------------------------------------------------------------------------------


def test_the_open_section_is_the_report_s_and_is_drawn_again_when_a_run_ends(
    tmp_path: Path, generated: ModuleType
) -> None:
    space = SearchSpace("s", RunConfig(epochs_per_task=5), {"storage_fraction": [0.1, 0.5]}, range(3))
    store = RunStore(tmp_path / "results")
    generated.write_generated_runs(store, [space], keep=lambda it: it.seed < 2)
    followed = FollowedStore(store, StoreSource(store, lambda key: None, lambda: [space]), 0)
    drawings = Drawings(share=1.0)
    drawing = drawings.of("s", followed.snapshot.sections["s"])
    until(lambda: drawing.section is not None)
    assert drawing.section is not None
    assert drawing.section.progress == "4 of 6 runs finished."
    pictures = {it.name: it for it in (*drawing.section.pictures, *drawing.section.more_pictures)}
    assert {"s-metrics", "s-curves", "s-r"} <= set(pictures)
    assert 'aria-label="Learning curves' in pictures["s-curves"].svg
    version = drawing.version
    until(lambda: drawings.rests_until > 0)
    assert drawings.of("s", followed.refresh().sections["s"]).version == version
    generated.write_generated_runs(store, [space], keep=lambda it: it.seed == 2)
    assert drawings.of("s", followed.refresh().sections["s"]).section is not None, "the last drawing is shown meanwhile"
    until(lambda: drawings.of("s", followed.snapshot.sections["s"]).version != version)
    assert drawing.section.progress == "6 of 6 runs finished."


def test_drawing_again_takes_a_tenth_of_a_core(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    spent = iter([0.0, 2.0, 0.0, 1.0])
    monkeypatch.setattr("clops_sweep.analysis.dashboard.drawings.time.thread_time", lambda: next(spent))
    drawings, began = Drawings(), time.monotonic()
    section = FollowedStore(store, Recorded(), 0).snapshot.sections["synthetic class_il finetune"]
    drawing = drawings.of("s", section)
    until(lambda: drawing.drawn is not None and drawings.rests_until > 0)
    assert 18 <= drawings.rests_until - began < 18 + 60
    drawing.drawn = -1  # as if a run had ended
    assert drawings.of("s", section).times == 1
    until(lambda: drawings.of("other", section).section is not None)  # a section that was not drawn yet does not wait
