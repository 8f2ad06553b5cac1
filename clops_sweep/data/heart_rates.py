"""Notes on ECGs whose hearts beat too slowly or too fast in the median: a wrong sampling rate scales every interval."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.units import of_each
from clops_sweep.data.records import Windows
from clops_sweep.data.usual_rates import is_ecg
from clops_sweep.errors import several, shown

_LEAST_SECONDS: Final = 5.0
_MOST_SECONDS: Final = 30.0
"""Seconds of a frame that are looked at."""
_SLOPE: Final = 0.02
"""Seconds of a slope."""
_WIDTH: Final = 0.12
"""Seconds of the complex that a slope belongs to."""
_RATE: Final = 50.0
"""Samples a second that suffice for the repetition of complexes."""
_SHORTEST: Final = 0.25
_LONGEST: Final = 2.4
"""Seconds between beats that are looked for: 240 to 25 beats a minute."""
_LEAST_REPETITION: Final = 0.4
"""Autocorrelation at the interval below which no rhythm is found, as in noise and some fibrillation."""
_OF_HIGHEST: Final = 0.8
"""Share of the highest peak from which the first one is the interval: multiples of it repeat, too."""

_MOST_OF_A_DOMAIN: Final = 200
"""Recordings of a domain that are looked at."""
_LEAST_RECORDINGS: Final = 10
_LEAST_SHARE: Final = 0.5
"""Share of the recordings in which a rhythm must be found: other signals than ECGs have none."""
_USUAL: Final = (45.0, 160.0)
"""Beats a minute between which medians of patients lie, from athletes to newborns."""
_TIMES: Final = 1.6
"""Medians of two wards that differ by this factor are noted; wrong sampling rates are wrong by 2 or more."""


def beats_a_minute(signal: NDArray[Any], rate: float) -> float:
    """Return the heart rate of an ECG by the autocorrelation of its slopes; nan if no rhythm is found.

    The interval is the first peak of the autocorrelation, from 0.25 to 2.4 s, that has 80 % of the highest one's value.

    Args:
        signal: one lead, [samples].
        rate: samples a second.
    """
    x = signal[: int(_MOST_SECONDS * rate)].astype(np.float64)
    if len(x) < _LEAST_SECONDS * rate or not np.isfinite(x).all():
        return float("nan")
    step = max(1, round(_SLOPE * rate))
    slopes = np.abs(x[step:] - x[:-step])
    slopes = np.minimum(slopes, np.quantile(slopes, 0.99))  # a pacing spike or an artefact is no beat
    width = max(1, round(_WIDTH * rate))
    energy = np.convolve(slopes, np.ones(width) / width, "valid")
    every = max(1, int(rate // _RATE))
    energy = energy[::every]
    energy -= energy.mean()
    if not energy.any():
        return float("nan")
    autocorrelation = _autocorrelation(energy)
    a_second = rate / every
    shortest = int(_SHORTEST * a_second)
    intervals = autocorrelation[shortest : min(int(_LONGEST * a_second), len(energy) // 2)]
    inner = intervals[1:-1]
    peaks = 1 + np.flatnonzero((inner > intervals[:-2]) & (inner >= intervals[2:]))
    if not len(peaks) or intervals[peaks].max() < _LEAST_REPETITION:
        return float("nan")
    first = peaks[intervals[peaks] >= _OF_HIGHEST * intervals[peaks].max()][0]
    return float(60 * a_second / (first + shortest))


def _autocorrelation(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean product of values [n] with later ones, by distance, relative to their variance, [n]."""
    samples = len(values)
    spectrum = np.fft.rfft(values, 2 * samples)
    products = np.fft.irfft(spectrum * spectrum.conj())[:samples] / np.arange(samples, 0, -1)
    return np.asarray(products / products[0])


class HeartRates:
    """Heart rates of recordings written so far, of the first lead of an ECG and of up to 200 recordings of each domain.

    Args:
        channels: names of the channels.
        units: the unit of the data set, or those of its channels.
    """

    def __init__(self, channels: Sequence[str], units: str) -> None:
        of_channels = of_each(units, len(channels))
        leads = [code for code, name in enumerate(channels) if of_channels and is_ecg(name, of_channels[code])]
        self._lead = leads[0] if leads else None
        self._tried: Counter[object] = Counter()
        self._frames = 0
        self._rows: list[int] = []
        self._beats: list[float] = []

    def add(self, stored: NDArray[Any], rows: NDArray[np.int64], windows: Windows) -> None:
        """Add the frames of a source: one of each recording is looked at.

        Args:
            stored: the frames that are written, [m, samples].
            rows: which of the source's they are, [m].
            windows: all of the source's.
        """
        before = self._frames
        self._frames += len(stored)
        seconds = windows.width / windows.rate
        if self._lead is None or seconds < _LEAST_SECONDS:
            return
        sizes = np.array([len(windows)]) if windows.sizes is None else windows.sizes
        recordings = np.repeat(np.arange(len(sizes)), sizes)[rows]
        of_lead = np.flatnonzero(windows.leads[rows] == self._lead)
        _, first = np.unique(recordings[of_lead], return_index=True)
        for row in of_lead[first].tolist():
            domain = _domain(windows, int(recordings[row]))
            self._tried[domain] += 1
            if self._tried[domain] <= _MOST_OF_A_DOMAIN:
                self._rows.append(before + row)
                self._beats.append(beats_a_minute(stored[row], stored.shape[1] / seconds))

    def notes(self, columns: Mapping[str, tuple[NDArray[np.int32], Sequence[str]]]) -> list[str]:
        """Return a sentence if the median heart rate is unusual, or else for each domain that is unlike the others.

        Args:
            columns: code of each written frame [n] and names of the codes, for each column of domains.
        """
        beats = np.array(self._beats)
        if not _is_enough(beats):
            return []
        usual = float(np.nanmedian(beats))
        if not _USUAL[0] <= usual <= _USUAL[1]:
            many = several(int(np.isfinite(beats).sum()), "recording")
            beat = f"hearts seem to beat {usual:.0f} times a minute in the median of {many}"
            return [f"{beat}: is the sampling rate right?"]
        notes = []
        rows = np.array(self._rows)
        for column, (codes, names) in columns.items():
            of_rows = codes[rows]
            for code in np.unique(of_rows).tolist():
                own, others = beats[of_rows == code], beats[of_rows != code]
                if not (_is_enough(own) and _is_enough(others)):
                    continue
                here, elsewhere = float(np.nanmedian(own)), float(np.nanmedian(others))
                if max(here, elsewhere) >= _TIMES * min(here, elsewhere) and _is_odd(here, elsewhere):
                    beat = f"hearts seem to beat {here:.0f} times a minute in the median, and {elsewhere:.0f} elsewhere"
                    notes.append(f"{column} {shown(names[code])}: {beat}; is its sampling rate right?")
        return notes


def _domain(windows: Windows, recording: int) -> object:
    """Return the domains of a recording."""
    values = []
    for of_column in windows.domains.values():
        values.append(of_column if isinstance(of_column, str) else of_column[recording])
    return tuple(values)


def _is_enough(beats: NDArray[np.float64]) -> bool:
    """Return whether a rhythm was found in enough recordings for a median."""
    rhythms = int(np.isfinite(beats).sum())
    return rhythms >= _LEAST_RECORDINGS and rhythms >= _LEAST_SHARE * len(beats)


def _is_odd(here: float, elsewhere: float) -> bool:
    """Return whether the first of two medians is the more unusual one, by its ratio to 70 beats a minute."""
    return abs(math.log(here / 70)) >= abs(math.log(elsewhere / 70))
