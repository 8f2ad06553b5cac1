"""A small convolutional network for frames of any shape."""

from __future__ import annotations

from torch import nn

from clops_sweep.learning.networks.convolution import convolution
from clops_sweep.learning.networks.dropout import DROPOUT

_MOST_CHANNELS = 12
_FILTERS = (16, 32, 64)
_KERNELS = (7, 5, 3)
_SAMPLES_LEFT = 8


class SmallCNN(nn.Sequential):
    """Three convolutions, the mean over time, and a linear layer: a small variant of the FCN of Wang et al. (2017).

    A block is Conv1d - BatchNorm - ReLU - MaxPool, with 16, 32 and 64 filters and kernels of 7, 5 and 3 samples. The
    pools leave about 8 samples of a long frame. Above 12 channels, a Conv1d of kernel 1 first reduces them to 12. Up
    to 1,000 channels and 100 outputs, it has at most 30,000 parameters. Dropout of 0.1 precedes the linear layer.

    Args:
        channels: channels of a frame.
        samples: samples per channel, any number.
        outputs: C.
    """

    def __init__(self, channels: int, samples: int, outputs: int) -> None:
        width = min(channels, _MOST_CHANNELS)
        layers: list[nn.Module] = []
        if channels > width:
            layers.append(nn.Conv1d(channels, width, 1, bias=False))
        pool = max(1, round((samples / _SAMPLES_LEFT) ** (1 / len(_KERNELS))))
        for kernel, filters in zip(_KERNELS, _FILTERS, strict=True):
            layers += [convolution(width, filters, kernel), nn.BatchNorm1d(filters), nn.ReLU()]
            width = filters
            if pool > 1:
                layers.append(nn.MaxPool1d(pool, ceil_mode=True))
        layers += [nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Dropout(DROPOUT)]
        layers.append(nn.Linear(_FILTERS[-1], outputs))
        super().__init__(*layers)
