"""Reproducible arithmetic, which on a GPU agrees with a CPU up to rounding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Return a context in which PyTorch uses one thread; its end restores the earlier number.

    The network is too small for more, and sums over several threads differ in rounding. For the same reason a GPU must
    not use algorithms that sum in no fixed order, or convolutions with products of ten bits (TF32).
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False):
            yield
    finally:
        torch.set_num_threads(before)
