"""Samples at another rate, by a polyphase filter that keeps the signal's level and slope at both ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.errors import listed

_REACH: Final = 10
"""Samples of the lower rate on each side that the filter of `scipy.signal.resample_poly` spans."""
_DENOMINATORS: Final = (10_000, 100_000, 1_000_000)
"""Largest denominators of a ratio of two rates, from the shortest filter to the longest."""
_DRIFT: Final = 0.25
"""Samples by which a rounded ratio may shift the end of a signal."""


def at_rate(signal: NDArray[Any], rate: float, wanted: float, length: int | None = None) -> NDArray[Any]:
    """Return signals [..., samples] at another rate, [..., length] float64; those of the wanted rate are unchanged.

    Sample k of the result is at k / `wanted` seconds. A polyphase filter (`scipy.signal.resample_poly`, of zero phase)
    is applied to each piece between missing samples. Beyond its ends a piece goes on as its point reflection about its
    first and last sample, x(-t) = 2 x(0) - x(t), so a constant stays the same constant and a ramp the same ramp.

    A sample of the result is NaN if a sample that is missing (NaN or infinite) lasts into it.

    Args:
        signal: [..., samples].
        rate: sampling rate in Hz.
        wanted: sampling rate of the result in Hz.
        length: samples of the result, at most the default of ceil(samples * wanted / rate).
    """
    samples = np.shape(signal)[-1]
    ratio = _ratio(rate, wanted, samples)
    if ratio == 1:
        return signal
    values = np.asarray(signal, np.float64)
    many = ceil(samples * ratio) if length is None else length
    rows = values.reshape(-1, samples)
    result = np.full((len(rows), many), np.nan)
    known = np.isfinite(rows)
    whole = known.all(1)
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow is found where frames are stored as float32
        result[whole] = _resampled(rows[whole], 0, ratio, 0, many)
        for row in np.flatnonzero(~whole):
            for begin, end in _pieces(known[row]):
                first = ceil(begin * ratio)
                last = many if end == samples else min(many, int(end * ratio))
                if first < last:
                    result[row, first:last] = _resampled(rows[row : row + 1, begin:end], begin, ratio, first, last)[0]
    return result.reshape(*values.shape[:-1], many)


def _ratio(rate: float, wanted: float, samples: int) -> Fraction:
    """Return `wanted` / `rate` as a fraction of small numbers, exact to a part of a sample over the whole signal."""
    exact = Fraction(wanted) / Fraction(rate)
    for largest in _DENOMINATORS:
        ratio = exact.limit_denominator(largest)
        if ratio and abs(ratio - exact) * samples <= _DRIFT:
            return ratio
    return ratio or Fraction(1, _DENOMINATORS[-1])


def _pieces(known: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each piece without missing samples."""
    ends = np.flatnonzero(np.diff(known, prepend=False, append=False))
    for begin, end in zip(ends[::2], ends[1::2], strict=True):
        yield int(begin), int(end)


def _resampled(piece: NDArray[np.float64], begin: int, ratio: Fraction, first: int, last: int) -> NDArray[np.float64]:
    """Return samples `first` to `last` (excluded) of the result, from a piece [rows, n] that starts at `begin`."""
    from scipy.signal import resample_poly

    if not piece.size:
        return np.empty((len(piece), last - first))
    up, down = ratio.as_integer_ratio()
    margin = -(-_REACH * max(up, down) // up) + 1
    origin = (begin - margin) // down * down  # a multiple of `down`, where both grids meet
    padded = np.pad(piece, ((0, 0), (begin - origin, margin)), mode="reflect", reflect_type="odd")
    filtered = resample_poly(padded, up, down, axis=1, window=_filter(up, down))  # type: ignore[call-overload]
    shift = origin // down * up
    return np.asarray(filtered[:, first - shift : last - shift])


@lru_cache(maxsize=4)
def _filter(up: int, down: int) -> NDArray[np.float64]:
    """Return the taps of `resample_poly`, scaled so that each of the `up` phases has a gain of 1 for a constant.

    Unscaled, the gain differs by 0.07 % between phases, which would modulate a channel with a large offset.
    """
    from scipy.signal import firwin

    most = max(up, down)
    taps = np.asarray(firwin(2 * _REACH * most + 1, 1 / most, window=("kaiser", 5.0)))
    for phase in range(up):
        taps[phase::up] /= up * taps[phase::up].sum()
    return taps


def resampling_notes(rates: Iterable[tuple[str, float]], target: float) -> list[str]:
    """Return a note for each rate of channels that are resampled, with all channels of that rate.

    Args:
        rates: name and rate of each channel in Hz.
        target: the rate that all channels get, in Hz.
    """
    by_rate: dict[float, list[str]] = {}
    for channel, rate in rates:
        if rate != target:
            by_rate.setdefault(rate, []).append(channel)
    notes = []
    for rate, channels in by_rate.items():
        words = f"channel {channels[0]} is" if len(channels) == 1 else f"channels {listed(channels)} are"
        notes.append(f"{words} resampled from {rate:g} to {target:g} Hz")
    return notes
