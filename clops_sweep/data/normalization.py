"""Normalisation of a frame as a gain and an offset, so that stored frames stay as they were recorded."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import Normalization
from clops_sweep.errors import BadInput
from clops_sweep.machine import available_cores

_AT_ONCE: Final = 2**17
"""Samples whose statistics are computed at a time."""

_MOST_HELPERS: Final = 3


def statistics_helpers() -> ThreadPoolExecutor:
    """Threads that `frame_statistics` may share its work with; they begin when they are first needed."""
    return ThreadPoolExecutor(min(_MOST_HELPERS, max(1, available_cores() - 1)))


def frame_statistics(stored: NDArray[Any], helpers: Executor | None = None) -> NDArray[np.float64]:
    """Minimum, maximum, mean and (population) standard deviation of each stored row: [m, samples] -> [m, 4].

    What is not finite in a row is not finite in its minimum or its maximum. All are of float64, as numpy computes them,
    a few rows at a time so that these stay in a processor's cache. Whole numbers of 16 bits add up to the same in any
    order, and a matrix product is the fastest. Helpers, threads, take some of those few rows each.
    """
    rows, samples = stored.shape
    found = np.empty((rows, 4))
    many = max(1, _AT_ONCE // samples)
    whole, ones = stored.dtype == np.int16, np.ones(samples)
    begins = iter(range(0, rows, many))  # whoever has time takes the next

    def compute() -> None:
        room = np.empty((min(many, rows), samples))
        with np.errstate(invalid="ignore", over="ignore"):
            for begin in begins:
                part = stored[begin : begin + many]
                values, result = room[: len(part)], found[begin : begin + many]
                values[...] = part
                exact = part if whole else values  # the same numbers, found sooner among small integers
                result[:, 0], result[:, 1] = exact.min(1), exact.max(1)
                mean = (values @ ones if whole else values.sum(1)) / samples
                values -= mean[:, None]
                values *= values
                result[:, 2] = mean
                result[:, 3] = np.sqrt(values.sum(1) / samples)

    blocks = -(-rows // many)
    shares = [helpers.submit(compute) for _ in range(min(_MOST_HELPERS, blocks - 1))] if helpers is not None else []
    compute()
    for share in shares:
        share.result()
    return found


def normalized_gain_offset(
    normalize: str, gain: NDArray[np.float32], offset: NDArray[np.float32], statistics: NDArray[np.float64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Gain and offset [n] that take stored values to normalised ones.

    none: the unit of the data set. minmax: (x - min) / (max - min), in [0, 1]. zscore: (x - mean) / std. Both per
    frame and channel, and the same whether computed on stored or on physical values, as those differ by a linear map
    (of positive gain). A channel that is flat in a frame becomes 0. `statistics` [n, 4] are those of
    `frame_statistics`.

    Raises:
        BadInput: an unknown method.
    """
    low, high, mean, deviation = statistics.T
    if normalize == "none":
        return gain, offset
    if normalize == "minmax":
        return _linear(low, high - low)
    if normalize == "zscore":
        return _linear(mean, deviation)
    raise BadInput(f"normalize = {normalize!r}: expected one of {', '.join(get_args(Normalization))}")


def _linear(centre: NDArray[np.float64], scale: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    gain, offset = (
        np.divide(above, scale, out=np.zeros_like(scale), where=scale > 0) for above in (np.ones_like(scale), -centre)
    )
    return gain.astype(np.float32), offset.astype(np.float32)
