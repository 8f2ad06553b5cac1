"""Evaluation of whole runs against scikit-learn on a plain network's outputs, including both AUCs of joint training."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from clops_sweep import ContinualRun
from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import Diverged
from clops_sweep.learning.losses import log_odds
from clops_sweep.learning.metrics import r_matrix as metrics
from clops_sweep.learning.metrics.evaluation import Evaluator
from clops_sweep.learning.networks.multitask import joint_scenario
from clops_sweep.testing import tiny_config, tiny_frames

KINDS = ("class_il", "time_il", "domain_il")


def logits_of(run: ContinualRun, frames: FrameSet, rows: Any, paper_network: Any) -> np.ndarray[Any, Any]:
    network = paper_network.of(run.learner)
    with torch.no_grad():
        values: np.ndarray[Any, Any] = network(torch.from_numpy(frames.signal(rows)).double()[:, None]).numpy()
    return values


@pytest.mark.parametrize("kind", KINDS)
def test_r_is_what_scikit_learn_says_of_the_networks_outputs(kind: str, paper_network: Any) -> None:
    frames = tiny_frames(kind)
    run = ContinualRun(tiny_config(kind), frames)
    expected: dict[tuple[str, int, int], float] = {}
    while not run.finished:
        progress = run.advance()
        if not run.at_task_end:
            continue
        for j, task in enumerate(run.scenario.tasks, start=1):
            for split in ("validation", "test"):
                subset = getattr(task, split)
                logits = logits_of(run, frames, subset.rows, paper_network)
                if kind == "time_il":
                    exponentials = np.exp(logits - logits.max(1, keepdims=True))
                    logits = exponentials / exponentials.sum(1, keepdims=True)
                targets = subset.targets
                expected[split, progress.task, j] = float(
                    np.mean([roc_auc_score(targets[:, c], logits[:, c]) for c in range(targets.shape[1])])
                )
    result = run.result()
    for row in result.r_matrix.itertuples():
        assert row.auc == pytest.approx(expected[row.split, row.trained_on, row.evaluated_on], abs=1e-12)
    assert len(result.r_matrix) == len(expected) == 18
    for split, prefix in (("validation", ""), ("test", "test_")):
        r = [[expected[split, i, j] for j in (1, 2, 3)] for i in (1, 2, 3)]
        for name, value in metrics.all_metrics(r).items():
            assert result.runs[prefix + name].item() == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_joint_strategy_has_the_auc_of_the_union_and_of_each_task(kind: str, paper_network: Any) -> None:
    frames = tiny_frames(kind)
    run = ContinualRun(tiny_config(kind, strategy="multitask"), frames)
    result = run.run()
    tasks = run.scenario.tasks
    for split, prefix in (("validation", ""), ("test", "test_")):
        rows = np.concatenate([getattr(task, split).rows for task in tasks])
        targets = np.concatenate([getattr(task, split).targets for task in tasks])
        logits = logits_of(run, frames, rows, paper_network)
        if kind == "domain_il":
            union = roc_auc_score(targets, logits, average="macro")
        else:
            exponentials = np.exp(logits - logits.max(1, keepdims=True))
            probabilities = exponentials / exponentials.sum(1, keepdims=True)
            union = roc_auc_score(targets.argmax(1), probabilities, multi_class="ovr", average="macro")
        assert result.runs[f"{prefix}auc"].item() == pytest.approx(union, abs=1e-12)
        assert result.runs[[f"{prefix}{name}" for name in ("bwt", "bwt_t", "bwt_lambda", "fwt")]].isna().all(axis=None)
        r = result.r_matrix[result.r_matrix["split"] == split]
        assert r["trained_on"].tolist() == [3, 3, 3]
        if kind == "class_il":
            start = 0
            assert logits.shape[1] == 6
            for number, task in enumerate(tasks):
                part = logits[start : start + len(getattr(task, split).rows)]
                own = targets[start : start + len(part)]
                start += len(part)
                difference = part[:, 2 * number + 1] - part[:, 2 * number]
                expected = roc_auc_score(own[:, 2 * number + 1], difference)
                assert r["auc"].tolist()[number] == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.lists(st.floats(-80, 80, width=32), min_size=2, max_size=5), min_size=1, max_size=1))
def test_log_odds_are_those_of_the_exact_probabilities(logits: list[list[float]]) -> None:
    found = log_odds(torch.tensor(logits, dtype=torch.float32))[0].tolist()
    with localcontext(prec=120):
        odds = [Decimal(z).exp() for z in logits[0]]
        expected = [float((one / (sum(odds) - one)).ln()) for one in odds]
    assert found == pytest.approx(expected, rel=1e-13, abs=1e-13)


def test_pairs_of_classes_are_numbered_through_in_the_order_of_training() -> None:
    frames = tiny_frames("class_il")
    run = ContinualRun(tiny_config("class_il", task_order=(2, 0, 1)), frames)
    joint = joint_scenario(run.scenario)
    assert (joint.kind, joint.outputs) == ("softmax", 6)
    for place, task in enumerate(joint.tasks):
        pair = (2, 0, 1)[place]
        expected = 2 * place + (frames.labels[task.train.rows] - 2 * pair)
        assert task.train.targets.argmax(1).tolist() == expected.tolist()
        assert (task.train.targets.sum(1) == 1).all()


def with_labels(frames: FrameSet, labels: np.ndarray[Any, Any]) -> FrameSet:
    return FrameSet(**(vars(frames) | {"labels": labels}))


def test_an_absent_class_is_left_out_of_auc_and_counted() -> None:
    frames = tiny_frames("time_il")
    labels = frames.labels.copy()
    first_term = frames.times < np.datetime64("2019-01-01")
    labels[first_term & (frames.split == 1) & (labels == 3)] = 0
    changed = with_labels(frames, labels)
    run = ContinualRun(tiny_config("time_il"), changed)
    result = run.run()
    assert result.runs["left_out"].tolist() == [1]
    assert result.r_matrix["auc"].between(0, 1).all()
    whole = ContinualRun(tiny_config("time_il"), frames).run()
    assert whole.runs["left_out"].tolist() == [0]


def test_a_constant_label_is_left_out_and_counted_in_every_split_it_is_constant_in() -> None:
    frames = tiny_frames("domain_il")
    labels = frames.labels.copy()
    labels[frames.split == 2, 1] = 0
    result = ContinualRun(tiny_config("domain_il"), with_labels(frames, labels)).run()
    assert result.runs["left_out"].tolist() == [3]  # the test split of each of three leads


@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
def test_outputs_that_are_not_finite_are_an_error_that_says_so(broken: float) -> None:
    run = ContinualRun(tiny_config("class_il"), tiny_frames("class_il"))
    run.learner.parameters.views["linear2.bias"].fill_(broken)
    with pytest.raises(Diverged, match="class_il, task 0-1, test: the network's outputs are not finite"):
        Evaluator(run.scenario, "test", run.learner, joint=False).evaluate()
