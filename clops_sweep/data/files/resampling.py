"""Resampling of frames, and rounding of their samples to a grid."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def resampled(signal: NDArray[Any], length: int, grid: float) -> NDArray[np.float32]:
    """Apply `scipy.signal.resample` (Fourier method) along the last axis, rounded to multiples of `grid`, float32.

    The grid is far finer than the source's resolution. It makes frames, and therefore the data hash, equal on machines
    whose Fourier transforms differ in the last bit. NaN anywhere in a row makes the whole row NaN.

    Args:
        signal: [..., samples].
        length: number of samples of the result.
        grid: a power of two, in the unit of the signal.
    """
    from scipy.signal import resample

    result = resample(np.asarray(signal, np.float64), length, axis=-1)
    with np.errstate(over="ignore"):  # overflow becomes infinite: such a frame is dropped like one with missing samples
        return np.asarray(np.rint(result / grid) * grid, np.float32)
