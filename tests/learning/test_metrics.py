"""Metrics of R and AUC against loops over Python floats and against scikit-learn."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from clops_sweep.errors import BadInput
from clops_sweep.learning import metrics

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
        {"auc": average, "bwt": bwt, "bwt_t": bwt_t(r, 1), "bwt_lambda": overall / (tasks - 1), "fwt": forward},
        abs=1e-14,
    )
    for t in range(1, tasks):
        assert metrics.backward_transfer_after(r, t) == pytest.approx(bwt_t(r, t), abs=1e-14)


def test_of_two_tasks_all_backward_transfers_are_the_same() -> None:
    r = random_r(2, 9)
    expected = r[1][0] - r[0][0]
    found = metrics.all_metrics(r)
    assert found["bwt"] == found["bwt_t"] == found["bwt_lambda"] == pytest.approx(expected, abs=1e-16)


def test_a_single_task_has_an_auc_and_nothing_to_forget() -> None:
    found = metrics.all_metrics([[0.7]])
    assert found.pop("auc") == 0.7
    assert all(math.isnan(value) for value in found.values())


def test_t_from_the_number_of_tasks_on_is_nan() -> None:
    assert math.isnan(metrics.backward_transfer_after(random_r(3, 0), 3))
    assert math.isnan(metrics.backward_transfer_after(random_r(3, 0), 7))


def pairwise_auc(scores: list[float], positives: list[bool]) -> float:
    right = pairs = 0.0
    for score, positive in zip(scores, positives, strict=True):
        for other, other_positive in zip(scores, positives, strict=True):
            if positive and not other_positive:
                pairs += 1
                right += 1.0 if score > other else 0.5 if score == other else 0.0
    return right / pairs


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=40))
def test_auc_counts_pairs_and_agrees_with_scikit_learn(pairs: list[tuple[int, bool]]) -> None:
    scores, positives = [pair[0] / 7 for pair in pairs], [pair[1] for pair in pairs]
    if len(set(positives)) == 1:
        assert math.isnan(metrics.binary_auc(scores, positives))
        return
    found = metrics.binary_auc(scores, positives)
    assert found == pytest.approx(pairwise_auc(scores, positives), abs=1e-12)
    assert found == pytest.approx(roc_auc_score(positives, scores), abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("absent", [(), (1,), (0, 3)])
def test_macro_auc_leaves_absent_classes_out_and_counts_them(seed: int, absent: tuple[int, ...]) -> None:
    stream = np.random.default_rng(seed)
    present = [c for c in range(4) if c not in absent]
    codes = stream.permutation(np.resize(present, 30))
    targets = np.eye(4, dtype=np.float32)[codes]
    scores = stream.dirichlet(np.ones(4), 30).round(1).astype(np.float32)
    found = metrics.task_auc("softmax", scores, targets, "here")
    expected = np.mean([roc_auc_score(targets[:, c], scores[:, c]) for c in present])
    assert found.auc == pytest.approx(expected, abs=1e-12)
    assert found.left_out == len(absent)
    if not absent:
        proper = scores.astype(np.float64) / scores.astype(np.float64).sum(1, keepdims=True)
        ovr = roc_auc_score(codes, proper, multi_class="ovr")
        assert metrics.task_auc("softmax", proper, targets, "here").auc == pytest.approx(ovr, abs=1e-12)


def test_macro_auc_over_labels_leaves_constant_labels_out() -> None:
    stream = np.random.default_rng(0)
    targets = (stream.random((25, 3)) < 0.4).astype(np.float32)
    scores = stream.standard_normal((25, 3)).astype(np.float32)
    assert metrics.task_auc("multilabel", scores, targets, "here").auc == pytest.approx(
        roc_auc_score(targets, scores, average="macro"), abs=1e-12
    )
    targets[:, 0], targets[:, 2] = 1, 0
    found = metrics.task_auc("multilabel", scores, targets, "here")
    assert found.auc == pytest.approx(roc_auc_score(targets[:, 1], scores[:, 1]), abs=1e-12)
    assert found.left_out == 2


@pytest.mark.parametrize(("kind", "outputs"), [("binary", 1), ("softmax", 4), ("multilabel", 3)])
def test_no_class_left_is_an_error_that_names_task_and_split(kind: str, outputs: int) -> None:
    targets = np.zeros((5, outputs), np.float32)
    targets[:, 0] = 1
    with pytest.raises(BadInput, match="class_il, task 4-5, validation: no class"):
        metrics.task_auc(kind, np.zeros((5, outputs)), targets, "class_il, task 4-5, validation")


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_diverged_network_is_an_error_that_says_so(broken: float) -> None:
    scores = np.array([[0.1], [broken], [0.3]])
    with pytest.raises(BadInput, match="task 4-5, test: the network's outputs are not finite"):
        metrics.task_auc("binary", scores, np.array([[0.0], [1.0], [1.0]]), "class_il, task 4-5, test")
