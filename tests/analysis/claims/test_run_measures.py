"""Numbers of single runs against ones that are found by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from clops_sweep.analysis.claims.run_measures import MEASURES, RunTables, Sampled
from clops_sweep.analysis.difficulty import task_similarity

R = np.array([[0.9, 0.5, 0.4], [0.6, 0.8, 0.5], [0.7, 0.85, 0.75]])
TASKS = ("b", "a", "c")


def number(name: str, rows: pd.DataFrame, **row: object) -> float:
    found = MEASURES[name][1](RunTables(row, rows))
    return found.value if isinstance(found, Sampled) else found


@pytest.fixture
def r_rows() -> pd.DataFrame:
    rows = [
        {
            "split": split,
            "trained_on": i + 1,
            "evaluated_on": j + 1,
            "task": TASKS[j],
            "auc": R[i, j] - (split == "test"),
        }
        for split in ("validation", "test")
        for i in range(3)
        for j in range(3)
    ]
    return pd.DataFrame(rows).sample(frac=1, random_state=1)


CURVES = np.array(
    [[0.6, 0.5, 0.5], [0.9, 0.5, 0.4], [0.7, 0.6, 0.5], [0.6, 0.8, 0.5], [0.5, 0.82, 0.7], [0.7, 0.85, 0.75]]
)


@pytest.fixture
def curve_rows() -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"epoch": epoch + 1, "training_task": TASKS[epoch // 2], "task": task, "auc": CURVES[epoch, j]}
            for epoch in range(6)
            for j, task in enumerate(TASKS)
        ]
    )


def test_of_r(r_rows: pd.DataFrame) -> None:
    assert number("loss_of_first_task", r_rows) == pytest.approx(0.9 - 0.6)
    assert number("loss_of_first_task_in_the_end", r_rows) == pytest.approx(0.9 - 0.7)
    assert number("worst_task", r_rows) == pytest.approx(0.7)
    assert np.isnan(number("loss_of_lead_i_to_v1", r_rows))
    leads = r_rows.assign(task=r_rows["task"].map({"b": "Lead I", "a": "Lead II", "c": "Lead V1"}))
    assert number("loss_of_lead_i_to_v1", leads) == pytest.approx(0.6 - 0.7), "what training on V1 alone took"


def test_of_curves(curve_rows: pd.DataFrame) -> None:
    assert number("largest_drop", curve_rows) == pytest.approx(0.9 - 0.5)
    assert number("first_epoch_of_last_task", curve_rows) == pytest.approx(0.7)
    assert number("last_epoch_of_last_task", curve_rows) == pytest.approx(0.75)
    assert number("kept_during_last_task", curve_rows) == pytest.approx(((0.5 - 0.6) + 0.0) / 2)


def test_of_rows() -> None:
    empty = pd.DataFrame()
    assert number("log_seconds", empty, seconds=np.e**2) == pytest.approx(2)
    assert number("unsolved_programmes", empty, projections=200, projection_failures=3) == pytest.approx(0.015)
    assert number("unsolved_programmes", empty, projections=0, projection_failures=0) == 0


@pytest.fixture
def instances() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    parts = [
        pd.DataFrame({"run_id": "x", "task": task, "s": rng.normal(mean, 0.05, 200)})
        for task, mean in (("0-1", 18.9), ("2-3", 18.7), ("4-5", 18.85), ("6-7", 18.6))
    ]
    rows = pd.concat(parts, ignore_index=True)
    return rows.assign(beta=rows["s"] / 19 + rng.normal(0, 0.001, len(rows)), instance=np.arange(len(rows)))


def test_of_instances(instances: pd.DataFrame) -> None:
    groups = [group["s"].to_numpy() for _, group in instances.groupby("task")]
    f = stats.f_oneway(*groups).statistic
    eta = 1 / (1 + 796 / (3 * f))
    assert number("share_of_s_between_tasks", instances) == pytest.approx(eta - 3 / 796 * (1 - eta)), "epsilon squared"
    assert number("final_beta", instances) == pytest.approx(instances["beta"].mean())
    correlations = [stats.spearmanr(g["s"], g["beta"])[0] for _, g in instances.groupby("task")]
    assert number("rank_by_beta_is_not_by_s", instances) == pytest.approx(0.95 - np.mean(correlations))
    assert number("distance_from_gaussian", instances) == pytest.approx(0, abs=0.003)
    skewed = instances.assign(
        s=np.exp(instances.groupby("task")["s"].transform(lambda s: (s - s.mean()) / s.std()) * 1.5)
    )
    assert number("distance_from_gaussian", skewed) > 0.1
    similar = task_similarity(instances)
    order = similar.curriculum
    assert order == (0, 2, 1, 3)
    by_hand = np.mean([similar.matrix[a, b] for a, b in pairwise(order)])
    by_hand -= np.mean(np.diag(similar.matrix, 1))
    assert number("similarity_by_curriculum", instances) == pytest.approx(by_hand, abs=0.05)


@pytest.mark.parametrize("name", ["share_of_s_between_tasks", "similarity_by_curriculum"])
def test_tasks_that_differ_do_so_beyond_the_choice_of_people(name: str) -> None:
    """Means of 0, 4, 1, 5, 2 and 6 standard deviations: successive tasks are unlike, and a curriculum sorts them."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(6), 40)
    rows = pd.DataFrame({"task": task, "s": 19 + np.array([0, 4, 1, 5, 2, 6])[task] + rng.normal(size=240)})
    found = MEASURES[name][1](RunTables({}, rows))
    assert found.value > 2.78 * found.variance**0.5 > 0
