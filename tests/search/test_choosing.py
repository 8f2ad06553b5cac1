"""What tuned spaces choose, from real stores and studies whose runs were never trained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from scipy import stats

from clops_sweep import OptunaSearch, RunConfig, SearchSpace, TuneOn
from clops_sweep.analysis.formats import number
from clops_sweep.analysis.statistics import paired_difference, partitions
from clops_sweep.analysis.tables.tuning import (
    TunedMethod,
    edges_in_words,
    on_tasks_of_tuning,
    optimism_of,
    terminal_table,
    tuned_methods,
    tuning_as_data,
    tuning_text,
)
from clops_sweep.cli.search import print_searches
from clops_sweep.data.catalog import DataKey
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.execution.jobs import Job
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.request import Request
from clops_sweep.planning.searches import Choice, data_hashes
from clops_sweep.planning.state import State
from clops_sweep.search.edges import edges_of

VALUES = [0.25, 0.5, 1.0]
OTHER_SPLITS = TuneOn(splits=(7, 8))


class AnyData(PreparedData):
    """Data that are the same under every split."""

    def data_hash(self, key: DataKey) -> str | None:
        return "generated0001"


def grid(**changes: Any) -> SearchSpace:
    methods = {
        "er": {"replay_ratio": VALUES},
        "finetune": {},
        "shared": {"like": "er", "memory_division": "class_balanced"},
    }
    search = OptunaSearch(sampler="grid", **{"methods": methods, "tune_on": OTHER_SPLITS, **changes})
    return SearchSpace("it", RunConfig(), {"split_seed": range(3)}, seeds=range(2), search=search)


def state(world: Any, space: SearchSpace, root: Path = Path("nowhere"), **options: Any) -> State:
    return State.of(Request(Selection.of(space, **options), AnyData(root, None), world.store))


def request(world: Any, space: SearchSpace, **options: Any) -> Request:
    return state(world, space, **options).resolved


def run(world: Any, configs: list[RunConfig]) -> None:
    for config in configs:
        world.work(Job(config.run_id("generated0001"), config))


def pending(asked: State) -> list[RunConfig]:
    return [it.config for it in asked.plan.of("pending")]


def worth(world: Any, config: RunConfig) -> float:
    return float(world.so_far(config, world.tasks))


@pytest.mark.parametrize(
    ("direction", "best"), [("maximize", max), pytest.param("minimize", min, marks=pytest.mark.nightly)]
)
def test_a_grid_reports_the_best_mean_and_computes_nothing_twice(world: Any, direction: str, best: Any) -> None:
    space = grid(objectives={"auc": direction})
    (study,) = request(world, space).selection.searches
    world.data = data_hashes(request(world, space), study)
    feed, _ = world.driver(study)
    jobs = [feed.next_jobs(12) for _ in range(12)]
    tries = [job.config for (job,) in jobs]
    for (job,) in jobs[:-1]:
        feed.report(job, world.work(job))
    assert feed.next_jobs(12) is None  # and then the driver is killed
    assert state(world, space).tuned[0].choices[0].state == "open"
    world.finish(study)
    means = {
        value: fmean(worth(world, it) for it in tries if it.replay_ratio == value) for value in VALUES
    }  # brute force
    expected = best(means, key=means.__getitem__)
    asked = state(world, space)
    choice = asked.tuned[0].choices[0]
    assert choice.chosen == {"replay_ratio": expected}
    assert (choice.trials, len(choice.run_ids), len(choice.best)) == (3, 12, 4)
    reported = pending(asked)
    assert len(reported) == 3 * 3 * 2
    assert {it.get("replay_ratio") for it in reported} == {expected, None}
    run(world, reported)
    assert pending(state(world, space)) == []
    assert set(world.trained.values()) == {1}
    assert len(world.trained) == (12 + 18) * world.tasks


def rows(world: Any, space: SearchSpace, root: Path) -> tuple[TunedMethod, Choice]:
    """Everything done, and the row of the first method with what it is a row of."""
    (study,) = request(world, space).selection.searches
    world.data = data_hashes(request(world, space), study)
    world.finish(study)
    run(world, pending(state(world, space)))
    asked = state(world, space, root)
    return tuned_methods(asked)[0], asked.tuned[0].choices[0]


@pytest.mark.parametrize("tune_on", ["same", pytest.param(OTHER_SPLITS, marks=pytest.mark.nightly)])
def test_optimism_is_the_score_while_tuning_minus_the_reported_one(
    world: Any, prepared_root: Path, tune_on: Any
) -> None:
    row, choice = rows(world, space := grid(tune_on=tune_on, objectives={"auc": "maximize"}), prepared_root)
    runs = world.store.read("runs").set_index("run_id")
    configs = [RunConfig(strategy="er", split_seed=s, seed=i, **choice.chosen) for s in range(3) for i in (0, 1)]
    reported = runs.loc[world.run_ids(configs)]
    score = float(runs.loc[list(choice.best), "auc"].mean())
    while_tuning = [worth(world, it) for it in configs] if tune_on == "same" else [score] * 6
    assert row.while_tuning.mean == pytest.approx(score)
    of_splits = reported.groupby("split_seed")["test_auc"].mean()  # brute force
    assert (row.reported.mean, row.reported.sd) == pytest.approx((of_splits.mean(), of_splits.std()))
    as_data = tuning_as_data(row)
    assert [as_data[name] for name in ("n", "unit", "reported_runs")] == [3, "patient splits", 6]
    assert dict(zip(terminal_table([row]).header, terminal_table([row]).rows[0], strict=True))["n"] == "3 splits"
    expected = paired_difference(
        while_tuning,
        reported["test_auc"],
        [(it.split_seed, it.seed) for it in configs],
        partitions(reported),
        "test_auc",
    )
    assert row.optimism.n == 3
    assert row.optimism.of_units == pytest.approx(expected.of_units)
    half = (expected.high - expected.low) / 2
    if tune_on != "same":  # two tuning splits, as variable as the validation scores of the three reported ones
        scores = runs.loc[world.run_ids(configs), "auc"].to_numpy().reshape(3, 2).mean(axis=1)
        variances = np.var(expected.of_units, ddof=1) / 3, np.var(scores, ddof=1) / 2
        half = stats.t.ppf(0.975, 2 * sum(variances) ** 2 / np.square(variances).sum()) * sum(variances) ** 0.5
    assert row.optimism.high - row.optimism.mean == pytest.approx(half, nan_ok=True)
    assert (row.trials, row.runs, row.seconds) == (3, len(choice.run_ids), 2.0 * len(choice.run_ids))
    table = terminal_table([row])
    assert repr(space.name) in table.title
    assert table.rows[0][1] == row.chosen
    assert number(row.reported.mean) in table.rows[0]
    assert tuning_text([row], "t").rows[0][1].text == row.chosen
    assert tuning_as_data(row)["chosen"] == row.chosen


@pytest.mark.nightly
def test_optimism_of_tuning_on_the_first_task_is_about_that_task(world: Any, prepared_root: Path) -> None:
    row, choice = rows(world, grid(tune_on=TuneOn(tasks=1), objectives={"auc": "maximize"}), prepared_root)
    configs = [RunConfig(strategy="er", split_seed=s, seed=i, **choice.chosen) for s in range(3) for i in (0, 1)]
    r_matrix = world.store.read("r_matrix", world.run_ids(configs))
    first = r_matrix[(r_matrix["split"] == "test") & (r_matrix["trained_on"] == 1) & (r_matrix["evaluated_on"] == 1)]
    assert len(first) == 6
    assert row.same_tasks.mean == pytest.approx(first["auc"].mean())
    assert row.optimism.mean == pytest.approx(row.while_tuning.mean - first["auc"].mean())
    assert row.reported.mean != pytest.approx(row.same_tasks.mean)
    assert not row.tied
    table = terminal_table([row])
    assert "optimism" in table.header
    assert "on the tasks of tuning" in table.notes[-1]
    assert table.notes[0] == "auc: of validation people while tuning, of test people in the reported runs"
    assert "test average AUC, tasks of tuning" in tuning_text([row], "t").header


@pytest.mark.nightly
def test_optimism_is_left_out_where_nothing_is_comparable(world: Any, prepared_root: Path) -> None:
    row, _ = rows(world, grid(tune_on=TuneOn(tasks=1), objectives={"seconds": "minimize"}), prepared_root)
    assert row.optimism.n == 0
    assert terminal_table([row]).header[-1] == "n"


def test_trials_with_equal_scores_are_named(world: Any, prepared_root: Path) -> None:
    """Every run of the fake workers takes the same time."""
    row, _ = rows(world, grid(tune_on=TuneOn(tasks=1), objectives={"seconds": "minimize"}), prepared_root)
    assert row.tied
    said, seen = terminal_table([row]).notes
    assert row.seen > 0
    shared = f"{100 * row.seen:.0f} % of the reported test people were validation people while tuning"
    assert seen == f"test people seen: {shared}"
    assert said.startswith("er: all 3 trials have the same seconds: what was tuned has no effect on 1 task")
    assert f"{said}." in tuning_text([row], "t").notes
    some = replace(row, tied=False, equal=2)
    said, _ = terminal_table([some]).notes
    assert said == "er: 2 of 3 trials share the best seconds, and the choice is the first of them"
    assert row.equal == 3


def test_choices_on_the_edge_of_what_was_tried_are_named(world: Any, prepared_root: Path) -> None:
    """Of two values, each is on an edge: they have no note."""
    methods: dict[str, dict[str, Any]] = {
        "er": {"replay_ratio": VALUES, "learning_rate": [0.001, 0.003, 0.01, 0.1], "batch_size": [32, 64]}
    }
    space = grid(methods=methods, objectives={"auc": "maximize"})
    row, choice = rows(world, space, prepared_root)
    names = {0.25: "lowest", 1.0: "highest", 0.001: "lowest", 0.1: "highest"}
    expected = {name: names[value] for name, value in choice.chosen.items() if value in names}
    assert expected
    assert choice.chosen["batch_size"] in (32, 64)
    assert row.edges == expected
    said = [note for note in terminal_table([row]).notes if note.startswith("On the edge")]
    assert len(said) == 1
    assert f"{said[0]}." in tuning_text([row], "t").notes


def test_a_trial_of_an_interrupted_launch_is_not_under_way(world: Any, capsys: pytest.CaptureFixture[str]) -> None:
    space = grid()
    (study,) = request(world, space).selection.searches
    world.data = data_hashes(request(world, space), study)
    world.driver(study)[0].next_jobs(1)
    (search,) = state(world, space).searches
    print_searches([search], is_interrupted=True)
    assert (
        "3 trials asked for (x 2 splits x 2 seeds = 12 runs), 0 complete, 0 pruned, 0 failed, 1 interrupted"
        in capsys.readouterr().out
    )
    print_searches([search])
    assert "1 under way, 2 pending" in capsys.readouterr().out


def test_one_sentence_names_all_choices_on_an_edge() -> None:
    edges: dict[str, dict[str, Any]] = {
        "finetune": {"learning_rate": "lowest"},
        "er": {"replay_ratio": "highest"},
        "joint": {},
        "derpp": {"learning_rate": "highest"},
    }
    assert edges_in_words(edges) == (
        "On the edge of what was tried: learning_rate of finetune (lowest), derpp (highest); replay_ratio of er "
        "(highest): wider ranges may give better scores"
    )
    assert edges_in_words({"": {"learning_rate": "lowest"}}).startswith(
        "On the edge of what was tried: learning_rate (lowest): "
    )
    assert edges_in_words({"joint": {}}) == ""


@pytest.mark.parametrize(
    ("name", "value", "tried", "edge"),
    [
        ("learning_rate", 0.1, CategoricalDistribution([0.1, 0.01, 0.001]), "highest"),
        ("learning_rate", 0.01, CategoricalDistribution([0.1, 0.01, 0.001]), None),
        ("learning_rate", 0.1, CategoricalDistribution([0.1]), None),
        ("learning_rate", 0.1, CategoricalDistribution([0.1, 0.01]), None),
        ("mc_samples", 10, IntDistribution(5, 10, step=5), None),
        ("batch_size", 8, IntDistribution(8, 64), "lowest"),
        ("batch_size", 9, IntDistribution(8, 64), None),
        ("learning_rate", 0.09, FloatDistribution(0.0001, 0.1, log=True), "highest"),
        ("learning_rate", 0.05, FloatDistribution(0.0001, 0.1, log=True), None),
        ("storage_fraction", 1.0, CategoricalDistribution([0.5, 1.0]), None),
        ("scheme", "b", CategoricalDistribution(["a", "b"]), None),
        ("head", True, CategoricalDistribution([False, True]), None),
    ],
)
def test_the_edge_of_a_grid_or_range(name: str, value: Any, tried: Any, edge: str | None) -> None:
    """One value, a limit of the option, and names have no edge; a range has one at its outer 2 %."""
    assert edges_of({name: value}, {name: tried}).get(name) == edge


@pytest.mark.parametrize("sign", [1, -1])
def test_the_interval_of_the_optimism_ends_at_the_limits_of_the_measure(sign: int) -> None:
    splits = {"scenario": "class_il", "dataset": "ward", "split_seed": range(3), "seed": [0] * 3, "fold": [None] * 3}
    scores = pd.DataFrame(splits | {"auc": [1.0, 1.0, 1.0], "test_auc": [0.05, 0.4, 0.75]})
    found = optimism_of(scores, scores, "auc", "test_auc", sign)
    assert found.mean == pytest.approx(0.6 * sign)
    assert (found.high if sign > 0 else found.low) == sign


def test_scores_of_two_editions_of_the_data_have_no_optimism() -> None:
    of_edition = {"dataset": "ward", "prepared_hash": "a", "split_seed": range(3), "seed": 0}
    before = pd.DataFrame(of_edition | {"auc": [0.9, 0.8, 0.7], "test_auc": [0.5, 0.6, 0.7]})
    none = pd.DataFrame()
    assert len(on_tasks_of_tuning(before, before, none, "auc")) == 3
    assert on_tasks_of_tuning(before, before.assign(prepared_hash="b"), none, "auc").empty
    assert len(on_tasks_of_tuning(before, before.assign(prepared_hash=None), none, "auc")) == 3, "not recorded"
