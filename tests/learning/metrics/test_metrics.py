"""Metrics of R and AUC against loops over Python floats and against scikit-learn."""

from __future__ import annotations

import math
import random

import pytest

from clops_sweep.learning.metrics import r_matrix as metrics

SIZES = range(2, 13)


def random_r(tasks: int, seed: int) -> list[list[float]]:
    stream = random.Random(1000 * tasks + seed)
    return [[stream.random() for _ in range(tasks)] for _ in range(tasks)]


def bwt_t(r: list[list[float]], t: int) -> float:
    tasks = len(r)
    total = 0.0
    for j in range(1, tasks - t + 1):
        total += r[j + t - 1][j - 1] - r[j - 1][j - 1]
    return total / (tasks - t)


def forgetting(r: list[list[float]]) -> float:
    """Return the forgetting of Chaudhry et al., 2018, by loops: the best of the earlier rows minus the last."""
    tasks, total = len(r), 0.0
    for j in range(tasks - 1):
        best = -math.inf
        for i in range(tasks - 1):
            best = r[i][j] if r[i][j] > best else best
        total += best - r[tasks - 1][j]
    return total / (tasks - 1)


def average_incremental(r: list[list[float]]) -> float:
    """Return the average of Rebuffi et al., 2017, by loops."""
    total = 0.0
    for i in range(len(r)):
        so_far = 0.0
        for j in range(i + 1):
            so_far += r[i][j]
        total += so_far / (i + 1)
    return total / len(r)


@pytest.mark.parametrize("tasks", SIZES)
@pytest.mark.parametrize("seed", range(3))
def test_metrics_follow_their_formulas(tasks: int, seed: int) -> None:
    r = random_r(tasks, seed)
    average = sum(r[tasks - 1][j - 1] for j in range(1, tasks + 1)) / tasks
    bwt = sum(r[tasks - 1][j - 1] - r[j - 1][j - 1] for j in range(1, tasks)) / (tasks - 1)
    overall = 0.0
    for j in range(1, tasks):
        inner = 0.0
        for t in range(1, tasks - j + 1):
            inner += r[j + t - 1][j - 1] - r[j - 1][j - 1]
        overall += inner / (tasks - j)
    forward = sum(r[j - 2][j - 1] - 0.5 for j in range(2, tasks + 1)) / (tasks - 1)
    assert metrics.all_metrics(r) == pytest.approx(
        {
            **{"auc": average, "bwt": bwt, "bwt_t": bwt_t(r, 1), "bwt_lambda": overall / (tasks - 1), "fwt": forward},
            **{"forgetting": forgetting(r), "average_incremental_auc": average_incremental(r)},
        },
        abs=1e-14,
    )
    for t in range(1, tasks):
        assert metrics.backward_transfer_after(r, t) == pytest.approx(bwt_t(r, t), abs=1e-14)


@pytest.mark.parametrize("tasks", [2, 3, 5])
def test_of_tasks_to_come_nothing_is_needed_but_for_forward_transfer(tasks: int) -> None:
    r = random_r(tasks, 4)
    lower = [[value if j <= i else 0.0 for j, value in enumerate(row)] for i, row in enumerate(r)]
    known = [[value if j <= i else math.nan for j, value in enumerate(row)] for i, row in enumerate(r)]
    found, expected = metrics.all_metrics(known), metrics.all_metrics(lower)
    assert math.isnan(found.pop("fwt"))
    expected.pop("fwt")
    assert found == pytest.approx(expected, abs=1e-14)


def test_a_single_task_has_an_auc_and_nothing_to_forget() -> None:
    found = metrics.all_metrics([[0.7]])
    assert found.pop("auc") == found.pop("average_incremental_auc") == 0.7
    assert all(math.isnan(value) for value in found.values())


def test_t_from_the_number_of_tasks_on_is_nan() -> None:
    assert math.isnan(metrics.backward_transfer_after(random_r(3, 0), 3))
    assert math.isnan(metrics.backward_transfer_after(random_r(3, 0), 7))
