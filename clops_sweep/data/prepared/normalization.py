"""Normalisation of frames by a gain and an offset, so that the stored frames stay as recorded."""

from __future__ import annotations

from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from clops_sweep import native
from clops_sweep.data.catalog import Normalization
from clops_sweep.errors import UsageError

_FLATTEST: Final = 1 / float(np.finfo(np.float32).max)
"""The inverse of a smaller range overflows float32."""

_AT_ONCE: Final = 2**17
"""Number of samples that numpy processes at a time, so that they fit into a processor's cache."""


def frame_statistics(stored: NDArray[Any]) -> NDArray[np.float64]:
    """Return minimum, maximum, mean and (population) standard deviation of each row: [m, samples] -> float64 [m, 4].

    A row with NaN or infinity has a minimum or maximum that is not finite. The native kernels compute the same bits in
    a sixth of the time: both sum in float64 in numpy's order.
    """
    if (by_kernels := native.frame_statistics(stored)) is not None:
        return by_kernels
    rows, samples = stored.shape
    statistics = np.empty((rows, 4))
    many = max(1, _AT_ONCE // samples)
    with np.errstate(invalid="ignore", over="ignore"):
        # Before version 2.3, numpy adds long rows piece by piece, a buffer each. It is restored like the errors above.
        np.setbufsize(min(10_000_000, 16 * (samples // 16 + 1)))
        for begin in range(0, rows, many):
            values = stored[begin : begin + many].astype(np.float64)
            result = statistics[begin : begin + many]
            result[:, 0], result[:, 1] = values.min(1), values.max(1)
            result[:, 2] = values.sum(1) / samples
            values -= result[:, 2, None]
            values *= values
            result[:, 3] = np.sqrt(values.sum(1) / samples)
    return statistics


def normalized_gain_offset(
    normalize: str, gain: NDArray[np.float32], offset: NDArray[np.float32], statistics: NDArray[np.float64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return gain and offset [n] that map stored values to normalised values.

    "none" keeps the unit of the data set, "minmax" is (x - min) / (max - min), in [0, 1], and "zscore" is (x - mean) /
    std, each per frame and channel. A channel that is flat in a frame becomes 0. Stored and physical values differ by a
    linear map: a negative gain inverts the signal.

    Args:
        normalize: one of these methods.
        gain: from stored values to the unit of the data set.
        offset: likewise.
        statistics: `frame_statistics` of the stored values, [n, 4].

    Raises:
        UsageError: an unknown method.
    """
    low, high, mean, deviation = statistics.T
    if normalize == "none":
        return gain, offset
    sign = np.where(gain < 0, -1.0, 1.0)
    if normalize == "minmax":
        return _linear(np.where(gain < 0, high, low), sign, high - low)
    if normalize == "zscore":
        return _linear(mean, sign, deviation)
    raise UsageError(f"normalize = {normalize!r}: expected one of {', '.join(get_args(Normalization))}")


def _linear(
    centre: NDArray[np.float64], sign: NDArray[np.float64], scale: NDArray[np.float64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    gain, offset = (
        np.divide(above, scale, out=np.zeros_like(scale), where=scale > _FLATTEST) for above in (sign, -sign * centre)
    )
    return gain.astype(np.float32), offset.astype(np.float32)


def normalized(normalize: str, frames: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return frames in the unit of the data set, float32 [m, channels, samples], normalised per frame and channel.

    Args:
        normalize: as in `normalized_gain_offset`.
        frames: float32 [m, channels, samples].
    """
    rows = frames.reshape(-1, frames.shape[2])
    gain = np.ones(len(rows), np.float32)
    offset = np.zeros(len(rows), np.float32)
    gain, offset = normalized_gain_offset(normalize, gain, offset, frame_statistics(rows))
    normal: NDArray[np.float32] = rows * gain[:, None] + offset[:, None]
    return normal.reshape(frames.shape)
