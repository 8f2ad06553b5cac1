"""Samples at irregular times, brought to a regular grid."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared.recording_checks import utc
from clops_sweep.errors import UsageError, shown

_MOST = 100
"""Samples of the grid for each given one from which times in seconds are taken for milliseconds."""


def on_grid(array: NDArray[Any], timestamps: Any, rate: float, where: str = "") -> NDArray[np.float64]:
    """Return samples [channels, samples] of given times at a constant rate, by linear interpolation; NaN in gaps.

    Raises:
        UsageError: there is not one time for each sample, the times do not rise, or they are no seconds.
    """
    plain = np.asarray(timestamps)
    if plain.dtype.kind == "O" and all(isinstance(timestamp, datetime) for timestamp in timestamps):
        plain = np.array([utc(timestamp) for timestamp in timestamps], "datetime64[us]")
    seconds = plain.dtype.kind != "M"
    if not seconds:
        plain = (plain - plain[0]) / np.timedelta64(1, "s")
    if plain.shape != array.shape[1:] or plain.dtype.kind not in "iuf":
        raise UsageError(
            f"{where}timestamps: expected a date or a number of seconds for each of {array.shape[1]} samples, not "
            f"{shown(timestamps)}"
        )
    times = plain - plain[0]
    steps = np.diff(times)
    if not (steps > 0).all():
        sample = int(np.argmin(steps > 0))
        raise UsageError(
            f"{where}timestamps: sample {sample + 1} (from 0) is {steps[sample]:g} s after the one before; expected "
            "times that rise"
        )
    usual = float(np.median(steps))
    if usual * rate > _MOST and seconds:
        raise UsageError(
            f"{where}timestamps: rise by {usual:g} s where {rate:g} Hz is {1 / rate:g} s; expected seconds, not "
            "milliseconds, or dates"
        )
    grid = np.arange(int(times[-1] * rate + 1e-6) + 1) / rate
    resampled = np.stack([np.interp(grid, times, channel) for channel in array])
    left = np.clip(np.searchsorted(times, grid + 1e-9, "right") - 1, 0, len(steps) - 1)
    in_gap = (steps > 2 * max(usual, 1 / rate))[left]
    at_sample = (np.abs(grid - times[left]) < 1e-9) | (np.abs(grid - times[left + 1]) < 1e-9)
    resampled[:, in_gap & ~at_sample] = np.nan
    return resampled
