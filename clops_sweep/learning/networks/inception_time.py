"""InceptionTime (Ismail Fawaz et al., 2020): one of its five networks."""

from __future__ import annotations

import torch
from torch import nn

from clops_sweep.learning.networks.convolution import convolution

_FILTERS = 32
_BOTTLENECK = 32
_KERNELS = (40, 20, 10)
_MODULES = 6
_RESIDUAL = 3
"""Number of modules that a shortcut goes around."""


class InceptionTime(nn.Module):
    """Six inception modules, shortcuts around modules 1-3 and 4-6, the mean over time, and a linear layer.

    A module has four branches of 32 filters each. Three convolve its input, reduced to 32 channels by a Conv1d of
    kernel 1 if it has more, with kernels of 40, 20 and 10 samples. The fourth convolves the input's maximum over three
    samples with a kernel of 1. Batch norm and ReLU follow on all 128 channels. A shortcut is Conv1d(kernel 1) -
    BatchNorm, added before a ReLU. The paper's classifier averages five such networks with different initial weights;
    this is one. There is no dropout.

    H. Ismail Fawaz et al., "InceptionTime: Finding AlexNet for time series classification", Data Mining and Knowledge
    Discovery 34, 2020.

    Args:
        channels: channels of a frame.
        samples: samples per channel, any number.
        outputs: C.
    """

    def __init__(self, channels: int, samples: int, outputs: int) -> None:
        super().__init__()
        del samples
        width = _FILTERS * (len(_KERNELS) + 1)
        inputs = [channels] + [width] * (_MODULES - 1)
        self.modules_in_order = nn.ModuleList(_Inception(channels_in) for channels_in in inputs)
        self.shortcuts = nn.ModuleList()
        for channels_in in inputs[::_RESIDUAL]:
            pointwise = nn.Conv1d(channels_in, width, 1, bias=False)
            self.shortcuts.append(nn.Sequential(pointwise, nn.BatchNorm1d(width)))
        self.head = nn.Linear(width, outputs)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Return logits [B, C] of frames, float32 [B, channels, samples]."""
        hidden = frames
        block_input = frames
        for number, module in enumerate(self.modules_in_order, start=1):
            hidden = module(hidden)
            if number % _RESIDUAL == 0:
                shortcut = self.shortcuts[number // _RESIDUAL - 1]
                hidden = torch.relu(hidden + shortcut(block_input))
                block_input = hidden
        logits: torch.Tensor = self.head(hidden.mean(2))
        return logits


class _Inception(nn.Module):
    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.bottleneck = nn.Conv1d(inputs, _BOTTLENECK, 1, bias=False) if inputs > 1 else nn.Identity()
        narrow = _BOTTLENECK if inputs > 1 else 1
        self.convolutions = nn.ModuleList(convolution(narrow, _FILTERS, kernel) for kernel in _KERNELS)
        pool = nn.MaxPool1d(3, 1, padding=1)
        self.pooled = nn.Sequential(pool, nn.Conv1d(inputs, _FILTERS, 1, bias=False))
        self.norm = nn.BatchNorm1d(_FILTERS * (len(_KERNELS) + 1))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        narrow = self.bottleneck(hidden)
        branches = [convolution(narrow) for convolution in self.convolutions]
        branches.append(self.pooled(hidden))
        return torch.relu(self.norm(torch.cat(branches, dim=1)))
