"""Normalisation of a frame as a gain and an offset, so that stored frames stay as they were recorded."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import Normalization
from clops_sweep.errors import BadInput


def frame_statistics(stored: NDArray[Any]) -> NDArray[np.float64]:
    """Minimum, maximum, mean and (population) standard deviation of each stored row: [m, samples] -> [m, 4]."""
    values = stored.astype(np.float64)
    return np.stack([values.min(1), values.max(1), values.mean(1), values.std(1)], axis=1)


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
