"""Notes on recordings whose scale is so unlike the others' that their unit may be wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.units import factor, of_each
from clops_sweep.errors import listed, several

_USUAL: Final = {"V": (1e-6, 0.1), "m/s2": (1e-3, 2000.0)}
"""Usual range of a frame of a signal of the body by unit; outside, the unit may be wrong by a factor of 1,000."""
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


def usual_scale_notes(
    spans: NDArray[np.float64], leads: NDArray[np.int16], channels: Sequence[str], units: str
) -> list[str]:
    """Return a sentence for each unit in which frames usually span what no signal of the body does.

    Voltages and accelerations are judged; other units, such as arbitrary ones, have no usual range.

    Args:
        spans: highest minus lowest sample of each frame, in units, [n].
        leads: channel of each frame, [n].
        channels: names of the channels.
        units: the unit of the data set, or those of its channels.
    """
    of_channels = np.array(of_each(units, len(channels)), dtype=object)
    notes = []
    for unit in dict.fromkeys(of_channels.tolist()):
        of_unit = np.flatnonzero(of_channels == unit)
        moving = spans[np.isin(leads, of_unit) & (spans > 0)]
        usual = float(np.median(moving)) if len(moving) else math.nan
        if any(_is_unusual(usual, unit, standard) for standard in _USUAL):
            names = [channels[code] for code in of_unit.tolist()]
            which = "channels" if len(names) == len(channels) else f"channels {', '.join(names)}"
            spanned = f"{which} usually span {usual:,.4g} {unit} in a frame"
            notes.append(f"{spanned}; is the unit wrong by a factor of 1,000?")
    return notes


def _is_unusual(span: float, unit: str, standard: str) -> bool:
    """Return whether a span is outside the usual range of a unit's kind, if the unit is of this kind."""
    to_standard = factor(unit, standard)
    if to_standard is None or math.isnan(span):
        return False
    low, high = _USUAL[standard]
    return not low <= span * to_standard <= high


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
