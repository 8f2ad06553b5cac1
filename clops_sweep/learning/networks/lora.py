"""Low-rank adapters on a frozen network (Hu et al., LoRA, ICLR 2022)."""

from __future__ import annotations

import math
from typing import Self

import torch
from torch import nn
from torch.nn.utils import parametrize

from clops_sweep.arguments import named_arguments
from clops_sweep.errors import UsageError, shown


class _LowRank(nn.Module):
    """Weight W + B A / rank of a layer, with B A reshaped like W."""

    def __init__(self, weight: torch.Tensor, rank: int) -> None:
        super().__init__()
        outputs = len(weight)
        inputs = weight[0].numel()
        self.rank = rank
        self.a = nn.Parameter(torch.empty(rank, inputs))
        self.b = nn.Parameter(torch.zeros(outputs, rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        """Return the weight with the adapter."""
        return weight + (self.b @ self.a / self.rank).view(weight.shape)


class _Adapted(nn.Module):
    """A frozen network with adapters, always in evaluation mode: no dropout, and pretrained batch-norm statistics."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module.eval()

    def train(self, mode: bool = True) -> Self:
        """Set the mode of this module alone, not that of its layers."""
        self.training = mode
        return self

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        """Return the output of the network."""
        features: torch.Tensor = self.module(signals)
        return features


@named_arguments
def lora(module: nn.Module, rank: int) -> nn.Module:
    """Return a pretrained module, frozen, with low-rank adapters on its linear and 1-D convolution layers.

    A layer with weight W [out, in] uses W + B A / rank, A [rank, in] and B [out, rank]; for a convolution, in is
    channels times kernel size. Only A and B are trained. B starts at zero, so the module's output is unchanged at
    first. It stays in evaluation mode (Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, 2022).

    Example::

        @network("tuned", options={"rank": IntOption(8, ge=1)})
        def tuned(channels, samples, outputs, *, rank):
            module = Pretrained()
            module.load_state_dict(torch.load("/models/pretrained.pth", weights_only=True))
            return nn.Sequential(lora(module, rank), nn.Linear(512, outputs))

    Args:
        module: from signals to features; changed in place.
        rank: rank of the adapters.

    Raises:
        UsageError: `rank` is not a positive integer, or the module has no such layer.
    """
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
        raise UsageError(f"rank = {shown(rank)}: expected a whole number from 1")
    layers = [layer for layer in module.modules() if isinstance(layer, nn.Linear | nn.Conv1d)]
    if not layers:
        raise UsageError("lora: the module has no nn.Linear or nn.Conv1d layer to adapt")
    module.requires_grad_(False)
    for layer in layers:
        parametrize.register_parametrization(layer, "weight", _LowRank(layer.weight, rank))
    return _Adapted(module)
