"""Runs without a metric: a mean over the others may be that of the easy splits."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from clops_sweep import RunConfig, SearchSpace, scores
from clops_sweep.analysis.collect import Experiment, collect
from clops_sweep.analysis.results import result_table
from clops_sweep.analysis.selection import competing_cells
from clops_sweep.analysis.tables.best import best_configurations, best_sentences, unranked_in_words
from clops_sweep.analysis.tables.comparisons import comparison_text, comparisons
from clops_sweep.store.run_store import RunStore

LEVEL = {"finetune": 0.5, "er": 0.7, "mir": 0.65}
NOISE = (0.011, -0.007, 0.004, 0.015, 0.002)
HARD = (0.0, 0.0, 0.0, -0.3, -0.3)
SPACE = SearchSpace(
    "methods", RunConfig(), {"strategy": ["finetune", "er", "mir"], "split_seed": [0, 1, 2, 3, 4]}, seeds=[0]
)


def auc(config: RunConfig) -> float:
    """MIR is 0.05 below ER on each split."""
    shift = 0.2 * NOISE[config.split_seed - list(LEVEL).index(config.strategy)]
    return LEVEL[config.strategy] + NOISE[config.split_seed] + HARD[config.split_seed] + shift


def experiment(folder: Path, generated: ModuleType, undefined: dict[str, set[int]]) -> Experiment:
    """Return runs of which some, by strategy and split seed, have no AUC."""
    store = RunStore(folder / "results")
    runs = []
    for request in SPACE.requests():
        config = request.config
        is_undefined = config.split_seed in undefined.get(config.strategy, ())
        runs.append((config, {"auc": np.nan if is_undefined else auc(config), "bwt": -0.1 - auc(config) / 10}))
    generated.write_given_runs(store, runs)
    (found,) = collect([SPACE], store.read("runs"))
    return found


def test_a_mean_over_the_easy_splits_is_not_ranked(tmp_path: Path, generated: ModuleType) -> None:
    found = experiment(tmp_path, generated, {"mir": {3, 4}})
    assert [found.cells[cell].config.strategy for cell in competing_cells(found, "auc")] == ["finetune", "er"]
    (sentence,) = best_sentences(best_configurations(found))
    assert sentence.startswith("Best: er")
    mean = np.mean([auc(RunConfig(strategy="mir", split_seed=split)) for split in range(3)])
    assert f"not ranked, because runs have no validation AUC: mir ({mean:.3f} in 3 of 5 runs)" in sentence


def test_a_split_without_the_metric_for_all_tells_configurations_not_apart(
    tmp_path: Path, generated: ModuleType
) -> None:
    found = experiment(tmp_path, generated, {name: {2} for name in LEVEL})
    assert competing_cells(found, "auc") == [0, 1, 2]
    assert unranked_in_words(found) == ""


def test_a_higher_mean_over_fewer_splits_is_not_bold(tmp_path: Path, generated: ModuleType) -> None:
    found = experiment(tmp_path, generated, {"mir": {3, 4}})
    values = found.by_split("auc")
    assert np.nanargmax(np.nanmean(values, axis=1)) == 2, "MIR has the highest mean over its splits"
    assert not any("auc" in row.best_in for row in result_table(found).rows)
    whole = experiment(tmp_path / "whole", generated, {})
    assert ["auc" in row.best_in for row in result_table(whole).rows] == [False, True, False]


def test_the_number_of_pairs_is_that_of_each_metric(tmp_path: Path, generated: ModuleType) -> None:
    text = comparison_text(comparisons(experiment(tmp_path, generated, {"mir": {3, 4}})), "name", "title")
    assert [[cell.text for cell in row[:3]] for row in text.rows] == [
        ["er", "finetune", "5"],
        ["mir", "finetune", "3 to 5"],
        ["mir", "er", "3 to 5"],
    ]


def test_scores_warn_of_runs_without_the_metric(tmp_path: Path, generated: ModuleType) -> None:
    experiment(tmp_path, generated, {"mir": {3, 4}})
    with pytest.warns(UserWarning, match=r"'methods': mir has auc in 3 of 5 finished runs; its mean is over these"):
        table = scores(SPACE, str(tmp_path / "results"))
    assert table["configuration"].tolist() == ["er", "finetune", "mir"]
