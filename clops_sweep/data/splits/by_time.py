"""Splits of recordings by time: the first part is for training, the next for validation, the last for test."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.frames import LEFT_OUT, SPLIT_NAMES, TEST, UNSEEN
from clops_sweep.errors import UsageError, several

_ENDS: Final = (6, 8, 10)
"""Ends of training, validation and test, in tenths of a person's moments."""

_ROUNDING: Final = 1e-9
"""Tolerance of starts in seconds, as a share of a window: far less than a sample."""


def split_by_time(
    people: NDArray[np.int8],
    patients: NDArray[np.int32],
    patient_names: Sequence[str],
    recordings: NDArray[np.int32],
    start: NDArray[np.float64],
    times: NDArray[np.datetime64] | None,
    window: float,
) -> NDArray[np.int8]:
    """Return the split of every frame, [n] int8, with each person's recordings split by time.

    Test people of the data set's split are UNSEEN with all their frames. The M moments (frames that begin together) of
    each other person are ordered by date of the recording, its position in the data, and time. The first floor(0.6 M)
    are for training, those up to floor(0.8 M) for validation, the rest for test. Within a recording, a part begins at
    least a window after the end of the previous part; moments in between are LEFT_OUT.

    Args:
        people: [n], the data set's split of the people.
        patients: [n], indices into `patient_names`.
        patient_names: names of the people.
        recordings: [n], as in `FrameSet`.
        start: [n], seconds.
        times: [n], or None.
        window: seconds that a frame lasts.

    Raises:
        UsageError: a part of a person would be empty; the message names the person.
    """
    split = np.full(len(patients), UNSEEN, np.int8)
    rows = np.flatnonzero(people != TEST)
    dates = np.zeros(len(rows), np.int64)
    if times is not None:
        dates = times[rows].astype(np.int64)
    order = rows[np.lexsort((start[rows], recordings[rows], dates, patients[rows]))]
    is_first = _changes(patients[order]) | _changes(recordings[order]) | _changes(start[order])
    begins = np.flatnonzero(is_first)  # of each moment, among the ordered frames
    moments = order[begins]
    owner = patients[moments]
    parts = np.empty(len(moments), np.int8)
    bounds = [0, *(1 + np.flatnonzero(np.diff(owner))), len(owner)] if len(owner) else [0]
    for first, last in pairwise(bounds):
        of_person = moments[first:last]
        parts[first:last] = _parts(recordings[of_person], start[of_person], window)
        missing = sorted({*range(3)}.difference(parts[first:last].tolist()))
        if missing:
            person = patient_names[owner[first]]
            raise UsageError(
                f"split_within = 'time': patient {person!r} has "
                f"{several(last - first, 'window')}, too few for a {SPLIT_NAMES[missing[0]]} part and gaps of a "
                "window; expected longer recordings, or split_within = 'people'"
            )
    frames_of_moments = np.diff([*begins, len(order)])
    split[order] = np.repeat(parts, frames_of_moments)
    return split


def _changes(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether each value differs from the previous one, [n]; True for the first."""
    return np.concatenate([np.ones(min(1, len(values)), bool), values[1:] != values[:-1]])


def _parts(recording: NDArray[np.int32], start: NDArray[np.float64], window: float) -> NDArray[np.int8]:
    """Return the part of each of a person's ordered moments, [m]."""
    count = len(start)
    parts = np.full(count, LEFT_OUT, np.int8)
    begin = 0
    for part, tenths in enumerate(_ENDS):
        end = tenths * count // 10
        parts[begin:end] = part
        if begin >= end:
            break
        after = start[end - 1] + 2 * window * (1 - _ROUNDING)
        is_close = (recording[end:] == recording[end - 1]) & (start[end:] < after)
        begin = end + int(is_close.sum())
    return parts
