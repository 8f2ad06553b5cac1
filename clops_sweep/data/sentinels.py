"""Values that programs write for missing samples, such as -9999: found by their distance from all other values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.errors import several

_NINES: Final = (999, 9_999, 99_999, 999_999)
_RAILS: Final = (2**15 - 1, 2**16 - 1, 2**23 - 1, 2**31 - 1)
"""Greatest integers of 16, 24 and 32 bits."""
_LOWEST: Final = (-(2**15), -(2**23), -(2**31))
SENTINELS: Final = np.array([*_NINES, *(-value for value in _NINES), *_RAILS, *_LOWEST], np.float64)
"""Values that stand for missing samples in many files."""

_LEAST_TIMES: Final = 2
"""Least number of samples of a channel with the value, in all recordings: one alone may be an artefact."""
_LEAST_LEVELS: Final = 17
"""Least number of other values: a channel of fewer has markers or steps."""

Sentinels = Mapping[tuple[int, float], tuple[int, int]]
"""Numbers of recordings and of samples, by channel and value."""


def sentinels_in(stored: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> Sentinels:
    """Return the values of `SENTINELS` that occur apart from all other values of a channel.

    Such a value is the least or the greatest of a recording's channel, and lies further from all other values than
    these from each other. A signal that is cut off at the end of its range comes close to
    the value, so it has none.

    Args:
        stored: samples of some recordings, [b, channels, samples].
        missing: which of them are known to be missing, of the same shape; None if NaN alone is.
    """
    found = dict[tuple[int, float], tuple[int, int]]()
    if not stored.shape[2]:
        return found
    for extreme in (np.fmin.reduce(stored, axis=2), np.fmax.reduce(stored, axis=2)):
        for row, channel in np.argwhere(np.isin(extreme, SENTINELS)).tolist():
            value = float(extreme[row, channel])
            values = stored[row, channel]
            times = _times_apart(values if missing is None else values[~missing[row, channel]], value)
            if times:
                recordings, samples = found.get((channel, value), (0, 0))
                found[channel, value] = recordings + 1, samples + times
    return found


def _times_apart(values: NDArray[Any], value: float) -> int:
    """Return how often a value occurs; 0 if it may be a value of the signal."""
    plain = values.astype(np.float64)
    is_value = plain == value
    times = int(is_value.sum())
    others = plain[~is_value & np.isfinite(plain) & ~np.isin(plain, SENTINELS)]
    if len(np.unique(others)) < _LEAST_LEVELS:
        return 0
    apart = float(np.abs(others - value).min())
    return times if apart > np.ptp(others) else 0


def sentinel_notes(found: Iterable[Sentinels], channels: Sequence[str]) -> list[str]:
    """Return a sentence on each such value of a channel, with the numbers of its recordings and samples."""
    recordings, samples = Counter[tuple[int, float]](), Counter[tuple[int, float]]()
    for of_source in found:
        for place, (count, times) in of_source.items():
            recordings[place] += count
            samples[place] += times
    notes = []
    for (channel, value), count in sorted(recordings.items()):
        if samples[channel, value] < _LEAST_TIMES:
            continue
        many = several(count, "recording")
        notes.append(
            f"channel {channels[channel]}: {samples[channel, value]:,} samples of {many} are {value:.0f}, far from all "
            "other values: if it stands for missing samples, replace it by NaN before"
        )
    return notes
