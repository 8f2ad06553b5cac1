"""Quality of a declared data set by ward or another domain: people, recordings, amplitudes, unusable samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared.recording_checks import UNKNOWN, is_number
from clops_sweep.data.files.units import of_each
from clops_sweep.data.prepared.manifest import DomainFacts
from clops_sweep.data.prepared.prepared_folder import PreparedSet, mapped_frames

_MOST_ROWS: Final = 500
"""Stored rows of a domain and unit whose samples are read for percentiles, evenly spaced."""
_PERCENTILES: Final = (50, 1, 99)
_MOST_DOMAINS: Final = 50
"""Values of a column from which it is no ward or device, but a number of its own for each recording."""


@dataclass(frozen=True)
class Quality:
    """What the recordings of a domain are like.

    Attributes:
        name: the domain; "all" for all recordings.
        people: number of people.
        shared: number of these who are in another domain of the column, too.
        recordings: number of recordings with frames.
        frames: number of frames.
        seconds: length of the recordings from the first frame to the end of the last: shortest, median and longest.
        rates: sampling rates of the recordings in Hz; empty if unknown.
        missing: share of frames that were left out for missing samples; None if unknown.
        flat: share of stored rows that are flat, and frames that were left out because they are; None if unknown.
        amplitude: median, 1st and 99th percentile of the samples, by unit.
        ages: lowest, median and highest number of each column for subgroups that holds numbers, over recordings.
        unknown: number of recordings without a number, of each column in `ages`.
        categories: number of recordings of each value of the other columns, the most frequent first.
    """

    name: str
    people: int
    shared: int
    recordings: int
    frames: int
    seconds: tuple[float, float, float] | None
    rates: tuple[float, ...]
    missing: float | None
    flat: float | None
    amplitude: Mapping[str, tuple[float, float, float]]
    ages: Mapping[str, tuple[float, float, float]]
    unknown: Mapping[str, int]
    categories: Mapping[str, Mapping[str, int]]


def quality_tables(prepared: PreparedSet) -> dict[str, list[Quality]]:
    """Return the quality of each domain, by column of domains; without domains, that of all under "".

    Columns of more than 50 values are left out.
    """
    manifest = prepared.manifest
    columns = {name: names for name, names in manifest.domains.items() if len(names) <= _MOST_DOMAINS}
    if not columns:
        everything = np.zeros(manifest.frames, np.int32)
        return {"": _of_column(prepared, everything, ["all"], [_facts(prepared, "", "")])}
    tables = {}
    for column, names in columns.items():
        facts = [_facts(prepared, column, name) for name in names]
        tables[column] = _of_column(prepared, prepared.table.domain(column), names, facts)
    return tables


def _facts(prepared: PreparedSet, column: str, name: str) -> DomainFacts | None:
    """Return what was read of a domain; None for frames of earlier versions."""
    return prepared.manifest.by_domain.get(column, {}).get(name)


def _of_column(
    prepared: PreparedSet, codes: NDArray[np.int32], names: Sequence[str], facts: Sequence[DomainFacts | None]
) -> list[Quality]:
    """Return the quality of each domain, from the code of each row [n]."""
    table = prepared.table
    pairs = np.unique(np.stack([table.patients, codes]), axis=1)
    domains_of_person = np.bincount(pairs[0])
    return [
        _of_rows(prepared, name, np.flatnonzero(codes == code), domains_of_person, facts[code])
        for code, name in enumerate(names)
    ]


def _of_rows(
    prepared: PreparedSet,
    name: str,
    rows: NDArray[np.int64],
    domains_of_person: NDArray[Any],
    facts: DomainFacts | None,
) -> Quality:
    manifest, table = prepared.manifest, prepared.table
    people = np.unique(table.patients[rows])
    _, first, of_rows = np.unique(table.recordings[rows], return_index=True, return_inverse=True)
    frames = len(rows) // manifest.rows_per_frame
    missing = flat = None
    if facts is not None:
        left_out = sum(facts.dropped.values())
        low, high = table.statistics[rows, 0], table.statistics[rows, 1]
        flat_frames = float((low == high).mean()) * frames if len(rows) else 0.0
        every = max(1, frames + left_out)
        missing = facts.dropped.get("missing samples", 0) / every
        flat = (flat_frames + facts.dropped.get("flat line", 0)) / every
    ages: dict[str, tuple[float, float, float]] = {}
    unknown: dict[str, int] = {}
    categories: dict[str, dict[str, int]] = {}
    for column, values in manifest.groups.items():
        counts = Counter(values[code] for code in table.group(column)[rows[first]].tolist())
        numbers = [float(value) for value in counts.elements() if is_number(value)]
        if 2 * len(numbers) > counts.total() - counts[UNKNOWN]:
            ages[column] = float(np.min(numbers)), float(np.median(numbers)), float(np.max(numbers))
            unknown[column] = counts.total() - len(numbers)
        else:
            categories[column] = dict(counts.most_common())
    return Quality(
        name=name,
        people=len(people),
        shared=int((domains_of_person[people] > 1).sum()),
        recordings=len(first),
        frames=frames,
        seconds=_seconds(prepared, rows, of_rows),
        rates=() if facts is None else facts.rates,
        missing=missing,
        flat=flat,
        amplitude=_amplitude(prepared, rows),
        ages=ages,
        unknown=unknown,
        categories=categories,
    )


def _seconds(
    prepared: PreparedSet, rows: NDArray[np.int64], of_rows: NDArray[np.int64]
) -> tuple[float, float, float] | None:
    """Return the shortest, median and longest recording, from the number of the recording of each row."""
    frame_seconds = prepared.manifest.frame_seconds
    if frame_seconds is None or not len(rows):
        return None
    ends = np.zeros(int(of_rows.max()) + 1)
    np.maximum.at(ends, of_rows, prepared.table.start[rows] + frame_seconds)
    return float(ends.min()), float(np.median(ends)), float(ends.max())


def _amplitude(prepared: PreparedSet, rows: NDArray[np.int64]) -> dict[str, tuple[float, float, float]]:
    """Return median, 1st and 99th percentile of the samples of some rows, by unit."""
    manifest, table = prepared.manifest, prepared.table
    channels = len(manifest.lead_names)
    of_channels = np.array(of_each(manifest.unit, channels) or (manifest.unit,) * channels, dtype=object)
    frames = mapped_frames(prepared)
    amplitude = {}
    for unit in dict.fromkeys(of_channels.tolist()):
        of_unit = rows[np.isin(table.leads[rows], np.flatnonzero(of_channels == unit))]
        if not len(of_unit):
            continue
        chosen = of_unit[np.linspace(0, len(of_unit) - 1, min(len(of_unit), _MOST_ROWS)).astype(np.int64)]
        samples = frames[chosen] * table.gain[chosen, None].astype(np.float64) + table.offset[chosen, None]
        median, low, high = np.percentile(samples, _PERCENTILES)
        amplitude[unit] = float(median), float(low), float(high)
    return amplitude
