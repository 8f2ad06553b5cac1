"""Losses as users write them have the gradient of PyTorch on native kernels, or are refused in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from clops_sweep import ContinualRun, Strategy, native, network, strategy
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.registry import NETWORKS, STRATEGIES
from clops_sweep.learning.method.batch import FrameBatch
from clops_sweep.testing import tiny_config, tiny_frames

pytestmark = pytest.mark.skipif(not native.available(), reason="the native kernels are not built")

Loss = Callable[[Strategy, FrameBatch], torch.Tensor]


@network("of_layers")
def of_layers(channels: int, samples: int, outputs: int) -> nn.Module:
    """Return a network without dropout: on other kernels it has other masks."""
    convolutions = nn.Conv1d(channels, 4, 9, stride=8), nn.BatchNorm1d(4), nn.ReLU(), nn.AdaptiveAvgPool1d(3)
    return nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(12, outputs))


NETWORKS.forget("of_layers")


def several_passes(self: Strategy, batch: FrameBatch) -> torch.Tensor:
    first, second = self.model(batch.x), self.model(0.5 * batch.x)
    return self.criterion(first, batch.y) + self.criterion(second, batch.y) + (first - second).square().mean()


def gradient_between_the_halves(self: Strategy, batch: FrameBatch) -> torch.Tensor:
    logits, others = self.model(batch.x), self.model(0.5 * batch.x)
    gradient = self.gradient(self.criterion(others, batch.y))
    return self.criterion(logits, batch.y) + 0.01 * (gradient * self.parameters).sum()


def evaluation_between_the_halves(self: Strategy, batch: FrameBatch) -> torch.Tensor:
    logits = self.model(batch.x)
    with torch.no_grad():
        teacher = self.model(0.5 * batch.x)
    apart = (logits - teacher).square() + (logits - self.predict(batch.x, 0.9 * self.parameters)).square()
    fisher = self.importance(0)
    return self.criterion(logits, batch.y) + apart.mean() + (fisher * self.parameters.square()).sum()


def targets_with_a_gradient(self: Strategy, batch: FrameBatch) -> torch.Tensor:
    return self.criterion(self.model(batch.x), torch.sigmoid(self.model(0.5 * batch.x)))


def weights_with_a_gradient(self: Strategy, batch: FrameBatch) -> torch.Tensor:
    logits = self.model(batch.x)
    return self.criterion(logits, batch.y, weights=self.losses(logits, batch.y).square())


def other_types(self: Strategy, batch: FrameBatch) -> torch.Tensor:
    return self.criterion(self.model(batch.x).double(), batch.y.double()).float()


def frames_with_other_strides(self: Strategy, batch: FrameBatch) -> torch.Tensor:
    turned = batch.x.transpose(1, 2).contiguous().transpose(1, 2)
    repeated = batch.x[:1].expand(len(batch), -1, -1)
    return self.criterion(self.model(turned), batch.y) + self.criterion(self.model(repeated), batch.y)


def changes_in_place(self: Strategy, batch: FrameBatch) -> torch.Tensor:
    batch.x.mul_(0.5)
    logits = self.model(batch.x)
    logits += 0.1
    return self.criterion(logits, batch.y) + torch.relu_(self.model(batch.x)).mean()


def sharpness_aware(self: Strategy, batch: FrameBatch) -> torch.Tensor:
    gradient = self.gradient(self.criterion(self.model(batch.x), batch.y))
    before = self.parameters.detach().clone()
    with torch.no_grad():
        self.parameters.add_(0.05 * gradient / gradient.norm())
    gradient = self.gradient(self.criterion(self.model(batch.x), batch.y))
    with torch.no_grad():
        self.parameters.copy_(before)
    return (gradient * self.parameters).sum()


def one_pass_twice(self: Strategy, batch: FrameBatch) -> torch.Tensor:
    logits = self.model(batch.x)
    gradient = self.gradient(self.criterion(logits[:2], batch.y[:2]))
    return self.criterion(logits, batch.y) + (gradient * self.parameters).sum()


def gradient_of_a_gradient(self: Strategy, batch: FrameBatch) -> torch.Tensor:
    loss = self.criterion(self.model(batch.x), batch.y)
    (gradient,) = torch.autograd.grad(loss, self.parameters, create_graph=True)
    return loss + gradient.square().sum()


FORMS = (
    several_passes,
    gradient_between_the_halves,
    evaluation_between_the_halves,
    targets_with_a_gradient,
    weights_with_a_gradient,
    other_types,
    frames_with_other_strides,
    changes_in_place,
    sharpness_aware,
)
REFUSED = {one_pass_twice: "differentiated twice", gradient_of_a_gradient: "no second derivatives"}


@pytest.fixture(params=["clops_cnn", "of_layers"])
def first_gradient(request: pytest.FixtureRequest) -> Iterator[Callable[[Loss], torch.Tensor]]:
    """Function that trains one step on a loss and returns its gradient."""
    network("of_layers")(of_layers)

    def trained(loss: Loss) -> torch.Tensor:
        gradients: list[torch.Tensor] = []

        class Own(Strategy):
            def loss(self, batch: FrameBatch) -> torch.Tensor:
                return loss(self, batch)

            def direction(self, gradient: torch.Tensor) -> torch.Tensor:
                gradients.append(gradient.clone())
                return gradient

        strategy("own_form")(Own)
        config: Any = tiny_config("class_il", strategy="own_form", network=request.param, epochs_per_task=1)
        ContinualRun(config, tiny_frames("class_il")).advance()
        STRATEGIES.forget("own_form")
        return gradients[0]

    yield trained
    NETWORKS.forget("of_layers")
    if "own_form" in STRATEGIES.added:
        STRATEGIES.forget("own_form")


@pytest.mark.parametrize("form", FORMS)
def test_a_loss_has_the_gradient_of_pytorch(
    form: Loss, first_gradient: Callable[[Loss], torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    by_kernels = first_gradient(form)
    monkeypatch.setenv(native.ENVIRONMENT, "off")
    by_pytorch = first_gradient(form)
    assert (by_kernels.norm() - by_pytorch.norm()).abs() < 1e-5 * by_pytorch.norm()
    if by_kernels.shape == by_pytorch.shape:
        assert (by_kernels - by_pytorch).norm() < 1e-5 * by_pytorch.norm()


@pytest.mark.parametrize("form", REFUSED)
def test_a_loss_that_the_kernels_cannot_differentiate_is_refused(
    form: Loss, first_gradient: Callable[[Loss], torch.Tensor]
) -> None:
    with pytest.raises(UsageError, match=REFUSED[form]):
        first_gradient(form)
