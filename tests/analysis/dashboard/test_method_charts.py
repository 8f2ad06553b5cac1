"""The charts of methods on the overview: the numbers of the tables, and what they say of how sure the best one is."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import stats

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.dashboard.method_charts import MethodCharts, method_charts
from clops_sweep.analysis.dashboard.methods import method_tables
from clops_sweep.analysis.dashboard.snapshot import FollowedStore
from clops_sweep.analysis.dashboard.source import StoreSource
from clops_sweep.store.run_store import RunStore

SCORES = {"er": (0.90, 0.92, 0.91, 0.93), "finetune": (0.80, 0.83, 0.80, 0.85), "lwf": (0.89, 0.93, 0.90, 0.93)}


def charts_of(
    scores: dict[str, tuple[float, ...]], generated: ModuleType, store: RunStore
) -> tuple[list[MethodCharts], int]:
    """The charts of methods with a score for each seed."""
    seeds = range(max(map(len, scores.values())))
    space = SearchSpace("own", RunConfig(), {"strategy": list(scores)}, seeds)
    runs = []
    for request in space.requests():
        of_method = scores[request.config.strategy]
        if request.config.seed < len(of_method):
            runs.append((request.config, {"auc": of_method[request.config.seed]}))
    generated.write_given_runs(store, runs)
    source = StoreSource(store, lambda key: None, lambda store: [space])
    tables = method_tables(FollowedStore(store, source, 0).snapshot)
    return method_charts(tables, ["own"])


def trace_of(chart: str) -> dict[str, Any]:
    (trace,) = json.loads(chart)["data"]
    return trace


def labels_of(chart: str) -> list[str]:
    """The words above each row."""
    return [annotation["text"] for annotation in json.loads(chart)["layout"]["annotations"]]


def test_a_point_is_the_mean_with_its_interval_the_best_first(generated: ModuleType, tmp_path: Any) -> None:
    (charts,), left = charts_of(SCORES, generated, RunStore(tmp_path / "results"))
    assert left == 0
    trace = trace_of(charts.means)
    order = sorted(SCORES, key=lambda name: -np.mean(SCORES[name]))
    assert trace["x"] == pytest.approx([np.mean(SCORES[name]) for name in order])
    half = [stats.t.ppf(0.975, 3) * stats.sem(SCORES[name]) for name in order]
    assert trace["error_x"]["arrayminus"] == pytest.approx(half)
    assert trace["customdata"] == [f"/runs?experiment=own&only-strategy={name}" for name in order]
    labels = labels_of(charts.means)
    ends = [f"{np.mean(SCORES[name]) - below:.3f}" for name, below in zip(order, half, strict=True)]
    assert [label.split("<br>")[0] for label in labels] == [f"<b>{order[0]}</b>", *order[1:]]
    for name, label, low in zip(order, labels, ends, strict=True):
        assert label.split("<br>")[1].startswith(f"{np.mean(SCORES[name]):.3f} [{low}, ")
    assert [label.rpartition("]")[2] for label in labels] == [", 4 seeds, best", ", 4 seeds", ", 4 seeds"]
    assert charts.in_words.startswith(
        f"validation AUC, mean and 95 % interval: {order[0]} {np.mean(SCORES[order[0]]):.3f} ["
    )


def test_the_caption_says_which_methods_the_best_one_is_not_told_apart_from(
    generated: ModuleType, tmp_path: Any
) -> None:
    (charts,), _ = charts_of(SCORES, generated, RunStore(tmp_path / "results"))
    best, second, last = sorted(SCORES, key=lambda name: -np.mean(SCORES[name]))
    trace = trace_of(charts.differences)
    assert trace["x"] == pytest.approx([np.mean(SCORES[name]) - np.mean(SCORES[best]) for name in (second, last)])
    ends = zip(trace["x"], trace["error_x"]["array"], strict=True)
    assert [mean + above < 0 for mean, above in ends] == [False, True]
    assert charts.caption == (  # validation people rank them: the best score is no luck of test people
        "Mean of each method with its 95 % interval, unadjusted, and its paired difference from the best one. Where n "
        "counts seeds, the interval is about one patient split, not over people. The data do not tell the best method "
        f"apart from {second}."
    )


def test_two_seeds_have_no_interval_and_the_caption_says_so(generated: ModuleType, tmp_path: Any) -> None:
    scores = {name: values[:2] for name, values in SCORES.items()}
    (charts,), _ = charts_of(scores, generated, RunStore(tmp_path / "results"))
    assert set(trace_of(charts.means)["error_x"]["array"]) == {0.0}
    assert "without intervals: they take three patient splits or seeds. The order may be chance." in charts.caption


def test_an_incomplete_method_is_last_and_says_so(generated: ModuleType, tmp_path: Any) -> None:
    (charts,), _ = charts_of(SCORES | {"lwf": (0.99,)}, generated, RunStore(tmp_path / "results"))
    assert labels_of(charts.means)[-1] == "lwf<br>0.990, 1 seed, incomplete"
    colours = trace_of(charts.means)["marker"]["color"]
    assert len(set(colours)) == 3


def test_methods_with_equal_means_are_all_marked(generated: ModuleType, tmp_path: Any) -> None:
    """The first of two was marked as tied, and the other was not marked."""
    values = (0.80, 0.82, 0.84)
    scores = {"er": values, "lwf": values[::-1], "mas": (0.8201, 0.8202, 0.82), "finetune": (0.70, 0.72, 0.71)}
    (charts,), _ = charts_of(scores, generated, RunStore(tmp_path / "results"))
    is_tied = {label.split("<br>")[0]: label.endswith("tied for the best") for label in labels_of(charts.means)}
    assert is_tied == {"<b>er</b>": True, "<b>lwf</b>": True, "<b>mas</b>": True, "finetune": False}
    blue = trace_of(charts.means)["marker"]["color"]
    assert len(set(blue[:3])) == 1
    assert blue[3] != blue[0]
    assert "do not tell the best method apart from" in charts.caption


def test_one_method_has_no_chart(generated: ModuleType, tmp_path: Any) -> None:
    assert charts_of({"er": SCORES["er"]}, generated, RunStore(tmp_path / "results")) == ([], 0)
