"""What no trace of a pass shows is found by comparison with the module, and the network stays with PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from clops_sweep import native
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.backend import make_learner
from clops_sweep.learning.learners.module_learner import ModuleLearner
from clops_sweep.learning.lowering.chosen import program_of
from clops_sweep.learning.lowering.lower import NotLowered
from clops_sweep.learning.lowering.program import Program
from clops_sweep.learning.networks.module_probe import probed
from clops_sweep.testing import of_shape, tiny_frames
from tests.learning.lowering.networks import OUTPUTS, Function

pytestmark = pytest.mark.skipif(native.chosen_for_programs() is None, reason="the native kernels are not built")

SHAPE = (3, 40)
LARGE = "gives other logits in a large batch or where no gradient is computed"


def convolution_then(function: Callable[[torch.Tensor], torch.Tensor]) -> nn.Module:
    return Function(
        lambda self, frames: self.head(function(self.conv(frames)).flatten(1)),
        conv=nn.Conv1d(3, 4, 3, padding=1),
        head=nn.Linear(160, OUTPUTS),
    )


def by_size_of_batch(channels: int, samples: int, outputs: int) -> nn.Module:
    return convolution_then(lambda hidden: hidden.relu() if len(hidden) > 100 else hidden.tanh())


def by_gradient(channels: int, samples: int, outputs: int) -> nn.Module:
    return convolution_then(lambda hidden: hidden.relu() if torch.is_grad_enabled() else hidden.tanh())


def hook_of_a_parameter(channels: int, samples: int, outputs: int) -> nn.Module:
    module = nn.Sequential(nn.Flatten(), nn.Linear(channels * samples, outputs))
    module[1].weight.register_hook(lambda gradient: 0.1 * gradient)
    return module


def hook_behind_a_parameter(channels: int, samples: int, outputs: int) -> nn.Module:
    def shrink(parameter: torch.Tensor) -> None:
        assert parameter.grad is not None
        parameter.grad.mul_(0.1)

    module = nn.Sequential(nn.Flatten(), nn.Linear(channels * samples, outputs))
    module[1].bias.register_post_accumulate_grad_hook(shrink)
    return module


CASES = {
    by_size_of_batch: LARGE,
    by_gradient: LARGE,
    hook_of_a_parameter: "in the gradient of '1.weight'",
    hook_behind_a_parameter: "in the gradient of '1.bias'",
}


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_a_network_that_differs_from_its_trace_stays_with_pytorch(make: Callable[..., nn.Module]) -> None:
    bank = FrameBank(of_shape(tiny_frames("class_il", tasks=2), *SHAPE), torch.device("cpu"))
    variant = native.chosen_for_programs()
    assert variant is not None
    with NETWORKS.temporarily("odd", make):
        found = program_of("odd", make, SHAPE, OUTPUTS, {}, probed("odd", make, SHAPE, OUTPUTS), variant)
        assert isinstance(found, NotLowered)
        assert CASES[make] in found.reason
        assert type(make_learner(0, "softmax", OUTPUTS, 1e-3, bank, "odd")) is ModuleLearner


def biases_before_batch_norm(channels: int, samples: int, outputs: int) -> nn.Module:
    """Biases whose gradients are rounding noise, which batch norm over three like instances makes large."""
    torch.manual_seed(52)
    first = [nn.AdaptiveAvgPool1d(2), nn.Conv1d(channels, 4, 2, padding=3), nn.Conv1d(4, 6, 3), nn.Flatten()]
    return nn.Sequential(*first, nn.Linear(30, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, outputs))


def test_rounding_noise_is_no_difference() -> None:
    make = biases_before_batch_norm
    variant = native.chosen_for_programs()
    assert variant is not None
    with NETWORKS.temporarily("noisy", make):
        found = program_of("noisy", make, SHAPE, OUTPUTS, {}, probed("noisy", make, SHAPE, OUTPUTS), variant)
    assert isinstance(found, Program)
