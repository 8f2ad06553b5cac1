"""Learners of the paper's network against a plain torch.nn network with equal weights and masks."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from clops_sweep.learning import streams
from clops_sweep.learning.networks import dropout, network
from tests.learning.layer_masks import layer_masks

KINDS = ("class_il", "time_il", "domain_il")
CLOSE: dict[str, Any] = {"rtol": 1e-4, "atol": 2e-5}


@pytest.mark.parametrize("kind", KINDS)
def test_training_mode(kind: str, trained: Any, paper_network: Any) -> None:
    setting = trained(kind)
    learner, rows = setting.learner, setting.tasks[0].rows
    keys = streams.keys(setting.seed, "masks of this test")
    draws = torch.arange(len(rows))
    reference = paper_network.of(learner)
    found, _ = learner.backpropagate(rows, draws, keys, torch.zeros_like)
    reference.norms_in_training(True).masked(layer_masks(keys, draws))
    torch.testing.assert_close(found.double(), reference(setting.signal(rows)), **CLOSE)
    # running statistics as in torch.nn: momentum 0.1, variance with divisor n - 1
    tracked = paper_network.of(learner)
    for place in (1, 6, 11):
        torch.testing.assert_close(tracked[place].running_mean, reference[place].running_mean, **CLOSE)
        torch.testing.assert_close(tracked[place].running_var, reference[place].running_var, **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
def test_evaluation_mode(kind: str, trained: Any, paper_network: Any) -> None:
    setting = trained(kind)
    rows = setting.tasks[1].rows
    found = setting.learner.logits(rows)
    reference = paper_network.of(setting.learner)
    torch.testing.assert_close(found.double(), reference(setting.signal(rows)), **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_on_and_batch_norm_in_evaluation_mode(kind: str, trained: Any, paper_network: Any) -> None:
    setting = trained(kind)
    rows, samples = setting.tasks[0].rows[:5], 4
    keys = streams.keys(setting.seed, "masks of this test")
    found = setting.learner.dropout_probabilities(rows, samples, keys)
    draws = torch.arange(5 * samples)  # sample t of instance i: counter i T + t
    reference = paper_network.of(setting.learner).masked(layer_masks(keys, draws))
    logits = reference(setting.signal(rows).repeat_interleave(samples, 0)).detach()
    expected = logits.softmax(-1) if setting.scenario.kind == "softmax" else logits.sigmoid()
    torch.testing.assert_close(found.flatten(0, 1).double(), expected, **CLOSE)
    assert found.std(1).max() > 1e-4


def test_passes_do_not_depend_on_how_they_are_batched(trained: Any) -> None:
    setting = trained("class_il")
    rows = setting.tasks[0].rows
    keys = streams.keys(setting.seed, "masks of this test")
    many = setting.learner.dropout_probabilities(rows, 100, keys)  # one frame at a time
    few = setting.learner.dropout_probabilities(rows[:3], 100, keys)
    torch.testing.assert_close(many[:3], few, rtol=1e-6, atol=1e-7)


def test_the_architecture_has_the_papers_layers() -> None:
    shapes = network.parameter_shapes(4)
    module = network.PaperNetwork(1, 2500, 4)
    assert {name: tuple(parameter.shape) for name, parameter in module.named_parameters()} == shapes
    assert shapes["conv1.weight"] == (4, 1, 7)
    assert shapes["conv2.weight"] == (16, 4, 7)
    assert shapes["conv3.weight"] == (32, 16, 7)
    assert shapes["linear1.weight"] == (100, 320)
    assert shapes["linear2.weight"] == (4, 100)
    length = 2500
    lengths = []
    for _ in range(3):
        length = ((length - 7) // 3 + 1) // 2
        lengths.append(length)
    assert lengths == [416, 68, 10]
    assert dropout.UNITS == (4 * 416, 16 * 68, 32 * 10)


def test_initial_parameters_have_torchs_bounds_and_spread() -> None:
    parameters = network.initial_parameters(0, 4)
    for layer, fan_in in (("conv1", 7), ("conv2", 28), ("conv3", 112), ("linear1", 320), ("linear2", 100)):
        bound = fan_in**-0.5
        for kind in ("weight", "bias"):
            values = parameters.views[f"{layer}.{kind}"]
            assert values.abs().max() <= bound
            if values.numel() > 500:
                # U(-b, b) has a standard deviation of b / sqrt(3)
                assert values.std().item() == pytest.approx(bound / 3**0.5, rel=0.1)
                assert abs(values.mean().item()) < 5 * bound / (3 * values.numel()) ** 0.5
    other = network.initial_parameters(1, 4)
    assert not torch.equal(parameters.views["linear1.weight"], other.views["linear1.weight"])
    assert (parameters.views["norm2.weight"] == 1).all()
    assert (parameters.views["norm2.bias"] == 0).all()
