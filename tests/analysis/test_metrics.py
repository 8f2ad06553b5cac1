"""Any numeric column of `runs` as a metric: what follows from its name, and what a heatmap makes of it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.collect import Experiment, collect
from clops_sweep.analysis.figures.heatmaps import heatmap
from clops_sweep.analysis.figures.profiles import draw_profile, profile
from clops_sweep.analysis.metrics import PAPER, metric_named
from clops_sweep.analysis.selection import shown_metrics
from clops_sweep.store.run_store import RunStore

SPACE = SearchSpace(
    "grid", RunConfig(), {"storage_fraction": [0.1, 0.5], "acquisition_fraction": [0.25, 1.0]}, seeds=range(2)
)


def experiment(path: Path, generated: ModuleType, **columns: float) -> Experiment:
    store = RunStore(path)
    rows = [
        (r.config, {name: value * r.config.storage_fraction for name, value in columns.items()})
        for r in SPACE.requests()
    ]
    generated.write_given_runs(store, rows)
    return collect([SPACE], store.read("runs"))[0]


def test_columns_that_a_strategy_has_added_are_metrics(tmp_path: Path, generated: ModuleType) -> None:
    found = experiment(tmp_path, generated, auc=1.0)
    runs = found.runs.assign(balanced_accuracy=0.75, accuracy_bwt=-0.25)
    added = Experiment(found.name, found.axes, found.cells, runs)
    assert heatmap(added, "accuracy_bwt").limits == (-0.25, 0.25)
    np.testing.assert_array_equal(heatmap(added, "balanced_accuracy").panels[0].mean, np.full((2, 2), 0.75))
    assert [axes.get_title() for axes in draw_profile(profile(added, metrics=("balanced_accuracy",))).axes] == [
        "balanced accuracy"
    ]


def test_equal_metrics_are_shown_once(tmp_path: Path, generated: ModuleType) -> None:
    same = {"bwt": -0.5, "bwt_t": -0.5, "bwt_lambda": -0.5}
    two = experiment(tmp_path / "two", generated, auc=0.5, **same)
    assert shown_metrics([two]) == ("auc", "bwt")
    several = experiment(tmp_path / "several", generated, auc=0.5, **(same | {"bwt_lambda": -0.25}))
    assert shown_metrics([several]) == ("auc", "bwt", "bwt_lambda")
    assert shown_metrics([two, several]) == ("auc", "bwt", "bwt_lambda")
    none = experiment(tmp_path / "none", generated, auc=0.5)
    assert shown_metrics([none]) == PAPER, "nothing is equal to what is not there"


@pytest.mark.parametrize("column", ["test_forgetting", "test_balanced_accuracy_forgetting", "test_auc", "forgetting"])
def test_a_metric_has_one_name_on_the_page_and_in_latex(column: str) -> None:
    metric = metric_named(column)
    assert metric.latex == metric.plain
