"""Gradients, Monte-Carlo passes without side effects, and evaluation at other parameters."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from clops_sweep.learning import losses, streams
from clops_sweep.learning.batches import Batch
from clops_sweep.testing.watch import difference, global_randomness, saved_and_loaded
from tests.learning.layer_masks import layer_masks

KINDS = ("class_il", "time_il", "domain_il")


def weighted_batch(setting: Any, seed: int = 0) -> Batch:
    task = setting.tasks[0]
    weights = torch.rand(task.rows.shape, generator=torch.Generator().manual_seed(seed)) / 5
    return Batch(task.rows, task.targets, weights, torch.arange(100, 100 + len(task.rows)))


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_is_that_of_a_plain_network(kind: str, trained: Any, paper_network: Any) -> None:
    setting = trained(kind)
    learner, batch = setting.learner, weighted_batch(setting)
    keys = streams.keys(setting.seed, "gradient test")
    reference = paper_network.of(learner)
    found_losses, gradient = learner.gradient(batch, keys)
    views = learner.parameters.like(gradient).views
    reference.norms_in_training(True).masked(layer_masks(keys, batch.draws))
    each = losses.instance_losses(setting.scenario.kind, reference(setting.signal(batch.rows)), batch.targets.double())
    (batch.weights.double() * each).sum().backward()
    torch.testing.assert_close(found_losses.double(), each.detach(), rtol=1e-4, atol=1e-5)
    expected = reference.flat_gradient()
    assert expected.keys() == views.keys()
    for name, value in expected.items():
        torch.testing.assert_close(views[name].double(), value, rtol=2e-3, atol=2e-5, msg=name)
        if name.startswith("conv") and name.endswith("bias"):
            assert (views[name] == 0).all()
            assert value.abs().max() < 1e-12  # zero in exact arithmetic


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dropped", "training"), [(True, True), (False, True), (True, False), (False, False)])
def test_gradient_of_any_loss_is_that_of_a_plain_network(
    kind: str, dropped: bool, training: bool, trained: Any, paper_network: Any
) -> None:
    setting = trained(kind)
    learner, batch = setting.learner, weighted_batch(setting)
    keys = streams.keys(setting.seed, "gradient test")
    before = saved_and_loaded(learner.state())
    reference = paper_network.of(learner)

    def loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the distance from the targets, and from a mean of 1."""
        return (logits - targets).abs().pow(1.5).sum() + (logits.mean() - 1) ** 2

    arguments = (batch.draws, keys) if dropped else (None, None)
    logits, gradient = learner.loss_gradient(
        batch.rows, *arguments, loss, batch.targets, batch_statistics=training, track_statistics=False
    )
    assert difference(before, learner.state()) is None
    views = learner.parameters.like(gradient).views
    reference.norms_in_training(training).masked(layer_masks(keys, batch.draws) if dropped else None)
    expected_logits = reference(setting.signal(batch.rows))
    torch.testing.assert_close(logits.double(), expected_logits.detach(), rtol=1e-4, atol=1e-4)
    loss(expected_logits, batch.targets.double()).backward()
    for name, value in reference.flat_gradient().items():
        torch.testing.assert_close(views[name].double(), value, rtol=3e-3, atol=5e-5, msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_each_instance_alone(kind: str, trained: Any, paper_network: Any) -> None:
    setting = trained(kind)
    learner, rows = setting.learner, setting.tasks[0].rows[:3]
    before = saved_and_loaded(learner.state())
    found = [gradient.clone() for gradient in learner.instance_gradients(rows, lambda logits: logits.square().sum(1))]
    assert len(found) == 3
    assert difference(before, learner.state()) is None
    for place, gradient in enumerate(found):
        reference = paper_network.of(learner)
        reference(setting.signal(rows[place : place + 1])).square().sum().backward()
        for name, value in reference.flat_gradient().items():
            got = learner.parameters.like(gradient).views[name].double()
            torch.testing.assert_close(got, value, rtol=2e-3, atol=5e-5, msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_by_finite_differences(kind: str, trained: Any, paper_network: Any) -> None:
    setting = trained(kind)
    learner, batch = setting.learner, weighted_batch(setting, 1)
    keys = streams.keys(setting.seed, "gradient test")
    network = paper_network.of(learner).norms_in_training(True).masked(layer_masks(keys, batch.draws))
    flat = learner.parameters.flat.double()

    @torch.no_grad()
    def loss(at: torch.Tensor) -> float:
        logits = network.take(learner.parameters.like(at).views)(setting.signal(batch.rows))
        each = losses.instance_losses(setting.scenario.kind, logits, batch.targets.double())
        return float((batch.weights.double() * each).sum())

    _, gradient = learner.gradient(batch, keys, track_statistics=False)
    stream = torch.Generator().manual_seed(7)
    step = 1e-7
    for _ in range(6):
        direction = torch.randn(flat.shape, generator=stream, dtype=torch.float64)
        slope = (loss(flat + step * direction) - loss(flat - step * direction)) / (2 * step)
        assert slope == pytest.approx(float(gradient.double() @ direction), rel=2e-3, abs=1e-3)


def test_statistics_are_tracked_only_when_asked(trained: Any) -> None:
    setting = trained()
    learner, batch = setting.learner, weighted_batch(setting)
    before = saved_and_loaded(learner.state())
    learner.gradient(batch, streams.keys(setting.seed, "x"), track_statistics=False)
    assert difference(before, learner.state()) is None
    learner.gradient(batch, streams.keys(setting.seed, "x"))
    assert difference(before, learner.state()) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_evaluation_and_monte_carlo_passes_leave_no_trace(kind: str, trained: Any) -> None:
    setting = trained(kind)
    learner, rows, targets = setting.learner, setting.tasks[0].rows, setting.tasks[0].targets
    keys = streams.keys(setting.seed, "acquisition dropout", 1, 0, 0)
    noise = torch.ones(*rows.shape, 2500)
    shift = torch.full_like(learner.parameters.flat, 0.01)
    before = saved_and_loaded(learner.state())
    with global_randomness(4, "a pass"):
        learner.dropout_probabilities(rows, 7, keys)
        learner.dropout_probabilities(rows, 7, keys, noise=noise)
        learner.probabilities(rows, noise=noise)
        learner.losses(rows, targets, shift=shift)
        learner.logits(rows)
    assert difference(before, learner.state()) is None


def test_a_shift_is_added_to_the_parameters_for_one_call(trained: Any, paper_network: Any) -> None:
    setting = trained()
    learner, rows = setting.learner, setting.tasks[0].rows
    shift = 0.05 * torch.randn(learner.parameters.flat.shape, generator=torch.Generator().manual_seed(1))
    found = learner.logits(rows, shift=shift)
    learner.parameters.flat.add_(shift)
    assert torch.equal(found, learner.logits(rows))


def test_noise_is_added_to_the_frames(trained: Any, paper_network: Any) -> None:
    setting = trained()
    rows = setting.tasks[0].rows[:4]
    noise = torch.randn(4, 2500, generator=torch.Generator().manual_seed(1))
    found = setting.learner.logits(rows, noise=noise)
    expected = paper_network.of(setting.learner)(setting.signal(rows) + noise.double()[:, None])
    torch.testing.assert_close(found.double(), expected.detach(), rtol=1e-4, atol=2e-5)
