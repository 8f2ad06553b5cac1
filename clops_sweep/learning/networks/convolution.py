"""Convolution that keeps the length of a signal."""

from __future__ import annotations

from torch import nn


def convolution(inputs: int, filters: int, kernel: int) -> nn.Sequential:
    """Return a Conv1d without bias on a zero-padded signal, with one more zero at the end if the kernel is even.

    PyTorch's padding "same" does the same, but warns about even kernels.
    """
    padding = nn.ZeroPad1d(((kernel - 1) // 2, kernel // 2))
    return nn.Sequential(padding, nn.Conv1d(inputs, filters, kernel, bias=False))
