"""What is read of a record, or why it could not be; and which of its frames are of no use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared.data_set import DataSet
from clops_sweep.data.files.folder import one_sentence, shorten
from clops_sweep.data.files.hashes import file_sha256
from clops_sweep.data.prepared.normalization import frame_statistics
from clops_sweep.data.records import Common, EveryRecordFails, Offer, Signals, Source, Windows
from clops_sweep.data.same_samples import SeenSamples
from clops_sweep.errors import UsageError

_FLOAT32: Final = np.finfo(np.float32)


@dataclass(frozen=True, eq=False)
class FramesRead:
    """Frames of a source, the `frame_statistics` of each [m, 4], and the SHA-256 of its files."""

    signals: Signals
    statistics: NDArray[np.float64]
    hashes: dict[Path, str]


Read = FramesRead | str
"""What was read of a source, or why it could not be read."""


def windows_or_reason(common: Common, source: Source) -> Windows | str:
    """The windows of a source, or why they are not known."""
    try:
        with one_sentence(source.origin):
            return source.windows(common)
    except EveryRecordFails:
        raise
    except UsageError as problem:
        return str(problem)


def read_frames(common: Common, pair: Offer, hashed: bool = True) -> Read:
    """Read the frames of a source at the given windows; the reason, where the source cannot be read."""
    source, windows = pair
    try:
        with one_sentence(source.origin):
            signals = source.signals(common, windows)
            hashes = {file: file_sha256(file) for file in source.files if hashed}
            statistics = frame_statistics(signals.stored)
            _require_scalable(common, source, signals, statistics)
            return FramesRead(signals, statistics, hashes)
    except EveryRecordFails:
        raise
    except UsageError as problem:
        return str(problem)


def _require_scalable(common: Common, source: Source, signals: Signals, statistics: NDArray[np.float64]) -> None:
    """Raises UsageError where samples in units are beyond float32, or so small that all frames would be 0."""
    low, high = statistics[:, 0], statistics[:, 1]
    with np.errstate(all="ignore"):  # missing samples are NaN
        moving = np.isfinite(high - low) & (high > low)
        gain, offset = signals.gain[moving].astype(np.float64), signals.offset[moving].astype(np.float64)
        peak = np.maximum(np.abs(gain * low[moving] + offset), np.abs(gain * high[moving] + offset))
        span = gain * (high - low)[moving]
    where = f"dataset {common.name!r}: recording {shorten(source.record)!r}"
    if not (peak <= _FLOAT32.max).all():
        raise UsageError(f"{where}: has samples that are not finite as float32 once multiplied by gain; correct gain")
    if len(span) and (span < _FLOAT32.tiny).all():
        raise UsageError(f"{where}: all samples are 0 as float32 once multiplied by gain; correct gain or the unit")


def apart_where_bad(
    common: Common, source: Source, windows: Windows, result: Read
) -> Iterator[tuple[Source, Windows, Read]]:
    """What was read of a source; record by record where it stands for several and one of them is bad."""
    if isinstance(result, FramesRead) or len(source.names) == 1:
        yield source, windows, result
        return
    for single in source.apart():
        windows = single.windows(common)
        yield single, windows, read_frames(common, (single, windows))


def looked_at(
    data: DataSet, source: Source, windows: Windows, read: FramesRead, seen: SeenSamples, tolerant: bool
) -> tuple[list[str], dict[str, NDArray[np.bool_]]]:
    """What is wrong with a record as a whole, and which of its frames [m] are unusable, by reason.

    Wrong is a lead that has nothing but unusable frames of one kind, unless such leads are common in the data set; and
    that it has the samples of one that was seen before, unless that is tolerated. Where the channels of a moment are
    kept together, a flat line is unusable if all of them are flat.
    """
    low, high = read.statistics[:, 0], read.statistics[:, 1]
    given = read.signals.missing
    missing = ~(np.isfinite(low) & np.isfinite(high)) if given is None else given
    flat = ~missing & (low == high)
    if not data.built_in:
        leads = len(data.common.channels)
        flat = np.repeat(flat.reshape(-1, leads).all(1), leads)
    unusable = {"missing samples": missing, "flat line": flat}
    if data.built_in and not data.rules.tolerates_dead_leads:
        where = shorten(source.signal_file or source.record)
        dead = [
            f"{where}: lead {data.common.channels[lead]} is nothing but {what}; repair the record"
            for what, bad in unusable.items()
            for lead in np.unique(windows.leads[bad])
            if bad[windows.leads == lead].all()
        ]
        if dead:
            return dead, unusable
    same = None if (missing | flat).all() else seen.problem(source, windows, read.signals, tolerant)
    return [same] if same else [], unusable
