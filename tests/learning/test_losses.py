"""Losses and probabilities of the three kinds of output, from their definitions."""

from __future__ import annotations

import math

import pytest
import torch

from clops_sweep.learning import losses
from tests.learning.conftest import float_loss


@pytest.mark.parametrize(("kind", "outputs"), [("binary", 1), ("softmax", 4), ("multilabel", 5)])
def test_losses_follow_their_definitions(kind: str, outputs: int) -> None:
    stream = torch.Generator().manual_seed(outputs)
    logits = 3 * torch.randn(2, 20, outputs, generator=stream, dtype=torch.float64)
    if kind == "softmax":
        targets = torch.eye(4, dtype=torch.float64)[torch.randint(0, 4, (2, 20), generator=stream)]
    else:
        targets = torch.randint(0, 2, (2, 20, outputs), generator=stream).double()
    found = losses.instance_losses(kind, logits, targets)
    probabilities = losses.probabilities(kind, logits)
    for run in range(2):
        for instance in range(20):
            z, y = logits[run, instance].tolist(), targets[run, instance].tolist()
            assert float(found[run, instance]) == pytest.approx(float_loss(kind, z, y), rel=1e-12)
            expected = (
                [math.exp(v) / sum(math.exp(w) for w in z) for v in z]
                if kind == "softmax"
                else [1 / (1 + math.exp(-v)) for v in z]
            )
            assert probabilities[run, instance].tolist() == pytest.approx(expected, rel=1e-12)


def test_certain_errors_have_finite_losses() -> None:
    logits = torch.tensor([[200.0], [-200.0]])
    assert losses.instance_losses("binary", logits, torch.tensor([[0.0], [1.0]])).tolist() == [200, 200]


@pytest.mark.parametrize(("kind", "outputs"), [("binary", 1), ("softmax", 4), ("multilabel", 5)])
def test_gradients_are_those_of_autograd(kind: str, outputs: int) -> None:
    stream = torch.Generator().manual_seed(outputs)
    logits = 5 * torch.randn(2, 20, outputs, generator=stream, dtype=torch.float64)
    targets = torch.rand(2, 20, outputs, generator=stream, dtype=torch.float64)  # soft ones too
    logits.requires_grad_()
    (expected,) = torch.autograd.grad(losses.instance_losses(kind, logits, targets).sum(), logits)
    torch.testing.assert_close(losses.loss_gradient(kind, logits.detach(), targets), expected)
