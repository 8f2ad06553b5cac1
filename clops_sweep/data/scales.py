"""Notes on recordings whose scale is so unlike the others' that their unit may be wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.units import factor
from clops_sweep.errors import listed, several

_VOLTS: Final = (1e-6, 0.1)
"""Usual range of a frame of a physiological signal in volts; outside, the unit may be wrong by a factor of 1,000."""
_TIMES: Final = 300
"""A recording of another unit differs by a factor of 1,000; one that is rightly scaled rarely by this much."""
_LEAST_RECORDINGS: Final = 4
"""Recordings of a channel from which one can differ from the usual."""


def spans_of(statistics: NDArray[np.float64], gain: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return highest minus lowest sample of each frame, in units, [n].

    Args:
        statistics: lowest and highest stored sample of each frame, in the first two columns.
        gain: units of a step of each frame, [n].
    """
    return np.asarray(np.abs(gain) * (statistics[:, 1] - statistics[:, 0]), np.float64)


def usual_scale_note(spans: NDArray[np.float64], unit: str) -> list[str]:
    """Return a sentence if the frames usually span what no physiological signal does in volts.

    Args:
        spans: highest minus lowest sample of each frame, in units, [n].
        unit: the unit.
    """
    moving = spans[spans > 0]
    volts = factor(unit, "V")
    if volts is None or not len(moving):
        return []
    usual = float(np.median(moving))
    if _VOLTS[0] <= usual * volts <= _VOLTS[1]:
        return []
    return [f"channels usually span {usual:.3g} {unit} in a frame; is the unit wrong by a factor of 1,000?"]


def scale_notes(
    spans: NDArray[np.float64],
    leads: NDArray[np.int16],
    recordings: NDArray[np.int32],
    record_names: Mapping[int, str],
    channels: Sequence[str],
) -> list[str]:
    """Return a sentence for each channel with recordings of a span far from that of most others.

    The span of a recording is the median over its frames that are not flat.

    Args:
        spans: highest minus lowest sample of each frame, in units, [n].
        leads: channel of each frame, [n].
        recordings: number of the recording of each frame, [n].
        record_names: names of the recordings, by number.
        channels: names of the channels.
    """
    notes = []
    for code in np.unique(leads).tolist():
        rows = np.flatnonzero((leads == code) & (spans > 0))
        names, of_recording = np.unique(recordings[rows], return_inverse=True)
        if len(names) < _LEAST_RECORDINGS:
            continue
        typical = np.array([np.median(spans[rows[of_recording == number]]) for number in range(len(names))])
        usual = float(np.median(typical))
        is_odd = (typical > _TIMES * usual) | (typical < usual / _TIMES)
        if is_odd.any():
            odd = [record_names[recording] for recording in names[is_odd].tolist()]
            notes.append(
                f"channel {channels[code]} spans {_TIMES} times more or less than usual in "
                f"{several(len(odd), 'recording')}: {listed(odd)}; another unit?"
            )
    return notes
