"""Normalisation of a frame as a gain and an offset, so that stored frames stay as they were recorded."""

from __future__ import annotations

from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from clops_sweep import native
from clops_sweep.data.catalog import Normalization
from clops_sweep.errors import UsageError

_FLATTEST: Final = 1 / float(np.finfo(np.float32).max)
"""The inverse of a smaller range is not finite as float32."""

_AT_ONCE: Final = 2**17
"""Samples whose statistics numpy computes at a time, so that they stay in a processor's cache."""


def frame_statistics(stored: NDArray[Any]) -> NDArray[np.float64]:
    """Minimum, maximum, mean and (population) standard deviation of each stored row: [m, samples] -> [m, 4].

    What is not finite in a row is not finite in its minimum or its maximum. All are of float64, and added up as numpy
    does it, so that the native kernels, which do it for stored types in a sixth of the time, give the same bits.
    """
    if (by_kernels := native.frame_statistics(stored)) is not None:
        return by_kernels
    rows, samples = stored.shape
    found = np.empty((rows, 4))
    many = max(1, _AT_ONCE // samples)
    with np.errstate(invalid="ignore", over="ignore"):
        for begin in range(0, rows, many):
            values = stored[begin : begin + many].astype(np.float64)
            result = found[begin : begin + many]
            result[:, 0], result[:, 1] = values.min(1), values.max(1)
            result[:, 2] = values.sum(1) / samples
            values -= result[:, 2, None]
            values *= values
            result[:, 3] = np.sqrt(values.sum(1) / samples)
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
        UsageError: an unknown method.
    """
    low, high, mean, deviation = statistics.T
    if normalize == "none":
        return gain, offset
    if normalize == "minmax":
        return _linear(low, high - low)
    if normalize == "zscore":
        return _linear(mean, deviation)
    raise UsageError(f"normalize = {normalize!r}: expected one of {', '.join(get_args(Normalization))}")


def _linear(centre: NDArray[np.float64], scale: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    gain, offset = (
        np.divide(above, scale, out=np.zeros_like(scale), where=scale > _FLATTEST)
        for above in (np.ones_like(scale), -centre)
    )
    return gain.astype(np.float32), offset.astype(np.float32)
