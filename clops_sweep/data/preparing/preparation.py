"""How a prepared folder is made: windows of all records, caps, signals (in parallel), split, manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared.data_set import DataSet
from clops_sweep.data.files.folder import appearing_folder, is_file, one_sentence
from clops_sweep.data.files.hashes import file_sha256
from clops_sweep.data.files.progress import with_progress
from clops_sweep.data.prepared.freshness import states_of
from clops_sweep.data.prepared.manifest import FRAMES
from clops_sweep.data.prepared.record_pool import record_pool
from clops_sweep.data.preparing.frame_file import FrameFile
from clops_sweep.data.preparing.prepared_files import by_key, remember_files, write_rest
from clops_sweep.data.preparing.reading import (
    FLAT,
    MISSING,
    apart_where_bad,
    dead_leads,
    read_frames,
    unusable_frames,
    windows_or_reason,
)
from clops_sweep.data.preparing.record_problems import Problems, with_names, without_duplicates
from clops_sweep.data.records import Index, OnError, Signals, Source, Windows
from clops_sweep.data.same_samples import SeenSamples
from clops_sweep.errors import BadInput

_Columns = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float64]]


def make_prepared_folder(
    data: DataSet,
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
        declared = not data.built_in
        before = states_of(by_key(data, data.tables(data_root))) if declared else {}
        sources = data.find(data_root)
        tables = data.tables(data_root)
    workers = workers if data.parallel else 1
    problems = Problems(on_error)
    seen = SeenSamples()
    sources = without_duplicates(with_names(sources, problems), problems)
    with (
        appearing_folder(folder) as staging,
        record_pool(data.name, len(sources), workers) as run,
    ):
        offered = _collect_windows(data, sources, run, problems, progress)
        chosen, dropped = _select(data, offered)
        _require_enough(data, chosen.index, dropped)
        columns, index, files, frames = _write_signals(data, chosen, staging, run, seen, problems, dropped, progress)
        _require_enough(data, index, dropped)
        # Also records without a frame: once they are others, the set is to be made again.
        keyed = by_key(data, {*(file for source in sources for file in source.files), *tables})
        found = {data.file_key(file): sha256 for file, sha256 in files.items()}
        found |= {key: file_sha256(file) for key, file in keyed.items() if key not in found and is_file(file)}
        write_rest(data, staging, frames, index, *columns, found, seen, dropped, problems, on_error)
        if declared:
            remember_files(data, staging, data_root, before, {key: keyed[key] for key in found})


@dataclass(frozen=True, eq=False)
class _Offered:
    """All windows of all readable records, and the same as one index."""

    sources: list[Source]
    windows: list[Windows]
    index: Index
    dropped: Counter[str]


def _collect_windows(
    data: DataSet, sources: list[Source], run: Callable[..., Any], problems: Problems, progress: bool
) -> _Offered:
    kept: list[Source] = []
    windows: list[Windows] = []
    dropped: Counter[str] = Counter()
    results = run(partial(windows_or_reason, data.common), sources)
    pairs = zip(sources, results, strict=True)
    for source, result in with_progress(pairs, len(sources), f"{data.name}: labels", progress):
        if isinstance(result, str):
            problems.note(source.record, result)
            continue
        dropped.update(result.dropped)
        if len(result):
            kept.append(source)
            windows.append(result)
    if not kept:
        raise _no_frame(data, dropped, problems)
    return _Offered(kept, windows, Index.of(kept, windows), dropped)


def _select(data: DataSet, offered: _Offered) -> tuple[_Offered, Counter[str]]:
    keep, reasons = data.select(offered.index)
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
    return _Offered(sources, windows, Index.of(sources, windows), dropped), dropped


def _write_signals(
    data: DataSet,
    chosen: _Offered,
    staging: Path,
    run: Callable[..., Any],
    seen: SeenSamples,
    problems: Problems,
    dropped: Counter[str],
    progress: bool,
) -> tuple[_Columns, Index, dict[Path, str], FrameFile]:
    """Writes the frames; returns gain, offset and statistics, the index of what was kept, and hashes of the sources."""
    gains, offsets, statistics, kept = [], [], [], []
    hashes: dict[Path, str] = {}
    pairs = list(zip(chosen.sources, chosen.windows, strict=True))
    first = 0
    with FrameFile(staging / FRAMES, np.dtype(data.common.stored_as), len(chosen.index)) as file:
        results = run(partial(read_frames, data.common), pairs)
        for what in with_progress(
            zip(chosen.sources, chosen.windows, results, strict=True),
            len(chosen.sources),
            f"{data.name}: signals",
            progress,
        ):
            for source, windows, result in apart_where_bad(data.common, *what):
                begin, first = first, first + len(windows)
                if isinstance(result, str):
                    problems.note(source.record, result)
                    continue
                signals, of_each = result.signals, result.statistics
                hashes |= result.hashes
                good = _without_bad_frames(data, source, windows, signals, of_each, seen, problems, dropped)
                if not len(good):
                    continue
                rows = slice(None) if len(good) == len(windows) else good
                file.append(signals.stored[rows])
                gains.append(signals.gain[rows])
                offsets.append(signals.offset[rows])
                statistics.append(of_each[rows])
                kept.append(begin + good)
    if not kept:
        raise _no_frame(data, dropped, problems)
    gain, offset = (np.concatenate(each).astype(np.float32) for each in (gains, offsets))
    return (gain, offset, np.concatenate(statistics)), chosen.index.of_rows(np.concatenate(kept)), hashes, file


def _without_bad_frames(
    data: DataSet,
    source: Source,
    windows: Windows,
    signals: Signals,
    statistics: NDArray[np.float64],
    seen: SeenSamples,
    problems: Problems,
    dropped: Counter[str],
) -> NDArray[np.int64]:
    """Positions of the frames that are whole and not a flat line; none where a lead has no such frame.

    A record with such a lead is a problem, and left out as a whole: each lead then has the same records. So is a record
    with the samples of an earlier one, unless the publisher ships such.
    """
    if dead := dead_leads(data, source, windows, signals, statistics):
        problems.note(source.record, dead[0])
        return np.zeros(0, np.int64)
    missing, flat = unusable_frames(data, signals, statistics)
    good = np.flatnonzero(~missing & ~flat)
    tolerant = data.rules.tolerates_repeats and problems.on_error == "stop"
    if len(good) and (same := seen.problem(source, windows, signals, tolerant)):
        problems.note(source.record, same)
        return np.zeros(0, np.int64)
    for bad, what in ((missing, MISSING), (flat, FLAT)):
        if bad.any():
            dropped[what] += int(bad.sum())
    return good


def _require_enough(data: DataSet, index: Index, dropped: Counter[str]) -> None:
    if problem := data.too_few(index, dropped):
        raise BadInput(problem)


def _no_frame(data: DataSet, dropped: Counter[str], problems: Problems) -> BadInput:
    reasons = [f"{count:,} frames dropped for {reason}" for reason, count in sorted(dropped.items())]
    if problems.skipped:
        reasons.append(f"records skipped: {len(problems.skipped):,}, the first one for {problems.skipped[0][1]}")
    why = ", ".join(reasons) or "the records hold nothing that can be labelled"
    return BadInput(f"{data.name}: no usable frame; {why}")
