"""A column of times beside the signals of a file: whether it agrees with the sampling rate, and jumps."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.errors import shown

_WORDS: Final = {"time", "times", "timestamp", "timestamps", "datetime", "elapsed", "unix"}
"""Words in the names of columns of times, in lower case."""
_PER_SECOND: Final = (1.0, 1e3, 1e6, 1e9, 1 / 60, 1 / 3600, 1 / 86400)
"""Units of numbers that are times, by their number in a second: seconds, thousandths, ..., minutes, hours, days."""
_TOLERANCE: Final = 0.02
"""Share by which steps may differ from those of the sampling rate: clocks drift, and times are rounded."""
_JUMP: Final = 2.0
"""Steps of more than this many usual ones are gaps, as in `Recording(timestamps=...)`."""
_FEWEST: Final = 10
"""Fewest samples from which usual steps are known."""


def time_column(titles: Sequence[str], others: Collection[int]) -> int | None:
    """Return the position of the first column that is named as times, apart from some others; None if no column is."""
    for position, title in enumerate(titles):
        words = {word for word in re.split(r"[^a-z]+", title.lower()) if word}
        if position not in others and words & _WORDS:
            return position
    return None


def notes_on_times(name: str, times: NDArray[Any], rate: float, what: str = "column") -> list[str]:
    """Return sentences on times that do not fit samples that follow one another at a rate.

    Args:
        name: name of their column.
        times: the time of each sample, dates or numbers in any unit.
        rate: the sampling rate in Hz.
        what: what holds them.
    """
    dated = times.dtype.kind == "M"
    seconds = (times - times[:1]).astype("timedelta64[ns]").astype(np.float64) * 1e-9 if dated else times
    steps = np.diff(seconds)
    if len(steps) < _FEWEST or not np.isfinite(steps).all():
        return []
    if (steps < 0).any():
        return [f"{what} {shown(name)} goes back: the samples are taken in the order of their lines"]
    usual = _usual(steps)
    if not usual > 0:
        return []
    notes = []
    counts_samples = not dated and usual == 1
    fits = abs(usual * rate - 1) <= _TOLERANCE if dated else fits_rate(usual, rate)
    if not counts_samples and not fits:
        notes.append(
            f"{what} {shown(name)} has steps of {usual:.4g}, which are no {1 / rate:.4g} s in any unit: "
            f"is sampling_rate={rate:g} right?"
        )
    if (steps > _JUMP * usual).any() and np.median(steps) > 0:
        notes.append(
            f"{what} {shown(name)} jumps: samples around a gap are taken as neighbours; read=function with "
            "Recording(timestamps=...) keeps gaps"
        )
    return notes


def fits_rate(step: float, rate: float) -> bool:
    """Return whether a step is the distance of samples at a rate, in seconds or another unit of time."""
    return any(abs(step * rate / unit - 1) <= _TOLERANCE for unit in _PER_SECOND)


def _usual(steps: NDArray[np.float64]) -> float:
    """Return the mean of the steps that are no gaps, since times may be rounded."""
    middle = float(np.median(steps))
    within = steps[steps <= _JUMP * middle] if middle > 0 else steps
    return float(within.mean())
