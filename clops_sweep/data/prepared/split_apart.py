"""Splits that take a solver, found in a process of their own."""

from __future__ import annotations

import multiprocessing
from concurrent.futures.process import BrokenProcessPool

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.prepared.record_pool import processes
from clops_sweep.data.splits.split_program import balanced_split
from clops_sweep.errors import UsageError


def split_apart(name: str, counts: NDArray[np.int64], seed: int) -> NDArray[np.int8]:
    """`balanced_split(counts, seed)`, [patients] int8, without the solver's 150 MB staying in the calling process.

    Raises:
        UsageError: the other process was killed.
    """
    if multiprocessing.current_process().daemon:  # such a process may not start another
        return balanced_split(counts, seed)
    try:
        with processes(1) as pool:
            return pool.submit(balanced_split, counts, seed).result()
    except BrokenProcessPool:
        raise UsageError(
            f"{name}: the process that splits the patients for split_seed {seed} was killed; "
            "start again with less running beside it"
        ) from None
