"""Evaluation and Monte-Carlo passes against the network in float64, and the dropout masks themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from scipy.stats import binomtest

from clops_sweep.data.scenarios import LossKind
from clops_sweep.learning import losses
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.networks import dropout

Make = Callable[..., Any]
KINDS = ["binary", "softmax", "multilabel"]


@pytest.fixture
def trained(learner: Make, batch: Make) -> Make:
    """A learner after some steps."""

    def make(kind: LossKind) -> Any:
        ours = learner(kind)
        for seed in range(5):
            ours.train_step(*batch(kind, 16, seed))
        return ours

    return make


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("size", "samples"), [(37, 1), (37, 2), (37, 7), (1, 20), (3, 7), (8, 3), (19, 20), (25, 5)])
def test_dropout_probabilities(
    kind: LossKind, size: int, samples: int, trained: Make, bank: FrameBank, reference: Any, masks_of: Make
) -> None:
    ours = trained(kind)
    rows = torch.arange(size)
    keys = torch.tensor([-5, 9], dtype=torch.int32)
    noise = torch.randn(size, 2500, generator=torch.Generator().manual_seed(0))
    for added in (None, noise):
        found = ours.dropout_probabilities(rows, samples, keys, noise=added)
        frames = bank.gather(rows) + (0 if added is None else added)
        masks = masks_of(keys, torch.arange(size * samples))
        logits = reference.of(ours).logits(frames.repeat_interleave(samples, 0), masks, training=False)
        expected = losses.probabilities(kind, logits).view(size, samples, -1)
        torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("samples", [1, 5, 20])
def test_an_instance_gets_the_same_whatever_is_beside_it(samples: int, trained: Make) -> None:
    ours = trained("softmax")
    rows, keys = torch.arange(33), torch.tensor([3, -8], dtype=torch.int32)
    everything = ours.dropout_probabilities(rows, samples, keys)
    for size in range(1, 33):
        found = ours.dropout_probabilities(rows[:size], samples, keys)
        torch.testing.assert_close(found, everything[:size], rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 16, 37])
def test_evaluation(kind: LossKind, size: int, trained: Make, bank: FrameBank, reference: Any) -> None:
    ours = trained(kind)
    rows = torch.arange(size)
    frames = bank.gather(rows)
    ones = [torch.ones(())] * 3
    expected = reference.of(ours).logits(frames, ones, training=False)
    torch.testing.assert_close(ours.logits(rows).double(), expected, rtol=1e-4, atol=1e-5)
    noise = torch.randn(size, 2500, generator=torch.Generator().manual_seed(0))
    noisy = reference.of(ours).logits(frames + noise, ones, training=False)
    torch.testing.assert_close(ours.logits(rows, noise=noise).double(), noisy, rtol=1e-4, atol=1e-5)
    found = ours.probabilities(rows, noise=noise).double()
    torch.testing.assert_close(found, losses.probabilities(kind, noisy), rtol=0, atol=1e-5)


def test_shifted_parameters(trained: Make, reference: Any, bank: FrameBank) -> None:
    """Evaluation at other parameters leaves the learner's own alone."""
    ours = trained("softmax")
    before = ours.parameters.flat.clone()
    shift = 0.01 * torch.randn(before.shape, generator=torch.Generator().manual_seed(0))
    rows = torch.arange(20)
    found = ours.logits(rows, shift=shift)
    assert torch.equal(ours.parameters.flat, before)
    ours.parameters.flat.add_(shift)
    expected = reference.of(ours).logits(bank.gather(rows), [torch.ones(())] * 3, training=False)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)


def test_mask_frequency(learner: Make, bank: FrameBank) -> None:
    """How often the kernels drop a unit: a network that counts them, one layer at a time.

    A first block that is 1 everywhere, second and third blocks and linear layers that add up what they are given: the
    logit is then proportional to the number of units of the third layer that were kept.
    """
    ours = learner()
    views = ours.parameters.views
    ours.parameters.flat.zero_()
    for block in (1, 2, 3):
        views[f"norm{block}.bias"].fill_(1.0)
    views["linear1.weight"].fill_(1.0)
    views["linear2.weight"].fill_(1.0 / 100)
    instances, samples, units = 64, 50, dropout.UNITS[2]
    keys = torch.tensor([11, 12], dtype=torch.int32)
    result = torch.empty(instances, samples, 1)
    rows = torch.arange(instances)
    # Logits, not probabilities, which would saturate.
    ours.core.predict(rows.numpy(), None, None, False, samples, keys.numpy(), result.numpy())
    kept = (result / (1 / 0.9)).round().long()
    expected = int(dropout.masks(keys, torch.arange(instances * samples))[:, -units:].count_nonzero())
    total = instances * samples * units
    assert int(kept.sum()) == expected
    assert binomtest(total - int(kept.sum()), total, 0.1).pvalue > 1e-3


def test_noise_has_the_shape_of_an_instance(bank: FrameBank, learner: Make) -> None:
    """Instances whose one channel is a row among others have the shape [1, 2500]."""
    members = FrameBank.__new__(FrameBank)
    vars(members).update(vars(bank), members=torch.arange(1, 20, 2)[:, None], shape=(1, 2500))
    noise = torch.randn(10, 2500, generator=torch.Generator().manual_seed(1))
    found = learner(on=members).logits(torch.arange(10), noise=noise[:, None])
    assert torch.equal(found, learner().logits(torch.arange(1, 20, 2), noise=noise))
