"""Sketches of frames, by which frames that have some samples in a row in common are found, wherever these lie in them.

A frame is looked at as its runs of 64 samples in a row. Each of two hash functions chooses the runs of the smallest and
of the greatest value, and the sketch has digests of these 4 runs (MinHash; Broder, "On the resemblance and containment
of documents", Compression and Complexity of Sequences 1997). Two frames that share a part f of their samples have a
given one of the 4 in common with probability f / (2 - f): half a frame in common is found with 1 - (2/3)^4 = 80 %.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

LENGTH: Final = 64
"""Samples of a run."""
LEAST_BENDS: Final = 24
"""Least samples of a run at which the slope changes: flat lines, ramps and steps of unrelated signals are alike."""
KEPT: Final = 4
"""Runs of a sketch."""
_SPREADING: Final = (np.uint32(0x9E3779B1), np.uint32(0x85EBCA77))
"""Odd numbers with irregular bits that spread the values of samples over all integers of 32 bits."""
_SECOND: Final = np.uint32(0xC2B2AE35)
"""The second hash function is the first one times this odd number."""
_BLOCK: Final = 1 << 20
"""Samples that are looked at together."""


def sketches(stored: NDArray[Any]) -> NDArray[np.bytes_]:
    """Return the sketches of frames, 4 digests of 8 bytes each, [m, 4]; empty where a run says nothing.

    Args:
        stored: frames [m, samples], integers or float32.
    """
    digests = np.zeros((len(stored), KEPT), "S8")
    if stored.shape[1] < LENGTH:
        return digests
    rows = max(1, _BLOCK // stored.shape[1])
    for first in range(0, len(stored), rows):
        block = np.ascontiguousarray(stored[first : first + rows])
        begins = _chosen(block)
        runs = sliding_window_view(block, LENGTH, axis=1)[np.arange(len(block))[:, None], begins]
        for row, number in np.argwhere(_say_something(runs)).tolist():
            digests[first + row, number] = blake2b(runs[row, number].data, digest_size=8).digest()
    return digests


def _chosen(stored: NDArray[Any]) -> NDArray[np.int64]:
    """Return the begins of the runs that the hash functions choose, [m, 4].

    The value of a run is the sum of the spread values of its samples, modulo 2^32.
    """
    bits = stored.view(np.uint32) if stored.dtype == np.float32 else stored.astype(np.int32).view(np.uint32)
    spread = bits * _SPREADING[0]
    spread ^= spread >> np.uint32(15)
    spread *= _SPREADING[1]
    sums = np.cumsum(spread, axis=1, dtype=np.uint32)
    of_runs = sums[:, LENGTH - 1 :].copy()
    of_runs[:, 1:] -= sums[:, :-LENGTH]
    begins = [of_runs.argmin(axis=1), of_runs.argmax(axis=1)]
    of_runs *= _SECOND
    begins += [of_runs.argmin(axis=1), of_runs.argmax(axis=1)]
    return np.stack(begins, axis=1)


def _say_something(runs: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which runs [m, 4, 64] have no missing sample and bend often enough, [m, 4]."""
    signal = runs.astype(np.float64)
    with np.errstate(invalid="ignore"):  # of missing samples
        bends = (np.diff(signal, n=2, axis=2) != 0).sum(axis=2)
    return np.asarray((bends >= LEAST_BENDS) & np.isfinite(signal).all(axis=2))
