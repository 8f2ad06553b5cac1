"""What the dashboard shows, as records: against pandas and numpy on stores of generated numbers. Needs no browser."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from datetime import timedelta
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from clops_sweep import RunConfig, SearchSpace, folds
from clops_sweep.analysis.as_stored import recorded_experiments
from clops_sweep.analysis.collect import Experiment, collect
from clops_sweep.analysis.dashboard.app import Dashboard
from clops_sweep.analysis.dashboard.experiments import differences, held_in_words
from clops_sweep.analysis.dashboard.methods import method_tables, methods_by_experiment
from clops_sweep.analysis.dashboard.overview import progress
from clops_sweep.analysis.dashboard.runs import PAGE, runs_table
from clops_sweep.analysis.dashboard.snapshot import FollowedStore
from clops_sweep.analysis.dashboard.source import StoreSource
from clops_sweep.analysis.failures import failures
from clops_sweep.analysis.figures.frames import Frames
from clops_sweep.analysis.formats import DASH
from clops_sweep.analysis.report.planned import Found
from clops_sweep.analysis.tables.best import best_of_page
from clops_sweep.store.launches import LaunchFile, UnderWay
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.writing import merge_parts
from tests.helpers.stores import write_finished


class Recorded:
    """The runs of a store as experiments; counts how often it was asked, and for how many runs."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def experiments(self, runs: pd.DataFrame, store: RunStore) -> list[Found]:
        self.asked.append(len(runs))
        return [(it, None, None) for it in recorded_experiments(runs.reset_index(drop=True))]

    def frames(self, experiments: Sequence[Experiment]) -> Sequence[Frames]:
        return ()

    def mark(self) -> Hashable:
        return ()


class OfSpace(Recorded):
    """The runs of a store that a search space requests."""

    def __init__(self, space: SearchSpace) -> None:
        super().__init__()
        self.space = space

    def experiments(self, runs: pd.DataFrame, store: RunStore) -> list[Found]:
        (experiment,) = collect([self.space], runs.reset_index(drop=True))
        return [(experiment, self.space, None)]


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
        merge_parts(store.parts)
    assert followed.refresh() is after, "put together, the runs are the same"
    pd.testing.assert_frame_equal(
        after.runs.reset_index(drop=True), plain(store, "runs"), check_dtype=False, check_like=True
    )
    for part in (tmp_path / "results" / "runs").glob("*.parquet"):
        part.unlink()
    assert followed.refresh().runs.empty


# --- experiments ------------------------------------------------------------------------------------------------------


def test_with_search_spaces_missing_runs_are_counted(tmp_path: Path, generated: ModuleType) -> None:
    space = SearchSpace("own", RunConfig(), {"storage_fraction": [0.1, 0.5]}, range(2))
    store = RunStore(tmp_path / "results")
    done = [(it.config, {"auc": 0.7}) for it in space.requests() if it.config.storage_fraction == 0.1]
    generated.write_given_runs(store, done)
    followed = FollowedStore(store, StoreSource(store, lambda key: None, lambda store: [space]), 0)
    (it,) = progress(followed.snapshot)
    assert (it.name, it.finished, it.missing, it.total) == ("own", 2, 2, 4)


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


def test_the_best_method_is_that_of_terminal_and_report_with_test_scores(
    spaces: list[SearchSpace], store: RunStore
) -> None:
    snapshot = FollowedStore(store, OfSpace(spaces[0]), 0).snapshot
    experiment = snapshot.sections["grid"].experiment
    (table,) = methods_by_experiment(snapshot)["grid"]
    assert table.metrics == ("test AUC", "test BWT")
    assert table.better == ("higher", "higher")
    best = best_of_page([experiment])[0].cell
    first, *others = table.rows
    assert first.is_best
    assert not any(row.is_best for row in others)
    assert (first.finished, first.asked, first.n) == (3, 3, "3 seeds")
    rows = finished(experiment)
    scores = rows.loc[rows["cell"] == best, "test_auc"]
    limits = stats.t.interval(0.95, 2, scores.mean(), scores.std() / np.sqrt(3))
    assert first.scores[0].mean == f"{scores.mean():.3f}"
    assert first.scores[0].interval == f"[{limits[0]:.3f}, {limits[1]:.3f}]"


def test_a_method_with_missing_runs_is_shown_without_a_rank(generated: ModuleType, tmp_path: Path) -> None:
    space = SearchSpace("own", RunConfig(), {"strategy": ["finetune", "er", "ewc"]}, range(2))
    store = RunStore(tmp_path / "results")
    given = []
    for request in space.requests():
        config = request.config
        if config.strategy == "finetune" or (config.strategy, config.seed) == ("er", 0):
            auc = 0.9 if config.strategy == "er" else 0.7
            given.append((config, {"auc": auc, "test_auc": auc}))
    generated.write_given_runs(store, given)
    (table,) = methods_by_experiment(FollowedStore(store, OfSpace(space), 0).snapshot)["own"]
    shown = [(row.name, row.is_best, row.scores[0].mean, row.finished, row.asked) for row in table.rows]
    assert shown == [
        ("finetune", True, "0.700", 2, 2),
        ("er", False, "0.900", 1, 2),
        ("ewc", False, DASH, 0, 2),
    ]


def given_of(space: SearchSpace, scores: dict[str, float], seeds: dict[str, int]) -> list[tuple[RunConfig, dict]]:
    """The first seeds of each strategy with their scores, which rise a little with the seed."""
    given = []
    for request in space.requests():
        config = request.config
        if config.seed < seeds.get(config.strategy, 0):
            auc = scores[config.strategy] + 0.01 * config.seed * (config.strategy == "er")
            given.append((config, {"auc": auc, "test_auc": auc}))
    return given


def test_methods_with_missing_runs_are_last_in_the_order_over_all_experiments(
    generated: ModuleType, tmp_path: Path
) -> None:
    space = SearchSpace("own", RunConfig(), {"strategy": ["finetune", "er", "ewc"]}, range(3))
    store = RunStore(tmp_path / "results")
    scores = {"finetune": 0.6, "er": 0.7, "ewc": 0.9}
    generated.write_given_runs(store, given_of(space, scores, {"finetune": 3, "er": 3, "ewc": 1}))
    (table,) = method_tables(FollowedStore(store, OfSpace(space), 0).snapshot)
    assert [(row.name, row.is_best, row.is_ranked) for row in table.rows] == [
        ("er", True, True),
        ("finetune", False, True),
        ("ewc", False, False),
    ]
    expected = stats.t.interval(0.95, 2, -0.11, np.std([0.1, 0.11, 0.12], ddof=1) / np.sqrt(3))
    difference = table.rows[1].minus_best
    assert difference.mean == "-0.110"
    assert difference.interval == f"[{expected[0]:+.3f}, {expected[1]:+.3f}]"
    assert [table.rows[row].minus_best.mean for row in (0, 2)] == [DASH, DASH]


def test_methods_on_other_patient_splits_have_a_table_of_their_own(generated: ModuleType, tmp_path: Path) -> None:
    axes = {"strategy": ["finetune", "er"], "split_seed": [0, 1]}
    two = SearchSpace("two", RunConfig(), axes, range(1))
    one = SearchSpace("one", RunConfig(epochs_per_task=3), {"strategy": ["finetune", "er"]}, range(1))
    store = RunStore(tmp_path / "results")
    given = [(it.config, {"auc": 0.6, "test_auc": 0.6}) for it in two.requests()]
    given += [(it.config, {"auc": 0.9, "test_auc": 0.9}) for it in one.requests()]
    generated.write_given_runs(store, given)
    source = StoreSource(store, lambda key: None, lambda store: [one, two])
    tables = method_tables(FollowedStore(store, source, 0).snapshot)
    assert [(it.title, {row.experiment for row in it.rows}) for it in tables] == [
        ("synthetic, class_il: 2 patient splits (split 0, split 1)", {"two"}),
        ("synthetic, class_il: 1 patient split (split 0)", {"one"}),
    ]


def test_an_experiment_with_running_runs_is_first(generated: ModuleType, tmp_path: Path) -> None:
    done = SearchSpace("done", RunConfig(), {"strategy": ["er", "finetune"]}, range(1))
    begun = SearchSpace("begun", RunConfig(epochs_per_task=3), {"strategy": ["er", "finetune"]}, range(1))
    store = RunStore(tmp_path / "results")
    first, second = (it.config for it in begun.requests())
    generated.write_given_runs(store, [(it, {"auc": 0.6}) for it in (first, *(it.config for it in done.requests()))])
    file = LaunchFile(store)
    file.begin(())
    file.write([UnderWay(second.run_id("generated0001"), "finetune, seed 0")])
    source = StoreSource(store, lambda key: None, lambda store: [done, begun])
    lines = progress(FollowedStore(store, source, 0).snapshot)
    assert [(it.name, it.running) for it in lines] == [("begun", 1), ("done", 0)]
    file.remove()


def test_the_experiment_that_changed_last_is_first(generated: ModuleType, tmp_path: Path) -> None:
    store = RunStore(tmp_path / "results")
    for days, strategy in ((1, "ewc"), (3, "er"), (2, "finetune")):
        started = {"started_at": generated.START + timedelta(days=days)}
        generated.write_given_runs(store, [(RunConfig(strategy=strategy), {"auc": 0.6} | started)])
    lines = progress(FollowedStore(store, Recorded(), 0).snapshot)
    assert [line.name.split()[-1] for line in lines] == ["er", "finetune", "ewc"]


def test_experiments_that_are_nearly_the_same_say_how_they_differ(generated: ModuleType, tmp_path: Path) -> None:
    base = RunConfig(strategy="finetune", epochs_per_task=5)
    first = SearchSpace("first", base, {"strategy": ["finetune", "ewc"]}, range(3))
    again = SearchSpace("again", base.replace(epochs_per_task=2), {"strategy": ["finetune", "ewc"]}, range(1))
    part = SearchSpace("part", base, {"strategy": ["finetune"]}, range(2))
    store = RunStore(tmp_path / "results")
    generated.write_given_runs(store, [(it.config, {"auc": 0.7}) for it in first.requests()])
    experiments = collect([first, again, part], store.read("runs"))
    assert [held_in_words(it) for it in experiments] == [
        "strategy: finetune, ewc; 3 seeds",
        "strategy: finetune, ewc; 1 seed",
        "2 seeds",
    ]
    rates = SearchSpace("rates", base, {"learning_rate": [0.00088176, 0.00118, 0.00883987]}, range(1))
    (of_numbers,) = collect([rates], store.read("runs"))
    assert held_in_words(of_numbers) == "learning rate: 3 values from 0.000882 to 0.00884; 1 seed"
    assert differences(experiments) == {
        "first": "epochs per task, τ = 5",
        "again": "epochs per task, τ = 2",
        "part": "epochs per task, τ = 5; all of its runs are also in first",
    }
    assert differences(experiments[:1]) == {"first": ""}


def test_folds_and_seeds_are_counted_in_their_words(generated: ModuleType, tmp_path: Path) -> None:
    """An experiment of folds held "5 patient splits"; one of a single fold held "1 seed"."""
    axes = {"strategy": ["finetune", "er"]}
    all_folds = SearchSpace("all", RunConfig(), axes | {"split": folds(3)}, range(2))
    one_fold = SearchSpace("one", RunConfig(epochs_per_task=3), axes | {"split": folds(3)[:1]}, range(1))
    seeds_of_one = SearchSpace("seeds", RunConfig(epochs_per_task=4), axes | {"split": folds(3)[:1]}, range(2))
    splits = SearchSpace("splits", RunConfig(epochs_per_task=5), axes | {"split_seed": [0, 1]}, range(1))
    spaces = [all_folds, one_fold, seeds_of_one, splits]
    store = RunStore(tmp_path / "results")
    given = []
    for space in spaces:
        given += [(it.config, {"auc": 0.6, "test_auc": 0.6}) for it in space.requests()]
    generated.write_given_runs(store, given)
    held = [held_in_words(it) for it in collect(spaces, store.read("runs"))]
    assert held == [
        "strategy: finetune, er; 3 folds; 2 seeds",
        "strategy: finetune, er; 1 fold; 1 seed",
        "strategy: finetune, er; 1 fold; 2 seeds",
        "strategy: finetune, er; 2 patient splits; 1 seed",
    ]
    source = StoreSource(store, lambda key: None, lambda store: spaces)
    tables = methods_by_experiment(FollowedStore(store, source, 0).snapshot)
    counts = {name: {row.n for table in of_space for row in table.rows} for name, of_space in tables.items()}
    assert counts == {"all": {"3 folds"}, "one": {"1 fold"}, "seeds": {"2 seeds of 1 fold"}, "splits": {"2 splits"}}


def test_methods_and_best_configurations_are_those_of_each_data_set(generated: ModuleType, tmp_path: Path) -> None:
    """The page of methods had one table for both data sets, with the name of the first."""
    base = RunConfig(dataset="mitbih", network="small_cnn", epochs_per_task=5, learning_rate=0.001)
    axes = {"dataset": ["mitbih", "synthetic"], "strategy": ["finetune", "er"]}
    space = SearchSpace("both", base, axes, range(3))
    store = RunStore(tmp_path / "results")
    rows = []
    for request in space.requests():
        config = request.config
        auc = 0.6 + 0.2 * (config.dataset == "synthetic") + 0.1 * (config.strategy == "er") + 0.01 * config.seed
        rows.append((config, {"auc": auc, "test_auc": auc - 0.05}))
    generated.write_given_runs(store, rows)
    snapshot = FollowedStore(store, OfSpace(space), 0).snapshot
    tables = method_tables(snapshot)
    assert [(it.title, [row.name for row in it.rows]) for it in tables] == [
        ("mitbih, class_il", ["mitbih, er", "mitbih, finetune"]),
        ("synthetic, class_il", ["synthetic, er", "synthetic, finetune"]),
    ]
    of_space = methods_by_experiment(snapshot)["both"]
    assert [(it.title, [(row.name, row.is_best) for row in it.rows]) for it in of_space] == [
        ("mitbih, class_il", [("mitbih, er", True), ("mitbih, finetune", False)]),
        ("synthetic, class_il", [("synthetic, er", True), ("synthetic, finetune", False)]),
    ]


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


# --- the open section -------------------------------------------------------------------------------------------------


def test_a_page_that_is_opened_after_idling_reads_the_store_anew(
    tmp_path: Path, generated: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = RunConfig(scenario="class_il")
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    followed = FollowedStore(store, Recorded(), 3)
    dashboard = Dashboard(followed)
    assert "This store holds no run yet" in (dashboard.page("", {}) or "")
    generated.write_given_runs(store, [(config, {"auc": 0.625})], "generated0001")
    assert "This store holds no run yet" in (dashboard.page("", {}) or ""), "another page within seconds reads nothing"
    at_opening = followed.read_at
    later = time.monotonic() + 300
    monkeypatch.setattr("time.monotonic", lambda: later)
    page = dashboard.page("", {}) or ""
    assert "0.625" in page
    assert "This store holds no run yet" not in page
    assert followed.read_at > at_opening
    dashboard.close()
