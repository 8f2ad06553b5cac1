"""The paper's network as a module, and its initial parameters, shared with the native kernels.

Three blocks Conv1d(kernel 7, stride 3) - BatchNorm - MaxPool(2) - ReLU - Dropout(0.1) with 4, 16 and 32 channels, then
Linear(320, 100) - ReLU - Linear(100, C). The paper applies ReLU before pooling; the two commute, and this order is
cheaper. The input is a frame of 1 x 2500 samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import torch
import torch.nn.functional as F
from torch import nn

from clops_sweep.learning import streams
from clops_sweep.learning.networks.dropout import DROPOUT
from clops_sweep.learning.parameters import Parameters

CHANNELS = (1, 4, 16, 32)
KERNEL = 7
STRIDE = 3
FEATURES = 320
HIDDEN = 100


class PaperNetwork(nn.Module):
    """The paper's network as a module, for GPUs and for machines without its native kernels.

    Its initial parameters and dropout masks are those of the native kernels (see `draw` and `dropout.PaperDropout`), so
    runs agree up to rounding.

    Args:
        channels: channels of a frame, 1.
        samples: samples per channel, 2500.
        outputs: C.
    """

    def __init__(self, channels: int, samples: int, outputs: int) -> None:
        super().__init__()
        del channels, samples
        self._outputs = outputs
        self.conv1 = nn.Conv1d(1, 4, KERNEL, STRIDE)
        self.norm1 = nn.BatchNorm1d(4)
        self.conv2 = nn.Conv1d(4, 16, KERNEL, STRIDE)
        self.norm2 = nn.BatchNorm1d(16)
        self.conv3 = nn.Conv1d(16, 32, KERNEL, STRIDE)
        self.norm3 = nn.BatchNorm1d(32)
        self.dropout = nn.Dropout(DROPOUT)
        self.linear1 = nn.Linear(FEATURES, HIDDEN)
        self.linear2 = nn.Linear(HIDDEN, outputs)

    @torch.no_grad()
    def draw(self, seed: int, task: int) -> None:
        """Set a run's initial parameters."""
        views = initial_parameters(seed, self._outputs, task).views
        for name, parameter in self.named_parameters():
            if name in views:  # layers that replace those of this class keep their weights
                parameter.copy_(views[name])

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Return logits [B, C] of frames, float32 [B, 1, 2500]."""
        hidden = frames
        for conv, norm in ((self.conv1, self.norm1), (self.conv2, self.norm2), (self.conv3, self.norm3)):
            assert conv.bias is not None
            # batch statistics cancel the bias; Adam would turn the rounding noise of its gradient into full steps,
            # so the gradient is exactly zero
            cancelled = norm.training and isinstance(norm, nn.BatchNorm1d)
            bias = conv.bias.detach() + 0 * conv.bias if cancelled else conv.bias
            hidden = norm(F.conv1d(hidden, conv.weight, bias, STRIDE))
            hidden = self.dropout(F.max_pool1d(hidden, 2).relu())
        logits: torch.Tensor = self.linear2(self.linear1(hidden.flatten(1)).relu())
        return logits


@cache
def parameter_shapes(outputs: int) -> Mapping[str, tuple[int, ...]]:
    """Return name and shape of every parameter of one network, in memory order."""
    with torch.device("meta"):  # no random draw
        network = PaperNetwork(1, 2500, outputs)
    return {name: tuple(parameter.shape) for name, parameter in network.named_parameters()}


def initial_parameters(seed: int, outputs: int, task: int = 0) -> Parameters:
    """Return PyTorch's default initialisation: U(-1/sqrt(fan in), 1/sqrt(fan in)), batch norm at 1 and 0."""
    shapes = parameter_shapes(outputs)
    parameters = Parameters.zeros(shapes, torch.device("cpu"))
    generator = streams.generator(seed, "initial parameters", task)
    for name, shape in shapes.items():
        layer, _, kind = name.partition(".")
        if layer.startswith("norm"):
            parameters.views[name].fill_(1.0 if kind == "weight" else 0.0)
            continue
        fan_in = torch.Size(shapes[f"{layer}.weight"][1:]).numel()
        bound = fan_in**-0.5
        drawn = generator.uniform(-bound, bound, shape).astype("float32")
        parameters.views[name].copy_(torch.from_numpy(drawn))
    return parameters
