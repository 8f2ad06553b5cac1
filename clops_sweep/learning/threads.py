"""Reproducible arithmetic, which on a GPU agrees with a CPU up to rounding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from clops_sweep.learning.global_streams import PROCESS_WIDE


@contextmanager
def one_thread() -> Iterator[None]:
    """Return a context in which PyTorch uses one thread; its end restores the earlier number.

    Only one thread of the process is in it at a time: settings and generators of PyTorch belong to the whole process.

    The network is too small for more, and sums over several threads differ in rounding. For the same reason a GPU must
    not use algorithms that sum in no fixed order, or convolutions with products of ten bits (TF32).
    """
    with PROCESS_WIDE:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False):
                yield
        finally:
            torch.set_num_threads(before)
