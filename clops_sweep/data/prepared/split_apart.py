"""Splits that take a solver, found in a process of their own."""

from __future__ import annotations

import multiprocessing
from concurrent.futures.process import BrokenProcessPool

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.prepared.record_pool import processes
from clops_sweep.data.reader import Index, Reader
from clops_sweep.errors import BadInput


def split_apart(reader: Reader, index: Index, seed: int) -> NDArray[np.int8]:
    """`reader.split(index, seed)`, [patients] int8, without the solver's 150 MB staying in the calling process.

    Raises:
        BadInput: the other process was killed.
    """
    if multiprocessing.current_process().daemon:  # such a process may not start another
        return reader.split(index, seed)
    try:
        with processes(1) as pool:
            return pool.submit(reader.split, index, seed).result()
    except BrokenProcessPool:
        raise BadInput(
            f"{reader.name}: the process that splits the patients for split_seed {seed} was killed; "
            "start again with less running beside it"
        ) from None
