"""The dropout masks of the paper's network in the shapes of its layers."""

from __future__ import annotations

import torch

from clops_sweep.learning.networks import dropout


def layer_masks(keys: torch.Tensor, draws: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return one run's masks [B, channels, length] of the three layers, from keys [2] and draws [B]."""
    parts = dropout.masks(keys, draws).split(dropout.UNITS, dim=1)
    return tuple(part.unflatten(1, (channels, -1)) for part, channels in zip(parts, (4, 16, 32), strict=True))
