from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.collect import Experiment, collect
from clops_sweep.analysis.drawing.style import as_png
from clops_sweep.analysis.figures.cost import (
    cost_frontier,
    draw_cost_frontier,
    frontier,
)
from clops_sweep.analysis.figures.differences import difference_heatmap
from clops_sweep.analysis.figures.heatmaps import draw_heatmap
from clops_sweep.analysis.figures.importance import draw_importance, importance
from clops_sweep.analysis.figures.profiles import draw_profile, profile
from clops_sweep.analysis.tables.comparisons import comparison_text, comparisons
from clops_sweep.errors import UsageError
from clops_sweep.store.run_store import RunStore

SPACE = SearchSpace(
    "by hand",
    RunConfig(),
    {
        "order": {"Top": {}, "Bottom": {"storage_order": "bottom"}},
        "storage_fraction": [0.1, 0.5],
        "mc_samples": [5, 20],
    },
    seeds=range(6),
)


def collected(tmp_path: Path, generated: ModuleType, auc, space: SearchSpace = SPACE) -> Experiment:  # type: ignore[no-untyped-def]
    store = RunStore(tmp_path)
    configs = [request.config for request in space.requests()]
    rows = [
        (c, {"auc": auc(c), "seconds": 100 * c.storage_fraction + c.mc_samples, "replayed": 40 * c.storage_fraction})
        for c in configs
    ]
    generated.write_given_runs(store, rows)
    return collect([space], store.read("runs"))[0]


NOISE = np.random.default_rng(3).normal(0, 0.002, (6, 2, 2, 2))


def noisy(c: RunConfig) -> float:
    bottom, half = c.storage_order == "bottom", c.storage_fraction == 0.5
    noise = NOISE[c.seed, int(bottom), int(half), int(c.mc_samples == 20)]
    return 0.7 + 0.1 * half - 0.05 * bottom + 0.03 * c.seed + float(noise)


def test_variants_are_compared_at_the_same_place(tmp_path: Path, generated: ModuleType) -> None:
    record = comparisons(collected(tmp_path, generated, noisy))
    assert (record.rows[0].name, record.rows[0].baseline) == (
        "Bottom, b = 0.1, T = 5",
        "Top, b = 0.1, T = 5",
    )
    assert len(record.rows) == 4
    for row in record.rows:
        difference = row.differences["auc"]
        # seeds differ by 0.03 each, which pairing takes out
        assert difference.mean == pytest.approx(-0.05, abs=0.004)
        assert difference.p <= row.corrected["auc"] < 0.01
        assert math.isnan(row.differences["bwt"].mean)
    text = comparison_text(record, "x", "X")
    assert any("about that split" in note for note in text.notes)
    assert text.data["auc_difference"].tolist() == [row.differences["auc"].mean for row in record.rows]


def test_frontier_by_hand() -> None:
    cost = np.array([1.0, 2.0, 2.0, 3.0, 4.0, 4.0])
    value = np.array([0.5, 0.7, 0.6, 0.7, 0.9, 0.9])
    assert frontier(cost, value).tolist() == [True, True, False, False, True, True]


def test_each_data_set_has_a_frontier_of_complete_configurations(tmp_path: Path, generated: ModuleType) -> None:
    """An easier data set dominated all others, and one lucky seed a whole configuration."""
    base = RunConfig(dataset="mitbih", network="small_cnn", epochs_per_task=5, learning_rate=0.001)
    space = SearchSpace(
        "data", base, {"dataset": ["mitbih", "synthetic"], "storage_fraction": [0.1, 0.2, 0.5]}, seeds=range(3)
    )
    rows = []
    for request in space.requests():
        config = request.config
        is_lucky = config.storage_fraction == 0.2
        if not (is_lucky and config.seed):
            easy = 0.2 * (config.dataset == "synthetic")
            auc = 0.6 + easy + config.storage_fraction / 10 + 0.2 * is_lucky
            rows.append((config, {"auc": auc, "seconds": 100 * config.storage_fraction - 5 * (easy > 0)}))
    store = RunStore(tmp_path)
    generated.write_given_runs(store, rows)
    (experiment,) = collect([space], store.read("runs"))
    record = cost_frontier(experiment)
    on_front = [name for name, is_on in zip(record.names, record.on_frontier, strict=True) if is_on]
    assert on_front == ["mitbih, b = 0.1", "mitbih, b = 0.5", "synthetic, b = 0.1", "synthetic, b = 0.5"]
    assert as_png(draw_cost_frontier(record)).startswith(b"\x89PNG")


def test_importance_finds_the_shares_of_variance(tmp_path: Path, generated: ModuleType) -> None:
    # effects 0.1 and 0.05 on two balanced axes: variances 0.0025 and 0.000625, shares 0.8 and 0.2
    record = importance(collected(tmp_path, generated, lambda c: noisy(c) - 0.03 * c.seed))
    assert record.axes[:2] == ("storage_fraction", "order")
    shares = dict(zip(record.axes, record.mean, strict=True))
    # with 8 cells a shuffle leaves some of them in place, hence the margin
    assert shares["storage_fraction"] == pytest.approx(0.8, abs=0.2)
    assert shares["order"] == pytest.approx(0.2, abs=0.1)
    assert abs(shares["mc_samples"]) < 0.02
    assert record.r2 > 0.95
    assert as_png(draw_importance(record)).startswith(b"\x89PNG")


def test_profile_by_hand(tmp_path: Path, generated: ModuleType) -> None:
    experiment = collected(tmp_path, generated, lambda c: c.storage_fraction + c.seed / 10)
    record = profile(experiment)
    assert (record.axis, record.labels, record.is_scale) == ("storage_fraction", (0.1, 0.5), True)
    assert len(record.variants) == 4
    np.testing.assert_allclose(record.values["auc"][0, 1], 0.5 + np.arange(6) / 10)
    assert as_png(draw_profile(record)).startswith(b"\x89PNG")
    by_variant = profile(experiment, "order")
    assert not by_variant.is_scale
    with pytest.raises(UsageError, match="no axis 'depth'"):
        profile(experiment, "depth")


def test_differences_stand_at_their_place(tmp_path: Path, generated: ModuleType) -> None:
    experiment = collected(tmp_path, generated, noisy)
    record = difference_heatmap(experiment, comparisons(experiment), "auc", ("storage_fraction", "mc_samples"))
    (panel,) = record.panels
    assert panel.title == "Bottom minus Top"
    by_replicate = experiment.by_replicate("auc")
    np.testing.assert_allclose(panel.mean, (by_replicate[4:] - by_replicate[:4]).mean(axis=1).reshape(2, 2))
    assert panel.marked.all()
    assert panel.n.tolist() == [[6, 6], [6, 6]]
    low, high = record.limits
    assert -low == high == pytest.approx(float(np.abs(panel.mean).max()))
    texts = draw_heatmap(record).axes[0].texts
    assert sum(text.get_text().endswith("*") for text in texts) == 4
    with pytest.raises(UsageError, match="two axes of numbers"):
        difference_heatmap(experiment, comparisons(experiment), "auc", ("order", "mc_samples"))
    of_splits = replace(experiment, runs=experiment.runs.assign(split_seed=experiment.runs["seed"] % 2))
    (panel,) = difference_heatmap(of_splits, comparisons(of_splits), "auc", ("storage_fraction", "mc_samples")).panels
    assert panel.n.tolist() == panel.asked.tolist() == [[2, 2], [2, 2]], "a split with all its seeds is one pair"


def test_strategies_are_compared_with_fine_tuning(tmp_path: Path, generated: ModuleType) -> None:
    methods = {"CLOPS": {}, "Fine-tuning": {"strategy": "finetune"}, "Random": {"storage_order": "random"}}
    space = SearchSpace("methods", RunConfig(), {"method": methods, "split_seed": [0, 1, 2]}, seeds=range(2))

    def auc(c: RunConfig) -> float:
        return 0.6 + 0.1 * (c.strategy == "clops") * (1 + c.split_seed) + 0.01 * c.seed

    record = comparisons(collected(tmp_path, generated, auc, space))
    assert [(row.name, row.baseline) for row in record.rows[:2]] == [
        ("CLOPS", "Fine-tuning"),
        ("Random", "Fine-tuning"),
    ]
    # three splits, not six runs, are what the interval rests on
    assert record.rows[0].differences["auc"].n == 3
    assert record.rows[0].differences["auc"].mean == pytest.approx(0.2)
