"""The residual network for time series of Wang, Yan and Oates (2017)."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from clops_sweep.learning.networks.convolution import convolution

_FILTERS = (64, 128, 128)
_KERNELS = (8, 5, 3)


class ResNet1dWang(nn.Module):
    """Three residual blocks, the mean over time, and a linear layer. Convolutions before batch norm have no bias.

    A block of f filters is h = B_3(B_5(B_8(x))), where B_k is Conv1d(kernel k) - BatchNorm - ReLU and keeps the number
    of samples. It returns ReLU(h + s(x)), where s is Conv1d(kernel 1) - BatchNorm, or the identity if x already has f
    channels. f is 64, 128 and 128. There is no dropout: all T passes of Monte-Carlo dropout are equal, so scores based
    on them differ only by rounding.

    Z. Wang, W. Yan, T. Oates, "Time series classification from scratch with deep neural networks: A strong baseline",
    IJCNN 2017, equations 2 and 4; the name is from N. Strodthoff, P. Wagner, T. Schaeffter, W. Samek, "Deep learning
    for ECG analysis: Benchmarks and insights from PTB-XL", IEEE JBHI 2021, who use other kernels and a stem.

    Args:
        channels: channels of a frame.
        samples: samples per channel, any number.
        outputs: C.
    """

    def __init__(self, channels: int, samples: int, outputs: int) -> None:
        super().__init__()
        del samples
        widths = pairwise((channels, *_FILTERS))
        self.blocks = nn.Sequential(*(_Block(inputs, filters) for inputs, filters in widths))
        self.head = nn.Linear(_FILTERS[-1], outputs)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Return logits [B, C] of frames, float32 [B, channels, samples]."""
        logits: torch.Tensor = self.head(self.blocks(frames).mean(2))
        return logits


class _Block(nn.Module):
    def __init__(self, inputs: int, filters: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        width = inputs
        for kernel in _KERNELS:
            layers += [convolution(width, filters, kernel), nn.BatchNorm1d(filters), nn.ReLU()]
            width = filters
        self.layers = nn.Sequential(*layers)
        self.shortcut: nn.Module = nn.Identity()
        if inputs != filters:
            self.shortcut = nn.Sequential(nn.Conv1d(inputs, filters, 1, bias=False), nn.BatchNorm1d(filters))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layers(hidden) + self.shortcut(hidden))
