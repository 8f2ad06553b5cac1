"""Facts that may tell labels without a network: length, missing samples, flat ends, amplitude and few values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep import native
from clops_sweep.data.clipping import Clipped, clipped_in
from clops_sweep.data.sentinels import Sentinels, sentinels_in

_LEAST_FLAT: Final = 10
"""Least number of samples of a flat end; a plateau of fewer samples is common."""
_LEAST_SHARE: Final = 0.01
"""Share of a recording from which an end is flat, also if it is shorter than a second."""
MOST_LEVELS: Final = 16
"""Most values of a channel of markers."""
_MOST_CHANGES: Final = 0.05
"""Most changes of a channel of markers, as a share of its samples."""
_HEAD: Final = 512
"""Samples from which most signals are told from markers."""

PEOPLE_NOT_GIVEN: Final = "each recording counts as a person"
"""Begin of the note on a declared data set whose recordings name no people."""
PEOPLE_MAY_BE_RECORDINGS: Final = "people may be recordings"
"""Begin of the note on a declared data set whose people seem to be numbers of recordings."""


@dataclass(frozen=True, eq=False)
class Facts:
    """Facts about the u labelled parts of b recordings: the recordings, or their labelled intervals.

    Shapes: labels [u] int64 or [u, C] uint8; owner [u], the recording of each part; seconds [u]; missing [u], the share
    of moments with missing samples; padding [u], the share of samples in flat ends; scale [u], the mean over channels
    of the natural logarithm of the standard deviation, in units, NaN if no channel moves. flat [b] is the number of
    samples in the flat ends of each recording, `ends_cut` whether they were cut. `levels` has for each channel of few
    values that rarely change the values in each part. `sentinels` are as `sentinels_in` returns them, `clipped` as
    `clipped_in` does.
    """

    labels: NDArray[Any]
    owner: NDArray[np.int64]
    seconds: NDArray[np.float64]
    missing: NDArray[np.float64]
    padding: NDArray[np.float64]
    scale: NDArray[np.float64]
    flat: NDArray[np.int64]
    rate: float
    ends_cut: bool
    levels: Mapping[int, Sequence[tuple[float, ...]]]
    sentinels: Sentinels
    clipped: Mapping[int, Clipped]


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of b recordings: stored [b, channels, samples], gain and offset [channels], missing as in `Signal`."""

    stored: NDArray[Any]
    rate: float
    gain: NDArray[np.float64]
    offset: NDArray[np.float64]
    missing: NDArray[np.bool_] | None = None


def flat_ends(stored: NDArray[Any], rate: float) -> NDArray[np.int64]:
    """Return how many samples at the begin and the end [b, 2] are equal in each channel; 0 for a few, or for all.

    Args:
        stored: [b, channels, samples].
        rate: samples per second.
    """
    many, _, samples = stored.shape
    ends = np.zeros((many, 2), np.int64)
    least = max(_LEAST_FLAT, int(min(_LEAST_SHARE * samples, rate)))
    if samples <= least:
        return ends
    for side, values in enumerate((stored, stored[:, :, ::-1])):
        short = (values[:, :, 1:least] == values[:, :, :1]).all((1, 2))
        for row in np.flatnonzero(short):
            moves = (values[row, :, 1:] != values[row, :, :1]).any(0)
            ends[row, side] = 1 + int(moves.argmax()) if moves.any() else 0
    return ends


def facts_of(
    samples: Samples,
    labels: NDArray[Any] | None,
    stretches: Sequence[tuple[int, int, int]] | None,
    ends: NDArray[np.int64],
    ends_cut: bool,
) -> Facts | None:
    """Return the facts about recordings; None without labelled parts.

    Args:
        samples: the recordings.
        labels: the label of each recording; None if `stretches` have them.
        stretches: begin, end and label of the labelled intervals of one recording.
        ends: `flat_ends` of the recordings.
        ends_cut: whether frames lie between the flat ends.
    """
    many, _, length = samples.stored.shape
    if labels is None:
        lasting = [interval for interval in stretches or () if interval[1] - interval[0] > 1]
        parts = [(0, begin, end) for begin, end, _ in lasting]
        labels = np.array([label for _, _, label in lasting], np.int64)
    else:
        parts = [(row, 0, length) for row in range(many)]
    if not parts:
        return None
    cut = [(row, max(begin, int(ends[row, 0])), min(end, length - int(ends[row, 1]))) for row, begin, end in parts]
    absent = _absent(samples)
    sizes = np.array([end - begin for _, begin, end in parts], np.float64)
    inside = np.array([max(0, end - begin) for _, begin, end in cut], np.float64)
    missing = np.zeros(len(parts))
    if absent is not None:
        missing = np.array([absent[row, begin:end].mean() for row, begin, end in parts])
    sentinels = sentinels_in(samples.stored, samples.missing)
    return Facts(
        labels=labels,
        owner=np.array([row for row, _, _ in parts], np.int64),
        seconds=(inside if ends_cut else sizes) / samples.rate,
        missing=missing,
        padding=np.zeros(len(parts)) if ends_cut else 1 - inside / sizes,
        scale=_scales(samples, cut, absent is None and not ends.any()),
        flat=ends.sum(1),
        rate=samples.rate,
        ends_cut=ends_cut,
        levels=dict(_levels(samples, parts)),
        sentinels=sentinels,
        clipped=clipped_in(samples.stored, -samples.offset / samples.gain, sentinels),
    )


def _absent(samples: Samples) -> NDArray[np.bool_] | None:
    """Return the moments [b, samples] with missing samples; None without any."""
    absent = samples.missing
    if samples.stored.dtype.kind == "f":
        finite = np.isfinite(samples.stored)
        absent = None if finite.all() else ~finite
    return None if absent is None else np.asarray(absent.any(1))


def _scales(samples: Samples, parts: Sequence[tuple[int, int, int]], whole: bool) -> NDArray[np.float64]:
    """Return the mean logarithm of the standard deviation of each part, NaN where nothing moves."""
    many, channels, length = samples.stored.shape
    if whole and len(parts) == many and parts[0] == (0, 0, length):
        rows = np.ascontiguousarray(samples.stored).reshape(-1, length)
        statistics = native.frame_statistics(rows)
        spread = rows.std(axis=1, dtype=np.float64) if statistics is None else statistics[:, 3]
        deviations = spread.reshape(many, channels)
    else:
        deviations = np.zeros((len(parts), channels))
        for part, (row, begin, end) in enumerate(parts):
            for channel in range(channels):
                values = samples.stored[row, channel, begin:end].astype(np.float64)
                if samples.missing is not None:
                    values = values[~samples.missing[row, channel, begin:end]]
                values = values[np.isfinite(values)]
                deviations[part, channel] = values.std() if len(values) else 0.0
    in_units = deviations * np.abs(samples.gain)
    moving = np.isfinite(in_units) & (in_units > 0)
    logarithms = np.log(in_units, where=moving, out=np.zeros_like(in_units))
    count = moving.sum(1)
    return np.where(count > 0, logarithms.sum(1) / np.maximum(count, 1), np.nan)


def _levels(
    samples: Samples, parts: Sequence[tuple[int, int, int]]
) -> Iterator[tuple[int, Sequence[tuple[float, ...]]]]:
    """Yield each channel of few values that rarely change, with the values in each part."""
    for channel in range(samples.stored.shape[1]):
        values = samples.stored[:, channel]
        head = values[:, :_HEAD]
        if (head[:, 1:] != head[:, :-1]).mean() > 2 * _MOST_CHANGES:
            continue
        if (values[:, 1:] != values[:, :-1]).mean() > _MOST_CHANGES:
            continue
        of_parts = list[tuple[float, ...]]()
        for row, begin, end in parts:
            there = np.unique(values[row, begin:end])
            if len(there) > MOST_LEVELS:
                break
            in_units = there * samples.gain[channel] + samples.offset[channel]
            of_parts.append(tuple(float(f"{value:.6g}") for value in in_units.tolist()))
        if len(of_parts) == len(parts):
            yield channel, of_parts
