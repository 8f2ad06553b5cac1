"""Notes on recordings whose scale is so unlike the others' that their unit may be wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.units import factor, is_voltage, of_each
from clops_sweep.data.usual_rates import is_ecg
from clops_sweep.errors import listed, several, shown

_USUAL: Final = {"V": (1e-6, 0.1), "m/s2": (1e-3, 2000.0)}
"""Usual range of a frame of a signal of the body by unit; outside, the unit may be wrong by a factor of 1,000."""
_TIMES: Final = 300
"""A recording of another unit differs by a factor of 1,000; one that is rightly scaled rarely by this much."""
_LEAST_RECORDINGS: Final = 4
"""Recordings of a channel from which one can differ from the usual."""
_TIMES_OF_DOMAIN: Final = 5
"""Voltages of two hospitals usually differ by a factor of less than 3, and wrong gains by 5, 10 or 1,000."""
_TIMES_APART: Final = 2.5
"""Voltages of two hospitals that differ by this factor are noted if they hardly overlap."""
_LEAST_APART: Final = 10
"""Recordings of a domain from which it can be seen that they hardly overlap with those of another."""
_HARDLY: Final = (5, 95)
"""Percentiles of recordings: those between them do not overlap."""
_TIMES_OF_ECG: Final = 8
"""ECGs of two people usually differ by a factor of less than 6, if noise in single frames does not count."""
_LEAST_FRAMES: Final = 3
"""Frames of a recording from which noise in one of them does not decide its span."""
_TIMES_OF_CHANNELS: Final = 10
"""Leads of an ECG, or channels of an EEG, usually differ by a factor of less than 5."""

CHANNELS_APART: Final = "scales of channels differ by a factor of "
"""Begin of the note on a data set whose channels have very different scales."""


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


def channel_scale_notes(
    spans: NDArray[np.float64], leads: NDArray[np.int16], channels: Sequence[str], units: str
) -> list[str]:
    """Return a sentence if channels usually span `_TIMES_OF_CHANNELS` times more than others: these count for little.

    The span of a channel is the median over its frames that are not flat.

    Args:
        spans: highest minus lowest sample of each frame, in units, [n].
        leads: channel of each frame, [n].
        channels: names of the channels.
        units: the unit of the data set, or those of its channels.
    """
    usual: dict[int, float] = {}
    for code in np.unique(leads).tolist():
        moving = spans[(leads == code) & (spans > 0)]
        if len(moving):
            usual[code] = float(np.median(moving))
    if not usual:
        return []
    smallest, largest = min(usual, key=usual.__getitem__), max(usual, key=usual.__getitem__)
    times = usual[largest] / usual[smallest]
    if not times >= _TIMES_OF_CHANNELS:
        return []
    of_channels = of_each(units, len(channels)) or ("",) * len(channels)
    either = [f"{channels[code]} {usual[code]:.3g} {of_channels[code]}".rstrip() for code in (largest, smallest)]
    return [
        f"{CHANNELS_APART}{float(f'{times:.2g}'):,.0f} (usual span in a frame: {', '.join(either)}); with "
        "normalize='none', a network hardly learns from the small ones: set normalize='zscore' in RunConfig"
    ]


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
    for code, names, typical, _ in _comparable(spans, leads, recordings):
        usual = float(np.median(typical))
        is_odd = (typical > _TIMES * usual) | (typical < usual / _TIMES)
        if is_odd.any():
            odd = [record_names[recording] for recording in names[is_odd].tolist()]
            notes.append(
                f"channel {channels[code]} spans {_TIMES} times more or less than usual in "
                f"{several(len(odd), 'recording')}: {listed(odd)}; another unit?"
            )
    return notes


def ecg_scale_notes(
    spans: NDArray[np.float64],
    leads: NDArray[np.int16],
    recordings: NDArray[np.int32],
    record_names: Mapping[int, str],
    channels: Sequence[str],
    units: str,
) -> list[str]:
    """Return a sentence for each lead of an ECG with recordings whose gain may be wrong by a factor of 10.

    Recordings that `scale_notes` names are left out. Noise makes spans larger, so that larger ones count only in
    recordings of `_LEAST_FRAMES` frames.

    Args:
        spans: highest minus lowest sample of each frame, in units, [n].
        leads: channel of each frame, [n].
        recordings: number of the recording of each frame, [n].
        record_names: names of the recordings, by number.
        channels: names of the channels.
        units: the unit of the data set, or those of its channels.
    """
    of_channels = of_each(units, len(channels))
    notes = []
    for code, names, typical, frames in _comparable(spans, leads, recordings):
        if not of_channels or not is_ecg(channels[code], of_channels[code]):
            continue
        usual = float(np.median(typical))
        is_large = (typical > _TIMES_OF_ECG * usual) & (typical <= _TIMES * usual) & (frames >= _LEAST_FRAMES)
        is_small = (typical < usual / _TIMES_OF_ECG) & (typical >= usual / _TIMES)
        for is_odd, more in ((is_large, "more"), (is_small, "less")):
            if is_odd.any():
                odd = [record_names[recording] for recording in names[is_odd].tolist()]
                notes.append(
                    f"channel {channels[code]} spans {_TIMES_OF_ECG} times {more} than usual in "
                    f"{several(len(odd), 'recording')}: {listed(odd)}; is its gain wrong by a factor of 10?"
                )
    return notes


def domain_scale_notes(
    spans: NDArray[np.float64],
    leads: NDArray[np.int16],
    recordings: NDArray[np.int32],
    columns: Mapping[str, tuple[NDArray[np.int32], Sequence[str]]],
    channels: Sequence[str],
    units: str,
) -> list[str]:
    """Return a sentence for each domain whose voltages span `_TIMES_OF_DOMAIN` times more or less than in others.

    From `_TIMES_APART` on, if hardly any recording spans as much as one of the others. The span of a domain is the
    median over its recordings, and that of others the median over their spans.

    Args:
        spans: highest minus lowest sample of each frame, in units, [n].
        leads: channel of each frame, [n].
        recordings: number of the recording of each frame, [n].
        columns: code of each frame [n] and names of the codes, for each column of domains or groups.
        channels: names of the channels.
        units: the unit of the data set, or those of its channels.
    """
    of_channels = of_each(units, len(channels))
    voltages = [code for code in np.unique(leads).tolist() if of_channels and is_voltage(of_channels[code])]
    notes = []
    for column, (codes, names) in columns.items():
        ratios: dict[int, dict[int, tuple[float, float]]] = {}
        for code in voltages:
            of_domains = _spans_of_domains(spans, leads == code, recordings, codes)
            for domain, others in _unlike_others(of_domains).items():
                ratios.setdefault(domain, {})[code] = (float(np.median(of_domains[domain])), others)
        for domain, of_leads in ratios.items():
            first = next(iter(of_leads))
            own, others = of_leads[first]
            which = [channels[code] for code in of_leads]
            span = "channel" if len(which) == 1 else "channels"
            times = _ratio(own, others)
            if times < _TIMES_OF_DOMAIN:
                apart = "and hardly any recording as much as one of the others"
                what = f"{apart}; is a gain wrong by a factor of {times:.2g}?"
            else:
                what = f"is a unit or a gain wrong by a factor of {'1,000' if times > 100 else '10'}?"
            notes.append(
                f"{span} {listed(which)} usually {'spans' if len(which) == 1 else 'span'} {own:.3g} "
                f"{of_channels[first]} in {column} {shown(names[domain])} and {others:.3g} {of_channels[first]} "
                f"elsewhere{',' if times < _TIMES_OF_DOMAIN else ';'} {what}"
            )
    return notes


def _spans_of_domains(
    spans: NDArray[np.float64],
    chosen: NDArray[np.bool_],
    recordings: NDArray[np.int32],
    codes: NDArray[np.int32],
) -> dict[int, NDArray[np.float64]]:
    """Return the spans of a channel in the recordings of each domain of a few recordings at least."""
    of_domains = {}
    for domain in np.unique(codes).tolist():
        _, typical, _ = _typical_spans(spans, chosen & (codes == domain), recordings)
        if len(typical) >= _LEAST_RECORDINGS:
            of_domains[domain] = typical
    return of_domains


def _unlike_others(of_domains: Mapping[int, NDArray[np.float64]]) -> dict[int, float]:
    """Return the domains whose spans are unlike those of most others, with the usual span of these.

    If half of all domains or more are so, only those with larger spans are returned.

    Args:
        of_domains: the spans of the recordings of each domain.
    """
    unlike = {}
    for domain, own in of_domains.items():
        others = [other for code, other in of_domains.items() if code != domain]
        far = [float(np.median(other)) for other in others if _is_far(own, other)]
        if 2 * len(far) > len(others):
            unlike[domain] = float(np.median(far))
    if 2 * len(unlike) < len(of_domains):
        return unlike
    return {domain: others for domain, others in unlike.items() if np.median(of_domains[domain]) > others}


def _is_far(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Return whether the spans of two domains are so unlike that a gain may be wrong."""
    times = _ratio(float(np.median(one)), float(np.median(other)))
    if times >= _TIMES_OF_DOMAIN:
        return True
    if times < _TIMES_APART or min(len(one), len(other)) < _LEAST_APART:
        return False
    (low, high), (other_low, other_high) = np.percentile(one, _HARDLY), np.percentile(other, _HARDLY)
    return bool(low > other_high or other_low > high)


def _ratio(one: float, other: float) -> float:
    """Return the ratio of the larger to the smaller span."""
    return max(one, other) / min(one, other)


def _comparable(
    spans: NDArray[np.float64], leads: NDArray[np.int16], recordings: NDArray[np.int32]
) -> Iterator[tuple[int, NDArray[np.int32], NDArray[np.float64], NDArray[np.int64]]]:
    """Yield each channel with enough recordings to compare, and their `_typical_spans`."""
    for code in np.unique(leads).tolist():
        names, typical, frames = _typical_spans(spans, leads == code, recordings)
        if len(names) >= _LEAST_RECORDINGS:
            yield code, names, typical, frames


def _typical_spans(
    spans: NDArray[np.float64], chosen: NDArray[np.bool_], recordings: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int64]]:
    """Return the number of each recording, the median span of its chosen frames that are not flat, and their number."""
    rows = np.flatnonzero(chosen & (spans > 0))
    names, of_recording, counts = np.unique(recordings[rows], return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    in_order = spans[rows[np.argsort(of_recording, kind="stable")]]
    pieces = np.split(in_order, ends[:-1]) if len(names) else []
    return names, np.array([np.median(piece) for piece in pieces]), counts
