"""Strategies against each other over several search spaces, paired by patient split and seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest
from scipy import stats

from clops_sweep import RunConfig, SearchSpace, folds
from clops_sweep.analysis.collect import collect
from clops_sweep.analysis.statistics import paired_difference
from clops_sweep.analysis.tables.best import best_configurations
from clops_sweep.analysis.tables.strategies import (
    StrategyComparison,
    compare_strategies,
)
from clops_sweep.store.run_store import RunStore

AUC = {"clops": 0.8, "finetune": 0.6, "mir": 0.75}


def auc(config: RunConfig) -> float:
    """By strategy, with an effect of seed and patient split that all strategies share, and one of their own."""
    own = 0.01 * ((config.seed * len(config.strategy)) % 4)
    return AUC[config.strategy] + 0.02 * config.seed + 0.05 * config.split_seed + own - config.storage_fraction / 100


def filled(path: Path, generated: ModuleType, spaces: Sequence[SearchSpace]) -> RunStore:
    store = RunStore(path)
    configs = {request.config.identity: request.config for space in spaces for request in space.requests()}
    generated.write_given_runs(store, [(c, {"auc": auc(c), "bwt": auc(c) - 0.8}) for c in configs.values()])
    return store


def compared(path: Path, generated: ModuleType, *spaces: SearchSpace) -> list[StrategyComparison]:
    return compare_strategies(collect(spaces, filled(path, generated, spaces).read("runs")))


GRID = SearchSpace("grid", RunConfig(), {"storage_fraction": [0.1, 0.25, 1.0]}, seeds=range(5))
TUNED = SearchSpace("tuned", RunConfig(strategy="finetune"), seeds=range(1, 6))
OTHER = SearchSpace("other", RunConfig(strategy="mir"), seeds=range(4))


def test_every_pair_over_the_seeds_that_both_have(tmp_path: Path, generated: ModuleType) -> None:
    (record,) = compared(tmp_path, generated, GRID, TUNED, OTHER)
    assert (record.dataset, record.scenario) == ("synthetic", "class_il")
    assert record.strategies == ("finetune", "clops", "mir")
    assert record.configurations == ("tuned", "b = 0.25", "other"), "the paper's b, although b = 0.1 is better"
    rows = {(row.name, row.baseline): row.differences["auc"] for row in record.differences.rows}
    assert {pair: found.n for pair, found in rows.items()} == {
        ("clops", "finetune"): 4,
        ("mir", "finetune"): 3,
        ("mir", "clops"): 4,
    }
    configs = [RunConfig(seed=seed) for seed in range(1, 5)]
    by_hand = paired_difference([auc(c) for c in configs], [auc(c.replace(strategy="finetune")) for c in configs])
    found = rows["clops", "finetune"]
    assert (found.mean, found.p, found.of_units) == (by_hand.mean, by_hand.p, by_hand.of_units)
    ratio = stats.t.ppf(1 - 0.025 / 3, 3) / stats.t.ppf(0.975, 3)  # the smallest p of three
    assert found.high - found.mean == pytest.approx(ratio * (by_hand.high - by_hand.mean))


def test_a_patient_split_with_its_seeds_is_one_pair(tmp_path: Path, generated: ModuleType) -> None:
    splits = {"split_seed": [0, 1, 2]}
    spaces = [SearchSpace(name, RunConfig(strategy=name), splits, seeds=[0, 1]) for name in ("clops", "finetune")]
    (record,) = compared(tmp_path, generated, *spaces)
    assert record.differences.rows[0].differences["auc"].n == 3


@pytest.mark.parametrize("missing", [1, 5])
def test_each_fold_has_its_own_data(tmp_path: Path, generated: ModuleType, missing: int) -> None:
    axes = {"split": folds(5)}
    spaces = [SearchSpace(name, RunConfig(strategy=name), axes, seeds=[0]) for name in ("clops", "finetune")]
    store = RunStore(tmp_path)
    for config in [request.config for space in spaces for request in space.requests()]:
        part = int(config.split[5])
        if part != missing or config.strategy == "clops":
            values = {"auc": auc(config) + 0.01 * part * (config.strategy == "clops")}
            generated.write_given_runs(store, [(config, values)], data_hash=f"fold{part}")
    found = collect(spaces, store.read("runs"))
    (record,) = compare_strategies(found)
    (row,) = record.differences.rows
    assert (row.differences["auc"].n, row.differences["auc"].units.obstacle) == (4, f"fold {missing}/5 missing")
    assert best_configurations(found[0], found[1:])[0].above.differences["auc"].n == 4


def test_other_data_and_other_training_are_not_compared(tmp_path: Path, generated: ModuleType) -> None:
    longer = SearchSpace("longer", RunConfig(strategy="finetune", epochs_per_task=7), seeds=range(5))
    elsewhere = SearchSpace("elsewhere", RunConfig(strategy="mir", dataset="mitbih"), seeds=range(5))
    assert compared(tmp_path, generated, GRID, longer, elsewhere) == []
