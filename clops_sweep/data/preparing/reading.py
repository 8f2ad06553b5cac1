"""Read records in worker processes, and find unusable frames and bad records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import tee
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared.formats.read_files import ReadFile
from clops_sweep.data.declared.portions import Portion
from clops_sweep.data.files.folder import one_sentence, shorten
from clops_sweep.data.files.hashes import file_sha256
from clops_sweep.data.left_out import Collected
from clops_sweep.data.prepared.normalization import frame_statistics
from clops_sweep.data.preparing.record_problems import Problems
from clops_sweep.data.records import Common, EveryRecordFails, Frames, OnError, Source
from clops_sweep.data.same_samples import SeenSamples
from clops_sweep.data.sets.data_set import DataSet, Run
from clops_sweep.errors import UsageError

_FLOAT32: Final = np.finfo(np.float32)

Unusable = dict[str, NDArray[np.bool_]]
"""For each reason, which frames [m] of a source are unusable."""


@dataclass(frozen=True, eq=False)
class Read:
    """The frames of a source, their `frame_statistics` [m, 4], and the SHA-256 of its files."""

    frames: Frames
    statistics: NDArray[np.float64]
    hashes: dict[Path, str]

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Whether each frame has missing samples, [m]."""
        ends = self.statistics[:, :2]
        return np.asarray(~np.isfinite(ends).all(1)) if self.frames.missing is None else self.frames.missing


def records_read(
    data: DataSet, sources: Iterable[Source], run: Run, problems: Problems, seen: SeenSamples, hashed: bool = True
) -> Iterator[tuple[Source, Read, Unusable]]:
    """Yield each source that can be read, with its frames; bad records are added to `problems`.

    A record with a lead without usable frames is bad as a whole, so that each lead has the same records. A record with
    the samples of an earlier one is bad too, unless the data set is known to have duplicates.
    """
    tolerant = data.rules.tolerates_repeats and problems.tolerant
    ours, theirs = tee(sources)
    common = replace(data.common, left_out=Collected())  # it goes to a process with each source
    for source, result in zip(ours, run(partial(_read_source, common, hashed), theirs), strict=True):
        for single, read in _apart_where_bad(data, hashed, source, result, seen):
            try:
                if not isinstance(read, str):
                    data.met(single, read.frames.windows)
            except UsageError as other:  # of another rate or length than the first one
                read = str(other)
            if isinstance(read, str):
                problems.note(single.record, read)
                continue
            wrong, unusable = _looked_at(data, single, read, seen, tolerant, problems.on_error)
            if wrong:
                problems.note(single.record, *wrong)
            else:
                yield single, read, unusable


def _missing_samples(data: DataSet, source: Source, row: int, sizes: NDArray[np.int64] | None) -> str:
    channels = data.common.channels
    single = source if sizes is None else source.apart()[int(np.searchsorted(np.cumsum(sizes), row, "right"))]
    where = single.where(data.common) if isinstance(single, Portion) else single.place
    return (
        f"{where}: channel {channels[row % len(channels)]} has samples that are NaN, infinite or missing; repair "
        'the recording, or leave these windows out with missing="drop_windows"'
    )


@dataclass(frozen=True, eq=False)
class Several:
    """The recordings of a file, without their samples, what was read, and what is left out."""

    reads: list[tuple[Source, Read | str]]
    left_out: Collected


def _read_source(common: Common, hashed: bool, source: Source) -> Read | Several | str:
    """Return the frames of a source, or the reason why it cannot be read."""
    if isinstance(source, ReadFile):
        return _read_file(common, hashed, source)
    return _read(common, hashed, source)


def _read_file(common: Common, hashed: bool, source: ReadFile) -> Several | str:
    try:
        with one_sentence(source.origin):
            recordings, labels = source.recordings(common)
            hashes = {file: file_sha256(file) for file in source.files if hashed}
    except EveryRecordFails:
        raise
    except UsageError as problem:
        return str(problem)
    reads: list[tuple[Source, Read | str]] = []
    for recording in recordings:
        read = _read(common, False, recording)
        if not isinstance(read, str):
            read = replace(read, hashes=hashes)
        without_samples = replace(recording, array=recording.array[:, :, :0])
        reads.append((without_samples, read))
    return Several(reads, labels.left_out)


def _read(common: Common, hashed: bool, source: Source) -> Read | str:
    try:
        with one_sentence(source.origin):
            frames = source.read(common)
            hashes = {file: file_sha256(file) for file in source.files if hashed}
            statistics = frame_statistics(frames.stored)
            _require_scalable(common, source, frames, statistics)
            return Read(frames, statistics, hashes)
    except EveryRecordFails:
        raise
    except UsageError as problem:
        return str(problem)


def _require_scalable(common: Common, source: Source, frames: Frames, statistics: NDArray[np.float64]) -> None:
    """Raise UsageError if samples in units overflow float32, or are so small that all frames would be 0."""
    low, high = statistics[:, 0], statistics[:, 1]
    with np.errstate(all="ignore"):  # missing samples are NaN
        moving = np.isfinite(high - low) & (high > low)
        gain, offset = frames.gain[moving].astype(np.float64), frames.offset[moving].astype(np.float64)
        peak = np.maximum(np.abs(gain * low[moving] + offset), np.abs(gain * high[moving] + offset))
        span = np.abs(gain) * (high - low)[moving]
    where = f"dataset {common.name!r}: recording {shorten(source.record)!r}"
    if not (peak <= _FLOAT32.max).all():
        raise UsageError(f"{where}: has samples that are not finite as float32 once multiplied by gain; correct gain")
    if len(span) and (span < _FLOAT32.tiny).all():
        raise UsageError(f"{where}: all samples are 0 as float32 once multiplied by gain; correct gain or the unit")


def _apart_where_bad(
    data: DataSet, hashed: bool, source: Source, result: Read | Several | str, seen: SeenSamples
) -> Iterator[tuple[Source, Read | str]]:
    """Yield what was read; a source of several recordings with a bad one is read again, recording by recording.

    So is one with a recording whose samples are those of another.
    """
    if isinstance(result, Several):
        data.leave_out(result.left_out)
        yield from result.reads
        return
    has_repeats = isinstance(result, Read) and seen.repeats(result.frames)
    if len(source.names) == 1 or (isinstance(result, Read) and not has_repeats):
        yield source, result
        return
    for single in source.apart():
        yield single, _read(data.common, hashed, single)


def _looked_at(
    data: DataSet, source: Source, read: Read, seen: SeenSamples, tolerant: bool, on_error: OnError
) -> tuple[list[str], Unusable]:
    """Return what is wrong with a record as a whole, and which of its frames are unusable.

    A record is bad if a lead has only unusable frames of one kind, unless such leads are common in the data set. It is
    also bad if an earlier record has the same samples, unless that is tolerated. If the channels of a moment stay
    together, a flat line is unusable only if all of them are flat, and missing samples in one make all unusable; under
    `stop` such a moment makes the record bad, unless the data set drops these windows.
    """
    low, high = read.statistics[:, 0], read.statistics[:, 1]
    missing, leads_of = read.missing, read.frames.windows.leads
    flat = ~missing & (low == high)
    if data.rules.whole_moments:
        leads = len(data.common.channels)
        flat = np.repeat(flat.reshape(-1, leads).all(1), leads)
        if missing.any() and on_error == "stop" and data.common.windowing.missing == "refuse":
            return [_missing_samples(data, source, int(missing.argmax()), read.frames.windows.sizes)], {}
        missing = np.repeat(missing.reshape(-1, leads).any(1), leads)
    unusable = {"missing samples": missing, "flat line": flat}
    if not data.rules.tolerates_dead_leads:
        where = shorten(source.signal_file or source.record)
        dead = [
            f"{where}: lead {data.common.channels[lead]} is nothing but {what}; repair the record"
            for what, bad in unusable.items()
            for lead in np.unique(leads_of[bad])
            if bad[leads_of == lead].all()
        ]
        if dead:
            return dead, unusable
    same = None if (missing | flat).all() else seen.problem(source, read.frames, tolerant)
    return [same] if same else [], unusable
