"""The paper's network, for S runs at once.

Three blocks Conv1d(kernel 7, stride 3) - BatchNorm - MaxPool(2) - ReLU - Dropout(0.1) with 4, 16 and 32 channels, then
Linear(320, 100) - ReLU - Linear(100, C). The paper applies ReLU before pooling; the two commute, and this order is
cheaper. Input is a frame of 2500 samples.

The runs' networks are one set of tensors with a leading axis S, and S = 1 is the ordinary case. Here is what they are
and how they are evaluated: activations are [B, S * C, L], and all runs' convolutions one grouped convolution. For
training see `gradient`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F

from clops_sweep.learning import streams
from clops_sweep.learning.blocks import KERNEL, STRIDE
from clops_sweep.learning.parameters import Parameters

CHANNELS = (1, 4, 16, 32)
FEATURES, HIDDEN = 320, 100
EPSILON, MOMENTUM = 1e-5, 0.1

Masks = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def parameter_shapes(outputs: int) -> dict[str, tuple[int, ...]]:
    """Name and shape of every parameter of one network, in the order in which they are laid out."""
    shapes: dict[str, tuple[int, ...]] = {}
    for block, (inputs, channels) in enumerate(pairwise(CHANNELS), start=1):
        shapes[f"conv{block}.weight"] = (channels, inputs, KERNEL)
        shapes[f"conv{block}.bias"] = (channels,)
        shapes[f"norm{block}.weight"] = (channels,)
        shapes[f"norm{block}.bias"] = (channels,)
    shapes |= {"linear1.weight": (HIDDEN, FEATURES), "linear1.bias": (HIDDEN,)}
    shapes |= {"linear2.weight": (outputs, HIDDEN), "linear2.bias": (outputs,)}
    return shapes


def initial_parameters(seeds: Sequence[int], outputs: int, device: torch.device, task: int = 0) -> Parameters:
    """PyTorch's default initialisation: U(-1/sqrt(fan in), 1/sqrt(fan in)), batch norm at 1 and 0."""
    shapes = parameter_shapes(outputs)
    parameters = Parameters.zeros(len(seeds), shapes, torch.device("cpu"))
    for run, seed in enumerate(seeds):
        generator = streams.generator(seed, "initial parameters", task)
        for name, shape in shapes.items():
            layer, _, kind = name.partition(".")
            if layer.startswith("norm"):
                parameters.views[name][run].fill_(1.0 if kind == "weight" else 0.0)
                continue
            fan_in = torch.Size(shapes[f"{layer}.weight"][1:]).numel()
            bound = fan_in**-0.5
            drawn = generator.uniform(-bound, bound, shape).astype("float32")
            parameters.views[name][run].copy_(torch.from_numpy(drawn))
    return parameters.like(parameters.flat.to(device))


@dataclass(frozen=True)
class RunningStatistics:
    """Batch-norm running means and variances of the three blocks: two tensors [S * channels] a block."""

    means: list[torch.Tensor]
    variances: list[torch.Tensor]

    @classmethod
    def initial(cls, runs: int, device: torch.device) -> RunningStatistics:
        """Means of 0 and variances of 1."""
        return cls(
            [torch.zeros(runs * channels, device=device) for channels in CHANNELS[1:]],
            [torch.ones(runs * channels, device=device) for channels in CHANNELS[1:]],
        )

    def of_runs(self, first: int, last: int) -> RunningStatistics:
        """The statistics of the runs first .. last - 1, sharing memory with these."""
        channels = CHANNELS[1:]
        return RunningStatistics(
            [mean[first * c : last * c] for mean, c in zip(self.means, channels, strict=True)],
            [variance[first * c : last * c] for variance, c in zip(self.variances, channels, strict=True)],
        )

    def tensors(self) -> list[torch.Tensor]:
        """All of them, for saving, comparing and restoring."""
        return [*self.means, *self.variances]


@dataclass(frozen=True)
class Folded:
    """Networks with batch norm in evaluation mode folded into the convolutions: w g / sd, (b - mean) g / sd + shift."""

    views: dict[str, torch.Tensor]
    runs: int

    @classmethod
    def of(cls, views: dict[str, torch.Tensor], statistics: RunningStatistics) -> Folded:
        """Folds the running statistics; neither argument is changed or shared for writing."""
        runs = views["conv1.weight"].shape[0]
        folded = {name: view for name, view in views.items() if name.startswith("linear")}
        for block in (1, 2, 3):
            mean = statistics.means[block - 1].view(runs, -1)
            variance = statistics.variances[block - 1].view(runs, -1)
            gain = views[f"norm{block}.weight"] * torch.rsqrt(variance + EPSILON)
            folded[f"conv{block}.weight"] = views[f"conv{block}.weight"] * gain[:, :, None, None]
            folded[f"conv{block}.bias"] = (views[f"conv{block}.bias"] - mean) * gain + views[f"norm{block}.bias"]
        return cls(folded, runs)

    def block(self, number: int, hidden: torch.Tensor) -> torch.Tensor:
        """One block without its dropout."""
        weight, bias = self.views[f"conv{number}.weight"], self.views[f"conv{number}.bias"]
        hidden = F.conv1d(hidden, weight.flatten(0, 1), bias.flatten(), stride=STRIDE, groups=self.runs)
        return F.max_pool1d(hidden, 2).relu_()

    def logits(self, frames: torch.Tensor) -> torch.Tensor:
        """The network in evaluation mode, without dropout: [B, S, 2500] to [S, B, C]."""
        return self._head(self.block(3, self.block(2, self.block(1, frames))))

    def sampled_logits(self, frames: torch.Tensor, masks: Masks) -> torch.Tensor:
        """The network with dropout, T times for each frame: [B, S, 2500] to [S, B * T, C].

        Dropout comes after the first block, which is therefore the same in all T passes and computed once.

        Args:
            frames: [B, S, 2500].
            masks: of B * T draws, those of one frame following one another.
        """
        first, mask = self.block(1, frames), masks[0]
        hidden = (first[:, None] * mask.view(len(frames), -1, *mask.shape[1:])).flatten(0, 1)
        hidden = self.block(2, hidden).mul_(masks[1])
        return self._head(self.block(3, hidden).mul_(masks[2]))

    def _head(self, hidden: torch.Tensor) -> torch.Tensor:
        views, features = self.views, hidden.reshape(len(hidden), self.runs, FEATURES).transpose(0, 1)
        inner = torch.baddbmm(views["linear1.bias"][:, None], features, views["linear1.weight"].transpose(1, 2)).relu_()
        return torch.baddbmm(views["linear2.bias"][:, None], inner, views["linear2.weight"].transpose(1, 2))
