"""Signals that are cut off at the end of their range: they stay at an extreme, and leave it by a jump."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.sentinels import Sentinels
from clops_sweep.errors import several

_LEAST_SAMPLES: Final = 3
"""Least number of equal samples of a plateau."""
_LEAST_PLATEAUS: Final = 2
"""Least number of plateaus of a recording: one may be an electrode that came off."""
_LEAST_LEVELS: Final = 17
"""Least number of other values: a channel of fewer has markers or steps."""
_LEAST_STEPS: Final = 3.0
"""Least mean jump at the ends of plateaus, in the smallest steps of the channel. The crests of a slow wave in coarse
steps are plateaus, too, but it comes to them in single steps."""
_MOST_HELD: Final = 0.5
"""Most samples elsewhere that are equal to the one before: a channel of a slower rate holds each value."""
_LEAST_SHARE: Final = 0.01
"""Least share of the recordings that is noted."""


@dataclass(frozen=True)
class Clipped:
    """Recordings of a source with a channel that is cut off, and their samples on plateaus among all of theirs."""

    recordings: int = 0
    plateaus: int = 0
    samples: int = 0

    def __add__(self, other: Clipped) -> Clipped:
        return Clipped(self.recordings + other.recordings, self.plateaus + other.plateaus, self.samples + other.samples)


def clipped_in(stored: NDArray[Any], zeros: NDArray[np.float64], sentinels: Sentinels) -> Mapping[int, Clipped]:
    """Return the channels of some recordings that are cut off at their highest or lowest value.

    A channel of a recording counts if at least `_LEAST_PLATEAUS` plateaus of `_LEAST_SAMPLES` equal samples or more lie
    at an extreme other than 0, not at the begin or end, and if the jumps at their ends are `_LEAST_STEPS` of its
    smallest steps in the mean.

    Args:
        stored: samples of some recordings, [b, channels, samples].
        zeros: the stored value of each channel that stands for 0 in its unit, [channels].
        sentinels: values that stand for missing samples; they are no end of a range.
    """
    clipped: dict[int, Clipped] = {}
    if stored.shape[2] <= 2 * _LEAST_SAMPLES:
        return clipped
    of_recording: dict[tuple[int, int], int] = {}
    for extreme in (np.fmin.reduce(stored, axis=2), np.fmax.reduce(stored, axis=2)):
        for row, channel in np.argwhere(_may_be_clipped(stored, extreme)).tolist():
            value = extreme[row, channel]
            if value == zeros[channel] or (channel, float(value)) in sentinels:
                continue
            samples = _samples_on_plateaus(stored[row, channel], value)
            if samples:
                of_recording[row, channel] = of_recording.get((row, channel), 0) + samples
    for (_, channel), samples in of_recording.items():
        clipped[channel] = clipped.get(channel, Clipped()) + Clipped(1, samples, stored.shape[2])
    return clipped


def _may_be_clipped(stored: NDArray[Any], extreme: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where [b, channels] an extreme has enough samples for the plateaus; a first, quick look."""
    is_extreme = stored == extreme[..., None]
    return np.asarray(is_extreme.sum(axis=2) >= _LEAST_PLATEAUS * _LEAST_SAMPLES)


def _samples_on_plateaus(values: NDArray[Any], extreme: Any) -> int:
    """Return how many samples [n] lie on plateaus at an extreme; 0 if these may be part of the signal."""
    is_extreme = values == extreme
    edges = np.flatnonzero(np.diff(is_extreme, prepend=False, append=False))
    begins, ends = edges[::2], edges[1::2]
    is_plateau = (ends - begins >= _LEAST_SAMPLES) & (begins > 0) & (ends < len(values))
    begins, ends = begins[is_plateau], ends[is_plateau]
    if len(begins) < _LEAST_PLATEAUS:
        return 0
    others = values[np.isfinite(values) & ~is_extreme].astype(np.float64)
    levels = np.unique(others)
    if len(levels) < _LEAST_LEVELS or (others[1:] == others[:-1]).mean() > _MOST_HELD:
        return 0
    beside = np.concatenate([values[begins - 1], values[ends]]).astype(np.float64)
    jumps = np.abs(beside[np.isfinite(beside)] - float(extreme))
    smallest = float(np.diff(levels).min())
    if not len(jumps) or jumps.mean() < _LEAST_STEPS * smallest:
        return 0
    return int((ends - begins).sum())


def clipping_notes(clipped: Iterable[Mapping[int, Clipped]], recordings: int, channels: Sequence[str]) -> list[str]:
    """Return a sentence on each channel that is cut off in a hundredth of the recordings or more.

    Args:
        clipped: the channels that are cut off, of each source.
        recordings: number of all recordings.
        channels: names of the channels.
    """
    totals: dict[int, Clipped] = {}
    for of_source in clipped:
        for channel, count in of_source.items():
            totals[channel] = totals.get(channel, Clipped()) + count
    notes = []
    for channel, total in sorted(totals.items()):
        if total.recordings < _LEAST_SHARE * recordings:
            continue
        share = 100 * total.plateaus / total.samples
        lies = "lies" if total.recordings == 1 else "lie"
        notes.append(
            f"channel {channels[channel]}: {several(total.recordings, 'recording')} of {recordings:,} {lies} at the "
            f"highest or lowest value for {share:.2g} % of the time, and leave it by jumps: they seem to be cut off at "
            "the end of a range; look at them with data look"
        )
    return notes
