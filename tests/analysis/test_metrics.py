"""Any numeric column of `runs` as a metric: what follows from its name, and what a heatmap makes of it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.collect import Experiment, collect
from clops_sweep.analysis.figures.heatmaps import draw_heatmap, heatmap
from clops_sweep.analysis.figures.profiles import draw_profile, profile
from clops_sweep.analysis.metrics import METRICS, PAPER, metric_named
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


@pytest.mark.parametrize(
    ("column", "plain", "signed", "better"),
    [
        ("auc", "Average AUC", False, "higher"),
        ("test_auc", "Average AUC, test", False, "higher"),
        ("accuracy", "accuracy", False, "higher"),
        ("balanced_accuracy", "balanced accuracy", False, "higher"),
        ("f1", "macro F1", False, "higher"),
        ("accuracy_bwt", "BWT of accuracy", True, "higher"),
        ("f1_bwt_lambda", "BWT_lambda of macro F1", True, "higher"),
        ("test_balanced_accuracy_bwt_t", "BWT_t of balanced accuracy, test", True, "higher"),
        ("fwt", "FWT", True, "higher"),
        ("forgetting", "Forgetting of AUC", False, "lower"),
        ("auc_seen", "AUC over classes seen", False, "higher"),
        ("average_incremental_auc_seen", "average incremental AUC over classes seen", False, "higher"),
        ("test_auc_seen_forgetting", "Forgetting of AUC over classes seen, test", False, "lower"),
        ("test_accuracy_forgetting", "Forgetting of accuracy, test", False, "lower"),
        ("average_incremental_accuracy", "average incremental accuracy", False, "higher"),
        ("cpu_seconds", "cpu seconds", False, "lower"),
        ("seconds_train", "seconds train", False, "lower"),
        ("replayed", "replayed", False, None),
    ],
)
def test_a_column_is_called_by_its_name(column: str, plain: str, signed: bool, better: str | None) -> None:
    metric = metric_named(column)
    assert (metric.column, metric.plain, metric.signed, metric.better) == (column, plain, signed, better)


def test_no_figure_shows_a_formula_s_source() -> None:
    assert not any("$" in metric.plain or "\\" in metric.plain for metric in METRICS.values())


def test_seconds_are_better_when_fewer_and_written_in_three_digits(tmp_path: Path, generated: ModuleType) -> None:
    record = heatmap(experiment(tmp_path, generated, seconds=12345.0), "seconds")
    assert record.panels[0].best == (0, 0)
    assert record.limits == (1234.5, 6172.5)
    assert "1,234" in [text.get_text() for text in draw_heatmap(record).axes[0].texts]


def test_of_counts_none_is_best_and_zero_is_no_centre(tmp_path: Path, generated: ModuleType) -> None:
    found = experiment(tmp_path, generated, replayed=1000.0, bwt=-0.3)
    record = heatmap(found, "replayed")
    assert (record.panels[0].best, record.best_panel, record.limits) == (None, None, (100.0, 500.0))
    assert "★" not in [text.get_text() for text in draw_heatmap(record).axes[0].texts]
    assert heatmap(found, "bwt").limits == pytest.approx((-0.15, 0.15))


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
