"""AUC against scikit-learn, and against counting pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from clops_sweep.errors import UsageError
from clops_sweep.learning.metrics.auc import SeenAucs, TaskAucs

CPU = torch.device("cpu")


def auc_of(auc: TaskAucs, scores: np.ndarray[Any, Any]) -> float:
    return float(auc(torch.from_numpy(scores))[0])


def pairwise_auc(scores: list[float], positives: list[bool]) -> float:
    right = pairs = 0.0
    for score, positive in zip(scores, positives, strict=True):
        for other, other_positive in zip(scores, positives, strict=True):
            if positive and not other_positive:
                pairs += 1
                right += 1.0 if score > other else 0.5 if score == other else 0.0
    return right / pairs


@settings(max_examples=150)
@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=40))
def test_auc_counts_pairs_and_agrees_with_scikit_learn(pairs: list[tuple[int, bool]]) -> None:
    scores, positives = [pair[0] / 7 for pair in pairs], [pair[1] for pair in pairs]
    assume(len(set(positives)) == 2)
    targets = np.array(positives, np.float32)[:, None]
    found = auc_of(TaskAucs([targets], ["here"], CPU), np.array(scores)[:, None])
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
    found = TaskAucs([targets], ["here"], CPU)
    expected = np.mean([roc_auc_score(targets[:, c], scores[:, c]) for c in present])
    assert auc_of(found, scores) == pytest.approx(expected, abs=1e-12)
    assert found.left_out == [len(absent)]
    if not absent:
        proper = scores.astype(np.float64) / scores.astype(np.float64).sum(1, keepdims=True)
        ovr = roc_auc_score(codes, proper, multi_class="ovr")
        assert auc_of(found, proper) == pytest.approx(ovr, abs=1e-12)


def test_macro_auc_over_labels_leaves_constant_labels_out() -> None:
    stream = np.random.default_rng(0)
    targets = (stream.random((25, 3)) < 0.4).astype(np.float32)
    scores = stream.standard_normal((25, 3)).astype(np.float32)
    assert auc_of(TaskAucs([targets], ["here"], CPU), scores) == pytest.approx(
        roc_auc_score(targets, scores, average="macro"), abs=1e-12
    )
    targets[:, 0], targets[:, 2] = 1, 0
    found = TaskAucs([targets], ["here"], CPU)
    assert auc_of(found, scores) == pytest.approx(roc_auc_score(targets[:, 1], scores[:, 1]), abs=1e-12)
    assert found.left_out == [2]


@pytest.mark.parametrize("outputs", [1, 3, 4])
def test_no_class_left_is_an_error_that_names_task_and_split(outputs: int) -> None:
    targets = np.zeros((5, outputs), np.float32)
    targets[:, 0] = 1
    with pytest.raises(UsageError, match="class_il, task 4-5, validation: no class"):
        TaskAucs([targets], ["class_il, task 4-5, validation"], CPU)


def test_the_auc_over_classes_seen_is_that_of_scikit_learn_on_all_tasks_so_far() -> None:
    stream = np.random.default_rng(5)
    classes = stream.permutation(6)
    own = [sorted(classes[first : first + 2].tolist()) for first in (0, 2, 4)]
    codes = [stream.permutation(np.resize(pair, size)) for pair, size in zip(own, (9, 30, 14), strict=True)]
    targets = [np.eye(6, dtype=np.float32)[it] for it in codes]
    scores = stream.integers(0, 9, (53, 6)).astype(np.float32)  # with many ties
    aucs = SeenAucs(targets, own, "here", CPU)
    for seen in (1, 3, 2):
        found, rows = aucs(torch.from_numpy(scores), seen).numpy(), sum(map(len, codes[:seen]))
        truth, there = np.concatenate(codes[:seen]), sorted(it for pair in own[:seen] for it in pair)
        assert np.isnan(found[seen:]).all()
        by_class = {c: roc_auc_score(truth == c, scores[:rows, c]) for c in there}
        expected = [np.mean([by_class[c] for c in pair]) for pair in own[:seen]]
        assert found[:seen] == pytest.approx(expected, abs=1e-12)


def test_over_all_classes_seen_tasks_of_as_many_classes_have_the_macro_average() -> None:
    stream = np.random.default_rng(6)
    codes = [stream.permutation(np.resize(pair, 20)) for pair in ([0, 1], [2, 3], [4, 5])]
    probabilities = stream.dirichlet(np.ones(6), 60)
    aucs = SeenAucs([np.eye(6, dtype=np.float32)[it] for it in codes], [(0, 1), (2, 3), (4, 5)], "here", CPU)
    found = aucs(torch.from_numpy(probabilities), 3)
    expected = roc_auc_score(np.concatenate(codes), probabilities, multi_class="ovr", average="macro")
    assert found.mean().item() == pytest.approx(expected, abs=1e-12)


def test_a_class_that_does_not_occur_is_left_out_of_the_auc_over_classes_seen() -> None:
    codes = [np.array([0, 1, 0]), np.array([2, 2, 4, 4])]
    scores = np.random.default_rng(7).random((7, 5))
    found = SeenAucs([np.eye(5)[it] for it in codes], [(0, 1), (2, 3, 4)], "here", CPU)(torch.from_numpy(scores), 2)
    truth = np.concatenate(codes)
    expected = np.mean([roc_auc_score(truth == c, scores[:, c]) for c in (2, 4)])
    assert found[1].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("outputs", [1, 3])
def test_tasks_of_different_sizes_are_judged_each_by_itself(outputs: int) -> None:
    stream = np.random.default_rng(4)
    sizes = (7, 40, 23)
    targets = [(stream.random((size, outputs)) < 0.5).astype(np.float32) for size in sizes]
    targets[0][:2, 0] = 0, 1
    targets[1][:, 1:] = 1
    scores = stream.integers(0, 9, (sum(sizes), outputs)).astype(np.float32)
    aucs = TaskAucs(targets, [f"task {task}" for task in range(3)], CPU)
    found = aucs(torch.from_numpy(scores))
    for task, part in enumerate(np.split(scores, np.cumsum(sizes)[:-1])):
        kept = [c for c in range(outputs) if len(set(targets[task][:, c])) == 2]
        expected = np.mean([roc_auc_score(targets[task][:, c], part[:, c]) for c in kept])
        assert found[task].item() == pytest.approx(expected, abs=1e-12)
        assert aucs.left_out[task] == outputs - len(kept)
