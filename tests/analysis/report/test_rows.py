"""Which rows a table has, what they are compared with, and what of the paper stands beside them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.collect import Experiment, collect
from clops_sweep.analysis.report.write import write_report
from clops_sweep.analysis.results import clear_winners, result_table
from clops_sweep.analysis.tables.comparisons import comparisons
from clops_sweep.experiment.spaces.search_space import load_spaces
from clops_sweep.store.run_store import RunStore

FRACTIONS = {"storage_fraction": [0.1, 0.25], "acquisition_fraction": [0.5, 1.0]}
ORDERS = {
    "order": {name: {"task_order": order} for name, order in (("Random", 1), ("Curriculum", "curriculum"))},
    "method": {"Fine-tuning": {"strategy": "finetune"}, "CLOPS": {}},
}


def space(name: str, axes: Mapping[str, Any], seeds: int = 3, **base: Any) -> SearchSpace:
    return SearchSpace(name, RunConfig(**base), axes, seeds=range(seeds))


def filled(path: Path, generated: ModuleType, *spaces: SearchSpace, auc: Callable[[RunConfig], float]) -> RunStore:
    store = RunStore(path)
    configs = {request.config for each in spaces for request in each.requests()}
    generated.write_given_runs(store, [(c, {"auc": auc(c)}) for c in sorted(configs, key=repr)])
    return store


def experiment(path: Path, generated: ModuleType, it: SearchSpace, auc: Callable[[RunConfig], float]) -> Experiment:
    return collect([it], filled(path, generated, it, auc=auc).read("runs"))[0]


@pytest.mark.parametrize("found", [(0, 1, 2, 3, 4, 5), (5, 4, 2, 1, 0, 3), (3, 1, 0, 2, 5, 4)])
def test_a_curriculum_stands_beside_the_paper_s_whatever_order_it_has(
    tmp_path: Path, generated: ModuleType, found: tuple[int, ...]
) -> None:
    def resolve(config: RunConfig) -> RunConfig:
        return config.replace(task_order=found) if config.task_order == "curriculum" else config

    it = replace(space("orders", ORDERS, dataset="cardiology"), resolve=resolve)
    table = result_table(experiment(tmp_path, generated, it, lambda c: 0.5))
    published = {row.name: row.published["auc"].mean if row.published else None for row in table.rows}
    assert published == {
        "Random, Fine-tuning": 0.672,
        "Random, CLOPS": 0.796,
        "Curriculum, Fine-tuning": None,
        "Curriculum, CLOPS": 0.744,
    }


def test_few_configurations_are_compared_with_each_other(tmp_path: Path, generated: ModuleType) -> None:
    methods = {"CLOPS": {}, "Fine-tuning": {"strategy": "finetune"}, "MIR": {"strategy": "mir"}}
    few = comparisons(experiment(tmp_path / "few", generated, space("few", {"method": methods}), lambda c: c.seed))
    pairs = [("CLOPS", "Fine-tuning"), ("MIR", "Fine-tuning"), ("MIR", "CLOPS")]
    assert [(row.name, row.baseline) for row in few.rows] == pairs
    many = space("many", {"mc_samples": [5, 10, 20, 30, 40, 50, 60]})
    rows = comparisons(experiment(tmp_path / "many", generated, many, lambda c: c.seed)).rows
    assert {row.baseline for row in rows} == {"T = 5"}
    assert len(rows) == 6


def test_equal_configurations_win_together() -> None:
    rng = np.random.default_rng(0)
    low, high = rng.normal(0.5, 0.01, 6), rng.normal(0.9, 0.01, 6)
    seeds = [(0, seed) for seed in range(6)]
    assert clear_winners(np.array([high, low, high]), seeds, {}) == (0, 2)
    assert clear_winners(np.array([low, high]), seeds, {}) == (1,)
    assert clear_winners(np.array([high, high]), seeds, {}) == ()
    assert clear_winners(np.array([high, high + 0.01 * np.array([1, -1, 1, -1, 1, -1]), low]), seeds, {}) == ()


@pytest.mark.usefixtures("unpainted")
@pytest.mark.parametrize("seeds", [2, 3])
def test_no_interval_below_three_units(tmp_path: Path, generated: ModuleType, seeds: int) -> None:
    it = space("grid", FRACTIONS, seeds)
    write_report(
        [it],
        filled(tmp_path / "store", generated, it, auc=lambda c: (c.seed + 1) * c.storage_fraction),
        tmp_path / "report",
    )
    text = (tmp_path / "report" / "tables" / "grid-differences.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("|")][2:]
    assert any("[" in row for row in rows) == (seeds >= 3)
    assert "about that split" in text


NEED_NOT_AGREE = "These settings differ from the paper's, so the values may differ: "


def beside_the_paper(path: Path, generated: ModuleType, it: SearchSpace) -> str:
    write_report([it], filled(path / "store", generated, it, auc=lambda c: 0.5), path / "report")
    return (path / "report" / "tables" / f"{it.name}-published.md").read_text()


@pytest.mark.usefixtures("unpainted")
def test_settings_that_are_not_the_paper_s_are_said_once_for_the_whole_table(
    tmp_path: Path, generated: ModuleType
) -> None:
    other = {"epochs_per_task": 1, "learning_rate": 1, "beta_penalty": 1000, "normalize": "minmax"}
    it = space("other", {"mc_samples": [5, 10]}, dataset="cardiology", **other)
    expected = (
        "epochs_per_task = 1 (the paper: 20); learning_rate = 1 (the paper: 0.0001); "
        "normalize = minmax (the paper: none); beta_penalty = 1000 (the paper: 10)."
    )
    text = beside_the_paper(tmp_path, generated, it).replace("\\", "")
    assert text.count(NEED_NOT_AGREE) == 1
    assert text.endswith(f"{NEED_NOT_AGREE}{expected}\n")
    for name in ("other-results", "other-published"):
        with (tmp_path / "report" / "tables" / f"{name}.csv").open() as file:
            told = {row["departures"] for row in csv.DictReader(file)}
        assert told == {"epochs_per_task=1; learning_rate=1.0; normalize=minmax; beta_penalty=1000.0"}


def shipped(name: str) -> SearchSpace:
    space = load_spaces(Path(__file__).parents[3] / "search_spaces" / f"{name}.py")[0]
    return space.overridden({"epochs_per_task": 1}).with_seeds(2)
