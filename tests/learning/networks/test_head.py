"""`head`: the last layer of a network, and one sigmoid per class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cosine_similarity

from clops_sweep import ContinualRun
from clops_sweep.learning.metrics.evaluation import Evaluator
from clops_sweep.learning.networks.head import CosineHead
from clops_sweep.testing import tiny_config, tiny_frames

UNION = "class_il_union"


def run_of(**settings: Any) -> ContinualRun:
    given = {"strategy": "finetune", "epochs_per_task": 1} | settings
    return ContinualRun(tiny_config(UNION, **given), tiny_frames(UNION), keep_predictions=True, keep_models="last")


def test_cosine_logits_are_scaled_cosines_and_their_gradients_those_of_autograd() -> None:
    stream = torch.Generator().manual_seed(0)
    head = CosineHead(nn.Linear(5, 3)).double()
    features = torch.randn(4, 5, generator=stream, dtype=torch.float64, requires_grad=True)
    expected = 10 * cosine_similarity(features[:, None], head.weight[None], dim=2)
    torch.testing.assert_close(head(features), expected)
    by = torch.randn(4, 3, generator=stream, dtype=torch.float64)
    leaves = [features, head.weight]
    for one, other in zip(*(torch.autograd.grad(z, leaves, by) for z in (head(features), expected)), strict=True):
        torch.testing.assert_close(one, other)
    assert head(torch.zeros(1, 5, dtype=torch.float64)).tolist() == [[0, 0, 0]]


def test_per_class_is_one_sigmoid_for_each_class_and_predicts_the_largest() -> None:
    run = run_of(head="per_class", epochs_per_task=2, learning_rate=0.01)
    result = run.run()
    tests = [task.test for task in run.scenario.tasks]
    rows = torch.from_numpy(np.concatenate([part.rows for part in tests]))
    targets = np.concatenate([part.targets for part in tests])
    logits = run.learner.logits(rows).double()
    at_end = result.predictions[result.predictions["trained_on"] == len(tests)]
    np.testing.assert_allclose(at_end.filter(regex="^probability_"), logits.sigmoid().numpy(), atol=1e-6)
    last = Evaluator(run.scenario, "test", run.learner, joint=False).evaluate()
    sizes = np.cumsum([len(part.rows) for part in tests])[:-1]
    for task, (z, y) in enumerate(zip(np.split(logits.numpy(), sizes), np.split(targets, sizes), strict=True)):
        assert last.accuracy[task] == pytest.approx((z.argmax(1) == y.argmax(1)).mean())
        loss = binary_cross_entropy_with_logits(torch.from_numpy(z), torch.from_numpy(y).double())
        assert last.loss[task] == pytest.approx(float(loss), rel=1e-5)
        own = run.scenario.tasks[task].outputs
        assert last.auc[task] == pytest.approx(np.mean([roc_auc_score(y[:, c], z[:, c]) for c in own]))
    assert result.runs["test_accuracy"].item() > 0


def test_per_class_trains_each_logit_by_itself() -> None:
    """Outputs do not affect one another: the bias of each follows its own cross-entropy."""
    run = run_of(head="per_class", network="linear", epochs_per_task=1, optimizer="sgd", learning_rate=0.5)
    learner, task = run.learner, run.tasks[0]
    rows, targets = task.rows, task.targets
    order = torch.arange(len(rows))
    weight, bias = (learner.parameters.views[f"1.{kind}"].double() for kind in ("weight", "bias"))
    frames = learner.bank.gather(rows).double()
    expected = bias - 0.5 * ((frames @ weight.T + bias).sigmoid() - targets).mean(0) / 6
    learner.train_epoch(task, None, order, len(rows), torch.zeros(2, dtype=torch.int32))
    torch.testing.assert_close(learner.parameters.views["1.bias"].double(), expected, atol=1e-6, rtol=1e-5)
