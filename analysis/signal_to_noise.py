"""How noisy a frame is: a plain proxy, from its spectrum alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from clops_sweep.analysis.tracings import Frames

SIGNAL_HERTZ = 1.0, 40.0
"""Where an ECG has nearly all of its power; below is the baseline's wander, above are muscles and the mains."""

_AT_A_TIME = 512


def signal_to_noise(frames: Frames, instances: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """10 log10 of a frame's power between 1 and 40 Hz over that outside, in decibel, without the mean.

    Of several channels, it is the mean. NaN where a frame is constant, or its length in seconds is not known.

    Args:
        frames: prepared frames.
        instances: positions in them, int64 [n].
    """
    ratios = np.full(len(instances), np.nan)
    if frames.frame_seconds is None:
        return ratios
    for start in range(0, len(instances), _AT_A_TIME):
        part = slice(start, start + _AT_A_TIME)
        signal = np.asarray(frames.signal(instances[part]), dtype=np.float64)
        signal = signal.reshape(len(signal), -1, signal.shape[-1])
        window = np.hanning(signal.shape[-1])
        centred = signal - (signal * window).sum(axis=-1, keepdims=True) / window.sum()
        power = np.abs(np.fft.rfft(centred * window)) ** 2
        hertz = np.arange(power.shape[-1]) / frames.frame_seconds
        inside = (hertz >= SIGNAL_HERTZ[0]) & (hertz <= SIGNAL_HERTZ[1])
        within, outside = power[..., inside].sum(axis=-1), power[..., ~inside].sum(axis=-1)
        known = (within > 0) & (outside > 0)
        decibel = 10 * np.log10(np.where(known, within, np.nan) / np.where(known, outside, 1.0))
        ratios[part] = decibel.mean(axis=-1)
    return ratios
