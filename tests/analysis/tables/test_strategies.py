"""Strategies against each other over several search spaces, paired by patient split and seed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from clops_sweep import RunConfig, SearchSpace, folds
from clops_sweep.analysis.collect import collect
from clops_sweep.analysis.drawing.style import as_png
from clops_sweep.analysis.report.write import write_report
from clops_sweep.analysis.statistics import paired_difference
from clops_sweep.analysis.tables.best import best_configurations
from clops_sweep.analysis.tables.strategies import (
    StrategyComparison,
    compare_strategies,
    draw_strategies,
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
    assert rows["clops", "finetune"] == by_hand


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


def test_numbers_of_another_edition_of_the_data_are_not_compared(tmp_path: Path, generated: ModuleType) -> None:
    store = filled(tmp_path, generated, [GRID, OTHER])
    later = {"auc": 0.9, "started_at": generated.START + timedelta(days=1)}
    tuned = [(request.config, later) for request in TUNED.requests()]
    generated.write_given_runs(store, tuned, data_hash="generated0002")
    (record,) = compare_strategies(collect([GRID, TUNED, OTHER], store.read("runs")))
    assert record.strategies == ("clops", "mir")


def test_what_one_search_space_compares_by_itself_is_left_out(tmp_path: Path, generated: ModuleType) -> None:
    methods = {"CLOPS": {}, "Fine-tuning": {"strategy": "finetune"}}
    space = SearchSpace("methods", RunConfig(), {"method": methods}, seeds=range(3))
    assert compared(tmp_path, generated, space) == []


def test_drawing(tmp_path: Path, generated: ModuleType, overlaps: ModuleType) -> None:
    (record,) = compared(tmp_path, generated, GRID, TUNED, OTHER)
    figure = draw_strategies(record)
    assert [axes.get_title() for axes in figure.axes[:2]] == ["Average AUC", "BWT"]
    dots = [line.get_xdata()[0] for line in figure.axes[0].lines if line.get_marker() == "o"]
    np.testing.assert_allclose(dots, [row.differences["auc"].mean for row in record.differences.rows])
    assert overlaps.texts_in_each_other(figure) == []
    assert as_png(figure).startswith(b"\x89PNG")


@pytest.mark.usefixtures("unpainted")
def test_the_report_ends_its_results_with_it(tmp_path: Path, generated: ModuleType) -> None:
    spaces = [TUNED, OTHER]
    paths = write_report(spaces, filled(tmp_path / "store", generated, spaces), tmp_path / "report")
    page = paths.index.read_text("utf-8")
    assert page.index('<section id="tuned">') < page.index('<section id="strategies">') < page.index("<h2>Methods")
    (table,) = (path for path in paths.tables if path.name.startswith("strategies") and path.suffix == ".md")
    assert "| mir " in table.read_text("utf-8")
    assert "not by its best (finetune: tuned; mir: other)" in page


@pytest.mark.usefixtures("unpainted")
def test_a_search_space_may_have_its_name(tmp_path: Path, generated: ModuleType) -> None:
    spaces = [TUNED, SearchSpace("strategies", RunConfig(strategy="mir"), seeds=range(4))]
    paths = write_report(spaces, filled(tmp_path / "store", generated, spaces), tmp_path / "report")
    page = paths.index.read_text("utf-8")
    anchors = [part.split('"')[0] for part in page.split('<section id="')[1:]]
    assert len(anchors) == len(set(anchors)) == 4


@pytest.mark.parametrize("seeds", [2, 4])
def test_two_units_are_two_points(tmp_path: Path, generated: ModuleType, seeds: int) -> None:
    spaces = [SearchSpace(name, RunConfig(strategy=name), seeds=range(seeds)) for name in ("clops", "finetune")]
    (record,) = compared(tmp_path, generated, *spaces)
    (panel, *_) = draw_strategies(record).axes
    drawn = [line for line in panel.lines if line.get_linestyle() == "-" and len(line.get_xdata()) == 2]
    points = [line for line in panel.lines if line.get_marker() == "o"]
    intervals = [line for line in drawn if line.get_ydata()[0] == line.get_ydata()[1]]
    assert (len(intervals), len(points[0].get_xdata())) == ((0, 2) if seeds == 2 else (1, 1))
