from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.collect import Experiment, collect
from clops_sweep.analysis.drawing.pictures import sketch
from clops_sweep.analysis.figures.heatmaps import draw_heatmap, heatmap
from clops_sweep.analysis.report.sections import with_split
from clops_sweep.analysis.report.write import write_report
from clops_sweep.errors import UsageError
from clops_sweep.store.run_store import RunStore

SPACE = SearchSpace(
    "by hand",
    RunConfig(),
    {
        "storage_fraction": [0.1, 0.5],
        "order": {"Top": {}, "Bottom": {"storage_order": "bottom"}},
        "acquisition_fraction": [0.25, 1.0],
    },
    seeds=range(2),
)


@pytest.fixture
def by_hand(tmp_path: Path, generated: ModuleType) -> Experiment:
    store = RunStore(tmp_path)
    rows = []
    for request in SPACE.requests():
        c = request.config
        if c.storage_order == "bottom" and (c.storage_fraction == 0.1 or c.seed == 1):
            continue
        auc = 0.6 + c.storage_fraction / 10 + c.acquisition_fraction / 100 + 0.02 * c.seed
        rows.append((c, {"auc": auc - 0.2 * (c.storage_order == "bottom"), "bwt": -auc / 10}))
    generated.write_given_runs(store, rows)
    return collect([SPACE], store.read("runs"))[0]


def test_record_by_hand(by_hand: Experiment) -> None:
    record = heatmap(by_hand)
    top, bottom = record.panels
    assert (record.row_axis, record.column_axis) == ("storage_fraction", "acquisition_fraction")
    assert (top.title, bottom.title) == ("Top", "Bottom")
    np.testing.assert_allclose(top.mean, [[0.6225, 0.63], [0.6625, 0.67]])
    np.testing.assert_allclose(top.sd, np.full((2, 2), 0.02 / math.sqrt(2)))
    np.testing.assert_allclose(bottom.mean, [[math.nan, math.nan], [0.4525, 0.46]])
    assert bottom.n.tolist() == [[0, 0], [1, 1]]
    assert bottom.asked.tolist() == [[2, 2], [2, 2]]
    assert (top.best, bottom.best, record.best_panels) == ((1, 1), (1, 1), (0,))
    assert record.limits == pytest.approx((0.4525, 0.67))


def test_a_caption_says_whose_data_metrics_are_of_whatever_names_it_holds(by_hand: Experiment) -> None:
    record = heatmap(by_hand)
    named = sketch(draw_heatmap, record, "n", "AUC", "For comparison: my test set 0.7.")
    assert with_split(named, by_hand, ["auc"]).caption.endswith("my test set 0.7. Metrics of the validation set.")
    stated = sketch(draw_heatmap, record, "n", "AUC", "Validation AUC.", states_split=True)
    assert with_split(stated, by_hand, ["auc"]).caption == "Validation AUC."


def test_seeds_of_several_splits_are_counted_as_they_are(tmp_path: Path, generated: ModuleType) -> None:
    """Three seeds on one patient split and one on the other: n counts splits, and no run is missing."""
    axes = {"storage_fraction": [0.1, 0.5], "acquisition_fraction": [0.25, 1.0], "split_seed": range(2)}
    space = SearchSpace(
        "unequal", RunConfig(), axes, seeds=3, where=lambda config: config.split_seed == 0 or config.seed == 0
    )
    store = RunStore(tmp_path / "store")
    generated.write_given_runs(store, [(it.config, {"auc": 0.6 + 0.01 * it.config.seed}) for it in space.requests()])
    (panel,) = heatmap(collect([space], store.read("runs"))[0]).panels
    assert (panel.n[0, 0], panel.finished[0, 0], panel.asked[0, 0]) == (2, 4, 4)
    figure = draw_heatmap(heatmap(collect([space], store.read("runs"))[0]))
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert not [text for text in texts if "runs" in text or "n =" in text], "nothing is missing"
    page = write_report([space], store, tmp_path / "report").index.read_text()
    assert "over 2 patient splits with 3 seeds on 1 and 1 seed on 1" in page


@pytest.mark.parametrize(
    ("metric", "axes", "message"),
    [
        ("bwtt", None, r"metric 'bwtt': expected a numeric column of runs, .* \(did you mean 'bwt_t'\?\)"),
        ("git_commit", None, "metric 'git_commit': expected a numeric column of runs, such as auc, bwt"),
        ("auc", ("storage_fraction", "depth"), "no axis 'depth'; it has storage_fraction, order"),
        ("auc", ("order", "order"), "named twice"),
    ],
)
def test_wrong_choices_end_in_a_sentence(
    by_hand: Experiment, metric: str, axes: tuple[str, str] | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        heatmap(by_hand, metric, axes)


def test_drawing_shows_values_gaps_and_counts(by_hand: Experiment) -> None:
    record = heatmap(by_hand)
    figure = draw_heatmap(record)
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert {"0.670", "0.460", "1 of 2 runs", "★"} <= set(texts)
    hatched = [cells for axes in figure.axes for cells in axes.collections if cells.get_hatch()]
    assert [len(cells.get_paths()) for cells in hatched] == [2]


def test_a_star_marks_the_best_complete_cell_of_each_data_set(tmp_path: Path, generated: ModuleType) -> None:
    """An easy data set had the only star, and a cell with one lucky seed the frame."""
    base = RunConfig(dataset="mitbih", network="small_cnn", epochs_per_task=5, learning_rate=0.001)
    fractions = {"storage_fraction": [0.1, 0.5], "acquisition_fraction": [0.25, 1.0]}
    space = SearchSpace("data", base, {"dataset": ["mitbih", "synthetic"], **fractions}, seeds=range(3))
    rows = []
    for request in space.requests():
        config = request.config
        is_lucky = (config.storage_fraction, config.acquisition_fraction) == (0.1, 0.25)
        if is_lucky and config.seed:
            continue
        auc = 0.6 + 0.2 * (config.dataset == "synthetic") + config.storage_fraction / 10 + 0.15 * is_lucky
        rows.append((config, {"auc": auc - 0.01 * config.acquisition_fraction, "bwt": -auc}))
    store = RunStore(tmp_path / "store")
    generated.write_given_runs(store, rows)
    (experiment,) = collect([space], store.read("runs"))
    record = heatmap(experiment)
    assert [panel.best for panel in record.panels] == [(1, 0), (1, 0)], "b = 0.5, a = 0.25 has all its runs"
    assert record.best_panels == (0, 1)
    stars = [text for axes in draw_heatmap(record).axes for text in axes.texts if text.get_text() == "★"]
    assert len(stars) == 2
    across = heatmap(experiment, axes=("dataset", "storage_fraction"))
    assert [panel.best for panel in across.panels] == [None, None], "cells of two data sets cannot be ranked"
    page = write_report([space], store, tmp_path / "report").index.read_text()
    assert "star: the best of each data set and scenario; hatched: no finished run. Cells without all of" in page
