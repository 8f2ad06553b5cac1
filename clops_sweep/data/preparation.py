"""How a prepared folder is made: windows of all records, caps, signals (in parallel), split, manifest."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS, DatasetInfo
from clops_sweep.data.counts import count_table
from clops_sweep.data.dead_leads import FLAT, MISSING, dead_leads, unusable_frames
from clops_sweep.data.folder import appearing_folder, is_file, one_sentence, shorten, write_file
from clops_sweep.data.frame_file import FrameFile, npy_bytes
from clops_sweep.data.freshness import State, remember, states_of
from clops_sweep.data.index_of_windows import index_of
from clops_sweep.data.index_table import write_index
from clops_sweep.data.kept_reads import KeptReads, Read, kept_reads
from clops_sweep.data.manifest import (
    FORMAT_VERSION,
    INDEX,
    MANIFEST,
    SOURCES,
    FileRecord,
    Manifest,
    array_sha256,
    file_sha256,
    frames_hash,
    hash_of,
)
from clops_sweep.data.normalization import frame_statistics
from clops_sweep.data.progress import with_progress
from clops_sweep.data.reader import Index, OnError, Reader, Signals, Source, Windows
from clops_sweep.data.record_pool import record_pool
from clops_sweep.data.same_samples import SeenSamples
from clops_sweep.errors import BadInput


def make_prepared_folder(
    reader: Reader,
    folder: Path,
    data_root: Path | None,
    *,
    progress: bool,
    on_error: OnError,
    workers: int | None,
) -> None:
    """Prepares a data set into `folder`, which appears whole or not at all.

    Raises:
        BadInput: no record, a record that cannot be read (under `stop`), or a folder that cannot be written.
    """
    with one_sentence(data_root or folder):
        declared = reader.name in DATASETS.added
        before = states_of(_by_key(reader, reader.tables(data_root))) if declared else {}
        sources = reader.find(data_root)
    workers = workers if reader.parallel else 1
    problems = _Problems(on_error)
    seen = SeenSamples()
    sources = _without_duplicates(_with_names(sources, problems), problems)
    with (
        appearing_folder(folder) as staging,
        kept_reads(reader, folder) if reader.parallel else nullcontext() as kept,
        record_pool(reader.name, len(sources), workers) as run,
    ):
        offered = _collect_windows(reader, sources, run, problems, progress)
        chosen, dropped = _select(reader, offered)
        arrays, index, files, frames = _write_signals(
            reader, chosen, staging, run, kept, seen, problems, dropped, progress
        )
        # Also records without a frame: once they are others, the set is to be made again.
        rest = {*(file for source in sources for file in source.files), *reader.tables(data_root)}
        keyed = {reader.file_key(file): file for file in rest}
        files |= {key: file_sha256(file) for key, file in keyed.items() if key not in files and is_file(file)}
        _write_rest(reader, staging, frames, index, arrays, files, seen, dropped, problems, on_error)
        if declared:
            _remember_files(reader, staging, data_root, before, {key: keyed[key] for key in files})


@dataclass
class _Problems:
    """Records that could not be read: the first one ends everything (`stop`), or they are collected (`skip`)."""

    on_error: OnError
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def note(self, record: str, reason: str) -> None:
        if self.on_error == "stop":
            raise BadInput(f"{reason}; or leave such records out with data prepare --on-error skip")
        self.skipped.append((record, reason))


def _with_names(sources: Sequence[Source], problems: _Problems) -> list[Source]:
    """The sources whose names can be written down."""
    named = []
    for source in sources:
        if source.record.isprintable():
            named.append(source)
        else:
            where = shorten(source.files[0] if source.files else source.record)
            reason = f"{where}: the record's name holds characters that cannot be printed; rename it"
            problems.note(shorten(source.record), reason)
    return named


def _without_duplicates(sources: Sequence[Source], problems: _Problems) -> list[Source]:
    """The sources, of each record the first."""
    first: dict[str, Source] = {}
    for source in sources:
        if (other := first.setdefault(source.record, source)) is not source:
            problems.note(source.record, _is_there_twice(other, source))
    return list(first.values())


def _is_there_twice(first: Source, second: Source) -> str:
    record = shorten(second.record)
    if second.listed_in is not None:
        return f"{shorten(second.listed_in)}: record {record!r} is listed twice; keep one of the rows"
    places = " and ".join(shorten(twin.files[0]) for twin in (first, second) if twin.files)
    return f"record {record!r} is there twice ({places}); keep one of them"


def _windows_or_reason(reader: Reader, source: Source) -> Windows | str:
    try:
        with one_sentence(source.files[0] if source.files else source.record):
            return reader.windows(source)
    except BadInput as problem:
        return str(problem)


def _signals_or_reason(reader: Reader, item: tuple[Source, Windows]) -> Read:
    source, windows = item
    try:
        with one_sentence(source.files[0] if source.files else source.record):
            signals = reader.signals(source, windows)
            return signals, {reader.file_key(file): file_sha256(file) for file in source.files}
    except BadInput as problem:
        return str(problem)


@dataclass(frozen=True, eq=False)
class _Offered:
    """All windows of all readable records, and the same as one index."""

    sources: list[Source]
    windows: list[Windows]
    index: Index
    dropped: Counter[str]


def _collect_windows(
    reader: Reader, sources: list[Source], run: Callable[..., Any], problems: _Problems, progress: bool
) -> _Offered:
    kept: list[Source] = []
    windows: list[Windows] = []
    dropped: Counter[str] = Counter()
    results = run(partial(_windows_or_reason, reader), sources)
    pairs = zip(sources, results, strict=True)
    for source, result in with_progress(pairs, len(sources), f"{reader.name}: labels", progress):
        if isinstance(result, str):
            problems.note(source.record, result)
            continue
        dropped.update(result.dropped)
        if len(result):
            kept.append(source)
            windows.append(result)
    if not kept:
        raise _no_frame(reader, dropped, problems)
    return _Offered(kept, windows, index_of(kept, windows), dropped)


def _select(reader: Reader, offered: _Offered) -> tuple[_Offered, Counter[str]]:
    keep, reasons = reader.select(offered.index)
    dropped = offered.dropped + Counter(reasons)
    if keep.all():
        return offered, dropped
    firsts = np.concatenate([[0], np.cumsum([len(w) for w in offered.windows])])
    sources, windows = [], []
    for source, offer, first in zip(offered.sources, offered.windows, firsts[:-1], strict=True):
        rows = np.flatnonzero(keep[first : first + len(offer)])
        if len(rows):
            sources.append(source)
            windows.append(offer.take(rows))
    return _Offered(sources, windows, index_of(sources, windows), dropped), dropped


def _write_signals(
    reader: Reader,
    chosen: _Offered,
    staging: Path,
    run: Callable[..., Any],
    kept_before: KeptReads | None,
    seen: SeenSamples,
    problems: _Problems,
    dropped: Counter[str],
    progress: bool,
) -> tuple[dict[str, NDArray[Any]], Index, dict[str, str], FrameFile]:
    """Writes the frames; returns gain, offset and statistics, the index of what was kept, and hashes of the sources."""
    gains, offsets, statistics, kept = [], [], [], []
    hashes: dict[str, str] = {}
    read, pairs = partial(_signals_or_reason, reader), list(zip(chosen.sources, chosen.windows, strict=True))
    results = run(read, pairs) if kept_before is None else kept_before.results(run, read, pairs)
    first = 0
    with FrameFile(staging / "frames.npy", np.dtype(reader.stored_as), len(chosen.index)) as file:
        for what in with_progress(
            zip(chosen.sources, chosen.windows, results, strict=True),
            len(chosen.sources),
            f"{reader.name}: signals",
            progress,
        ):
            for source, windows, result in _apart_where_bad(reader, *what):
                begin, first = first, first + len(windows)
                if isinstance(result, str):
                    problems.note(source.record, result)
                    continue
                signals, source_hashes = result
                hashes |= source_hashes
                of_each = frame_statistics(signals.stored)
                good = _without_bad_frames(reader, source, windows, signals, of_each, seen, problems, dropped)
                if not len(good):
                    continue
                whole = len(good) == len(windows)
                file.append(signals.stored if whole else signals.stored[good])
                gains.append(signals.gain[good])
                offsets.append(signals.offset[good])
                statistics.append(of_each[good])
                kept.append(begin + good)
    if not kept:
        raise _no_frame(reader, dropped, problems)
    arrays: dict[str, NDArray[Any]] = {
        "gain": np.concatenate(gains).astype(np.float32),
        "offset": np.concatenate(offsets).astype(np.float32),
        "statistics": np.concatenate(statistics),
    }
    return arrays, chosen.index.of_rows(np.concatenate(kept)), hashes, file


def _apart_where_bad(
    reader: Reader, source: Source, windows: Windows, result: Read
) -> Iterator[tuple[Source, Windows, Read]]:
    """What was read of a source; record by record where it stands for several and one of them is bad."""
    if isinstance(result, tuple) or len(source.names) == 1:
        yield source, windows, result
        return
    for single in reader.apart(source):
        windows = reader.windows(single)
        yield single, windows, _signals_or_reason(reader, (single, windows))


def _without_bad_frames(
    reader: Reader,
    source: Source,
    windows: Windows,
    signals: Signals,
    statistics: NDArray[np.float64],
    seen: SeenSamples,
    problems: _Problems,
    dropped: Counter[str],
) -> NDArray[np.int64]:
    """Positions of the frames that are whole and not a flat line; none where a lead has no such frame.

    A record with such a lead is a problem, and left out as a whole: each lead then has the same records. So is a record
    with the samples of an earlier one, unless the publisher ships such.
    """
    if dead := dead_leads(reader, source, windows, signals, statistics):
        problems.note(source.record, dead[0])
        return np.zeros(0, np.int64)
    missing, flat = unusable_frames(reader, signals, statistics)
    good = np.flatnonzero(~missing & ~flat)
    tolerant = reader.tolerates_repeats and problems.on_error == "stop"
    if len(good) and (same := seen.problem(source, windows, signals, tolerant)):
        problems.note(source.record, same)
        return np.zeros(0, np.int64)
    for bad, what in ((missing, MISSING), (flat, FLAT)):
        if bad.any():
            dropped[what] += int(bad.sum())
    return good


def _write_rest(
    reader: Reader,
    staging: Path,
    frames: FrameFile,
    index: Index,
    arrays: dict[str, NDArray[Any]],
    sources: Mapping[str, str],
    seen: SeenSamples,
    dropped: Counter[str],
    problems: _Problems,
    on_error: OnError,
) -> None:
    per_patient = reader.split(index, 0)
    split = per_patient[index.patients]
    arrays |= {"patients": index.patients, "labels": index.labels, "leads": index.leads, "split": split}
    if index.times is not None:
        arrays["times"] = index.times
    arrays |= {f"domain_{name}": codes for name, (codes, _) in index.domains.items()}
    of_file, of_frames = frames.sums()
    records = {"frames.npy": FileRecord((staging / "frames.npy").stat().st_size, of_file)}
    for name, array in arrays.items():
        content = npy_bytes(array)
        (staging / f"{name}.npy").write_bytes(content)
        records[f"{name}.npy"] = FileRecord(len(content), sha256(content).hexdigest())
    write_index(staging / INDEX, index, split, reader.classes, reader.lead_names)
    (staging / SOURCES).write_text(json.dumps(dict(sorted(sources.items())), indent=0) + "\n", encoding="utf-8")
    declared = DATASETS.declared(reader.name)
    hashes = {name: array_sha256(array) for name, array in arrays.items() if name not in ("split", "statistics")}
    hashes["frames"] = of_frames
    own = _of_declared(reader, index)
    content_hash = hash_of(arrays=hashes, classes=reader.classes, leads=reader.lead_names, unit=reader.unit, **own)
    manifest = Manifest(
        format_version=FORMAT_VERSION,
        name=reader.name,
        reader_version=reader.version,
        options=reader.chosen,
        on_error=on_error,
        unit=reader.unit,
        classes=reader.classes,
        lead_names=reader.lead_names,
        patient_names=index.patient_names,
        frames=len(index),
        counts=count_table(index.labels, split, reader.classes),
        dropped=dict(sorted(dropped.items())),
        skipped=tuple(problems.skipped),
        notes=(*reader.notes(index, per_patient), *seen.note()),
        files={
            path.name: records.get(path.name) or FileRecord(path.stat().st_size, file_sha256(path))
            for path in sorted(staging.iterdir())
        },
        content_hash=content_hash,
        data_hash=frames_hash(content_hash, array_sha256(split), "none"),
        samples=frames.samples,
        sampling_rate=reader.sampling_rate,
        frame_seconds=frames.samples / reader.sampling_rate if reader.sampling_rate else None,
        domains={name: names for name, (_, names) in index.domains.items()},
        given_split=reader.given_split,
        whole_moments=reader.keeps_channels_together,
        fingerprint=declared.fingerprint if declared else None,
        info=asdict(_info_of(reader)) if declared else None,
    )
    write_file(staging / MANIFEST, manifest.to_json())


def _info_of(reader: Reader) -> DatasetInfo:
    """What is known of a declared data set now that it has been read."""
    return replace(DATASETS[reader.name], classes=len(reader.classes), simultaneous_leads=len(reader.lead_names))


def _of_declared(reader: Reader, index: Index) -> dict[str, Any]:
    """What else the tasks of a declared data set depend on; of built-in sets it never changes."""
    if reader.name not in DATASETS.added:
        return {}
    info = DATASETS[reader.name]
    domains = {name: names for name, (_, names) in index.domains.items()}
    return {"terms": info.terms, "reference": info.reference_lead, "domains": domains}


def _by_key(reader: Reader, files: Iterable[Path]) -> dict[str, Path]:
    return {reader.file_key(file): file for file in files}


def _remember_files(
    reader: Reader, staging: Path, data_root: Path | None, before: Mapping[str, State], files: Mapping[str, Path]
) -> None:
    """Writes down how the files are that frames were made from.

    Raises:
        BadInput: one of them has changed meanwhile.
    """
    after = states_of(files)
    for key, state in before.items():
        if after.get(key) != state:
            raise BadInput(f"{shorten(files[key])}: has changed while {reader.name} was made from it; start again")
    remember(staging, data_root, after)


def _no_frame(reader: Reader, dropped: Counter[str], problems: _Problems) -> BadInput:
    reasons = [f"{count:,} frames dropped for {reason}" for reason, count in sorted(dropped.items())]
    if problems.skipped:
        reasons.append(f"records skipped: {len(problems.skipped):,}, the first one for {problems.skipped[0][1]}")
    why = ", ".join(reasons) or "the records hold nothing that can be labelled"
    return BadInput(f"{reader.name}: no usable frame; {why}")
