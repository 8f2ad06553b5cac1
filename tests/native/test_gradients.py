"""Gradients, losses, running statistics and Adam's state against the network in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
import torch

from clops_sweep.data.scenarios import LossKind
from clops_sweep.learning.batches import Epoch, Instances, Replay
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.beta import TaskInstanceParameters
from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.learners.logit_table import PULL, READ, WRITTEN, LogitTable
from clops_sweep.learning.learners.optimizers import Adam, make_optimizer
from clops_sweep.learning.learners.penalty import Penalty
from clops_sweep.testing.watch import difference

COUNT = 300  # frames of a bank
SIZES = (1, 2, 3, 11, 16, 17, 256)
Make = Callable[..., Any]


@pytest.mark.parametrize("kind", ["binary", "softmax", "multilabel"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("training", [True, False])
def test_gradient(
    kind: LossKind,
    size: int,
    training: bool,
    bank: FrameBank,
    learner: Make,
    batch: Make,
    reference: Any,
    masks_of: Make,
    views: Make,
    error: Make,
) -> None:
    content, keys = batch(kind, size)
    ours = learner(kind)
    for _ in range(2):  # statistics that are neither 0 nor 1
        ours.gradient(batch(kind, 16)[0], keys)
    exact = reference.of(ours)
    if training:
        found_losses, flat = ours.gradient(content, keys)
    else:
        found_losses, flat = None, ours.memory_gradient(content, keys)
    frames = bank.gather(content.rows)
    losses, gradient = exact.gradient(frames, content.targets, content.weights, masks_of(keys, content.draws), training)
    if found_losses is not None:
        torch.testing.assert_close(found_losses.double(), losses, rtol=1e-5, atol=1e-6)
    for name, found in views(flat, kind).items():
        if training and name.startswith("conv") and name.endswith("bias"):
            assert not found.any(), "batch statistics take a bias out again"
        else:
            assert error(found, gradient[name]) < 1e-4, name
    for found, expected in zip(ours.statistics, [*exact.means, *exact.variances], strict=True):
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["binary", "multilabel"])
@pytest.mark.parametrize("size", [1, 16, 19])
@pytest.mark.parametrize(("dropped", "training"), [(True, True), (False, True), (True, False), (False, False)])
def test_gradient_of_any_loss(
    kind: LossKind,
    size: int,
    dropped: bool,
    training: bool,
    bank: FrameBank,
    learner: Make,
    batch: Make,
    reference: Any,
    masks_of: Make,
    views: Make,
    error: Make,
) -> None:
    content, keys = batch(kind, size)
    ours = learner(kind)
    ours.gradient(batch(kind, 16)[0], keys)
    exact = reference.of(ours)
    leaves = [value.requires_grad_() for value in exact.parameters.values()]
    masks = masks_of(keys, content.draws) if dropped else [torch.ones(1)] * 3

    def loss(logits: torch.Tensor) -> torch.Tensor:
        return (content.weights.to(logits)[:, None] * (logits - content.targets).pow(4).exp().sqrt()).sum()

    exact_logits = exact.logits(bank.gather(content.rows), masks, training)
    expected = torch.autograd.grad(
        loss(exact_logits), leaves, allow_unused=True, materialize_grads=True
    )  # training takes the bias of a convolution out again
    arguments = (content.draws, keys) if dropped else (None, None)
    logits, flat = ours.loss_gradient(content.rows, *arguments, loss, batch_statistics=training)
    torch.testing.assert_close(logits.double(), exact_logits.detach(), rtol=1e-4, atol=1e-4)
    for (name, found), value in zip(views(flat, kind).items(), expected, strict=True):
        if training and name.startswith("conv") and name.endswith("bias"):
            assert not found.any()
        else:
            assert error(found, value) < 3e-4, name
    for found, value in zip(ours.statistics, [*exact.means, *exact.variances], strict=True):
        torch.testing.assert_close(found.double(), value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["binary", "softmax", "multilabel"])
@pytest.mark.parametrize("size", [1, 16, 19])
@pytest.mark.parametrize("of_each", ["square", "abs"])
def test_the_mean_over_instances_of_what_is_made_of_their_gradients(
    of_each: Literal["square", "abs"],
    size: int,
    kind: LossKind,
    bank: FrameBank,
    learner: Make,
    batch: Make,
    reference: Any,
    views: Make,
    error: Make,
) -> None:
    """One instance after the other in float64."""
    content, keys = batch(kind, size)
    ours = learner(kind)
    ours.gradient(batch(kind, 16)[0], keys)

    def loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return (logits - targets).square().sum(1)

    flat = ours.mean_of_instance_gradients(content.rows, loss, content.targets, of_each=of_each)
    made = {"square": torch.square, "abs": torch.abs}[of_each]
    exact = reference.of(ours)
    leaves = [value.requires_grad_() for value in exact.parameters.values()]
    expected = [torch.zeros_like(leaf) for leaf in leaves]
    for row, target in zip(content.rows, content.targets, strict=True):
        logits = exact.logits(bank.gather(row[None]), [torch.ones(1)] * 3, False)
        slopes = torch.autograd.grad(loss(logits, target.double()).sum(), leaves)
        expected = [total + made(slope) / size for total, slope in zip(expected, slopes, strict=True)]
    for (name, found), wanted in zip(views(flat, kind).items(), expected, strict=True):
        assert error(found, wanted) < 1e-4, name


@pytest.mark.parametrize("all_current", [True, False])
def test_a_term_without_instances_leaves_no_trace(
    all_current: bool, learner: Make, as_module: Make, bank: FrameBank, error: Make
) -> None:
    """Batches of current or of replayed instances alone: weights are finite, and the epoch is the PyTorch one."""

    def instances(first: int, count: int) -> Instances:
        rows = torch.arange(first, first + count)
        return Instances(rows, (rows % 2).float()[:, None])

    task, replay = instances(0, 20), Replay(instances(50, 20), torch.full((20,), 0.5))
    order = torch.arange(40)
    if not all_current:
        order = order.flip(0)
    keys = torch.tensor([3, 4], dtype=torch.int32)
    ours = learner()
    torchs = as_module(ours)
    our_beta, torch_beta = (TaskInstanceParameters(20, 10.0, 1e-2, bank.device) for _ in range(2))
    for trained, beta in ((ours, our_beta), (torchs, torch_beta)):
        trained.train_epoch(task, replay, order, 10, keys, beta)
    assert ours.parameters.flat.isfinite().all()
    assert ours.optimizer.steps == torchs.optimizer.steps == our_beta.optimizer.steps == torch_beta.optimizer.steps == 4
    for name, view in ours.parameters.views.items():
        torch.testing.assert_close(torchs.parameters.views[name], view, rtol=1e-3, atol=1e-5)
    for name in ("values", "first", "second"):
        found = our_beta.values if name == "values" else getattr(our_beta.optimizer, name)
        expected = torch_beta.values if name == "values" else getattr(torch_beta.optimizer, name)
        assert error(found, expected) < 1e-3, name


@pytest.fixture
def epoch() -> Callable[[Any], Epoch]:
    """An epoch of 4 batches, the last smaller, with a memory of two batches' sizes and a table of logits."""

    def make(learner: Any) -> Epoch:
        generator = torch.Generator().manual_seed(3)

        def instances(count: int) -> Instances:
            classes = torch.randint(0, learner.outputs, (count,), generator=generator)
            targets = torch.eye(learner.outputs)[classes]
            return Instances(torch.randint(0, COUNT, (count,), generator=generator), targets)

        def keys(*shape: int) -> torch.Tensor:
            return torch.randint(-(2**31), 2**31, shape, generator=generator).to(torch.int32)

        order = torch.randperm(75, generator=generator)
        begun: Epoch = learner.begin_epoch(instances(75), None, order, 20, keys(2))
        for name, size in (("five", 5), ("forty", 40)):
            draws = torch.arange(4 * size).view(4, size) if name == "five" else None
            begun.keep_memory(name, instances(4 * size), keys(4, 2), draws)
        for name in (READ, WRITTEN):
            begun.keep(name, torch.stack([torch.randperm(50, generator=generator)[:20] for _ in range(4)]))
        begun.keep(PULL, torch.rand(4, 20, generator=generator))
        return begun

    return make


@pytest.mark.parametrize("steps", ["by logits", "by logits with a table", "along"])
def test_steps_without_a_return_are_those_one_by_one(steps: str, learner: Make, epoch: Make) -> None:
    """Bit for bit: parameters, moments, statistics, and the table."""
    trained, tables = [learner("softmax") for _ in range(2)], [torch.ones(50, 4), torch.ones(50, 4)]
    for ours, take, values in zip(trained, (type(trained[0]), Learner), tables, strict=True):
        current = epoch(ours)

        def distance(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            return logits - targets

        def between(gradients: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
            return gradients + torch.tensor([1.0, -0.5]) @ memory.float()

        if steps == "along":
            take.train_along(ours, current, ["five", "forty"], between)
        else:
            table = LogitTable(values, current) if "table" in steps else None
            take.train_by_logits(ours, current, distance, lambda batch: (batch.targets,), table)
    assert difference(trained[0].state(), trained[1].state()) is None
    assert trained[0].optimizer.steps == 4
    assert torch.equal(*tables)
    assert (tables[0] == 1).all() == ("table" not in steps)


RULES = [("adam", 0.0), ("adam", 0.1), ("adamw", 0.1), ("sgd", 0.0), ("sgd", 0.1)]
"""Optimisers and their weight decay."""


def with_optimizer(learner: Learner, name: str, decay: float) -> Adam:
    """Set the optimiser of a learner, and return it in float64."""
    rate = learner.optimizer.learning_rate
    learner.optimizer = make_optimizer(name, learner.parameters.flat, rate, decay)
    return make_optimizer(name, learner.parameters.flat.double(), rate, decay)


@pytest.mark.parametrize(("name", "decay"), RULES)
def test_steps(name: str, decay: float, learner: Make) -> None:
    """Parameters and both moments after three steps, against the optimiser in float64."""
    ours = learner()
    generator = torch.Generator().manual_seed(0)
    exact = with_optimizer(ours, name, decay)
    for _ in range(3):
        gradient = torch.randn(ours.parameters.flat.shape, generator=generator)
        ours.apply(gradient)
        exact.step(gradient.double())
    assert ours.optimizer.steps == 3
    torch.testing.assert_close(ours.parameters.flat.double(), exact.values, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(ours.optimizer.first.double(), exact.first, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(ours.optimizer.second.double(), exact.second, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(("name", "decay"), RULES)
@pytest.mark.parametrize("with_path", [True, False])
def test_penalised_steps(with_path: bool, name: str, decay: float, learner: Make) -> None:
    """The same three steps with a penalty, and what they should lower the loss by."""
    ours = learner()
    generator = torch.Generator().manual_seed(0)
    draw = lambda: torch.randn(ours.parameters.flat.shape, generator=generator)  # noqa: E731
    importance, centre, path = draw().square(), draw(), draw()
    exact, expected = with_optimizer(ours, name, decay), path.double()
    for _ in range(3):
        gradient, before = draw(), exact.values.clone()
        ours.apply_penalised(gradient, Penalty(importance, centre, path if with_path else None))
        exact.step(gradient.double() + importance.double() * (before - centre.double()))
        if with_path:
            expected -= gradient.double() * (exact.values - before)
    assert ours.optimizer.steps == 3
    torch.testing.assert_close(ours.parameters.flat.double(), exact.values, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(path.double(), expected, rtol=1e-6, atol=1e-6)
    with pytest.raises(ValueError, match="vectors of equal size"):
        ours.apply_penalised(gradient, Penalty(importance[1:], centre))
    with pytest.raises(ValueError, match="must be contiguous"):
        ours.apply_penalised(gradient, Penalty(importance, centre, torch.zeros(len(path), 2)[:, 0]))


@pytest.mark.parametrize(("name", "decay"), RULES)
def test_an_epoch_takes_the_steps_of_an_optimiser(name: str, decay: float, learner: Make) -> None:
    generator = torch.Generator().manual_seed(0)
    task = Instances(torch.randperm(COUNT, generator=generator)[:40], torch.rand(40, 1, generator=generator))
    keys = torch.zeros(2, dtype=torch.int32)
    whole, stepwise = learner(), learner()
    with_optimizer(whole, name, decay)
    with_optimizer(stepwise, name, decay)
    whole.train_epoch(task, None, torch.arange(40), 16, keys)
    Learner.train_epoch(stepwise, task, None, torch.arange(40), 16, keys)
    assert difference(whole.state(), stepwise.state()) is None
    assert whole.optimizer.steps == 3


@pytest.mark.parametrize("logit", [-90.0, -30.0, 0.0, 30.0, 90.0])
@pytest.mark.parametrize("target", [0.0, 1.0])
def test_losses_are_stable(logit: float, target: float, learner: Make, batch: Make) -> None:
    ours = learner()
    ours.parameters.views["linear2.weight"].zero_()
    ours.parameters.views["linear2.bias"].fill_(logit)
    content, keys = batch("binary", 3)
    content.targets.fill_(target)
    losses, gradient = ours.gradient(content, keys)
    expected = max(logit, 0) - logit * target + math.log1p(math.exp(-abs(logit)))
    np.testing.assert_allclose(losses.numpy(), expected, rtol=1e-6, atol=1e-38)
    assert gradient.isfinite().all()
