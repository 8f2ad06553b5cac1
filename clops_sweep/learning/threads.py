"""Arithmetic that gives the same numbers each time, and on a GPU those of a CPU but for rounding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch computes on one thread inside, and on as many as before afterwards.

    The network is too small for more, and sums taken by several threads differ in rounding. For the same reason a GPU
    is kept from algorithms that add up in no fixed order, and from convolutions with products of ten bits (TF32).
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False):
            yield
    finally:
        torch.set_num_threads(before)
