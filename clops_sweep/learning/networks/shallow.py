"""Networks for features computed by an encoder."""

from __future__ import annotations

from torch import nn


def linear(channels: int, samples: int, outputs: int) -> nn.Module:
    """Return a linear layer on all channels and samples of a frame."""
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * samples, outputs))


def mlp(channels: int, samples: int, outputs: int, *, mlp_width: int) -> nn.Module:
    """Return a hidden layer of `mlp_width` units with layer norm, ReLU and dropout of 0.1, and a linear layer."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(channels * samples, mlp_width),
        nn.LayerNorm(mlp_width),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(mlp_width, outputs),
    )
