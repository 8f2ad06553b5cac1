"""A convolution that leaves a signal as long as it is."""

from __future__ import annotations

from torch import nn


def convolution(inputs: int, filters: int, kernel: int) -> nn.Sequential:
    """Conv1d without bias on a signal with zeros around it, one more behind than before where the kernel is even.

    PyTorch's own padding "same" does so too, and warns of even kernels.
    """
    padding = nn.ZeroPad1d(((kernel - 1) // 2, kernel // 2))
    return nn.Sequential(padding, nn.Conv1d(inputs, filters, kernel, bias=False))
