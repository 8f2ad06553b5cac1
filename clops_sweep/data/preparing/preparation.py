"""Make a prepared folder: read records (in parallel), write frames, then split and manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from clops_sweep.data.declared.data_set import DataSet, Run
from clops_sweep.data.files.folder import appearing_folder, is_file, one_sentence
from clops_sweep.data.files.hashes import file_sha256
from clops_sweep.data.files.progress import with_progress
from clops_sweep.data.prepared.frame_table import FrameColumns
from clops_sweep.data.prepared.freshness import states_of
from clops_sweep.data.prepared.manifest import FRAMES
from clops_sweep.data.prepared.record_pool import record_pool
from clops_sweep.data.preparing.frame_file import FrameFile
from clops_sweep.data.preparing.prepared_files import by_key, remember_files, write_rest
from clops_sweep.data.preparing.reading import records_read
from clops_sweep.data.preparing.record_problems import Problems, named_once
from clops_sweep.data.records import Index, OnError, Source
from clops_sweep.data.same_samples import SeenSamples
from clops_sweep.errors import UsageError, several


def make_prepared_folder(
    data: DataSet,
    folder: Path,
    data_root: Path | None,
    *,
    progress: bool,
    on_error: OnError,
    workers: int | None,
) -> None:
    """Prepare a data set into `folder`, which appears whole or not at all.

    Raises:
        UsageError: no record, a record that cannot be read (under `stop`), or a folder that cannot be written.
    """
    with one_sentence(data_root or folder):
        before = {} if data.built_in else states_of(by_key(data, data.tables(data_root)))
        found = data.find(data_root)
        tables = data.tables(data_root)
    problems = Problems(on_error, tolerant=on_error == "stop")
    sources = named_once(found, problems) if isinstance(found, list) else found
    many = len(sources) if isinstance(sources, list) else None
    with (
        appearing_folder(folder) as staging,
        record_pool(data.name, many or 0, workers if data.parallel else 1) as run,
    ):
        made = _Made()
        with FrameFile(staging / FRAMES, np.dtype(data.common.stored_as)) as file:
            shown = with_progress(data.select(sources, run), many, data.name, progress)
            columns = _write_frames(data, shown, run, problems, file, made)
        # including records without frames: if their files change, the set is prepared again
        listed = found if isinstance(found, list) else ()
        keyed = by_key(data, {*(path for source in listed for path in source.files), *tables})
        sums = {data.file_key(path): sha256 for path, sha256 in made.hashes.items()}
        sums |= {key: file_sha256(path) for key, path in keyed.items() if key not in sums and is_file(path)}
        write_rest(data, staging, file, columns, sums, made.notes, made.dropped, problems)
        if not data.built_in:
            remember_files(data, staging, data_root, before, {key: keyed[key] for key in sums})


@dataclass
class _Made:
    """Collected while frames are written.

    Attributes:
        hashes: SHA-256 of the files that were read.
        dropped: number of frames left out, by reason.
        notes: notes for the user, one sentence each.
    """

    hashes: dict[Path, str] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


def _write_frames(
    data: DataSet, sources: Iterable[Source], run: Run, problems: Problems, file: FrameFile, made: _Made
) -> FrameColumns:
    """Write the frames without missing samples or flat lines, and return their columns."""
    gains, offsets, statistics, kept, windows = [], [], [], [], []
    first, seen, noted = 0, SeenSamples(), Counter[str]()
    for source, read, unusable in records_read(data, sources, run, problems, seen):
        frames = read.frames
        made.hashes |= read.hashes
        made.dropped.update(frames.windows.dropped)
        noted.update(frames.notes)
        bad = np.zeros(len(frames), bool)
        for reason, of_reason in unusable.items():
            if of_reason.any():
                made.dropped[reason] += int(of_reason.sum())
                bad |= of_reason
        if bad.all():
            continue
        good = np.flatnonzero(~bad)
        rows = good if bad.any() else slice(None)
        file.append(frames.stored[rows])
        gains.append(frames.gain[rows])
        offsets.append(frames.offset[rows])
        statistics.append(read.statistics[rows])
        kept.append(first + good)
        windows.append((source.names, frames.windows))
        first += len(frames)
    made.dropped.update(data.common.left_out)
    if not kept:
        raise _no_frame(data, made.dropped, problems)
    index = Index.of(windows).of_rows(np.concatenate(kept))
    if problem := data.too_few(index, made.dropped):
        raise UsageError(problem)
    gain, offset = (np.concatenate(each).astype(np.float32) for each in (gains, offsets))
    per_patient = data.split(index, 0)
    made.notes = [*data.notes(index, per_patient), *seen.note()]
    made.notes += [f"{several(count, 'recording')}: {note}" for note, count in noted.items()]
    return FrameColumns(index, gain, offset, np.concatenate(statistics), per_patient[index.patients])


def _no_frame(data: DataSet, dropped: Counter[str], problems: Problems) -> UsageError:
    reasons = [f"{count:,} frames dropped for {reason}" for reason, count in sorted(dropped.items())]
    if problems.skipped:
        reasons.append(f"records skipped: {len(problems.skipped):,}, the first one for {problems.skipped[0][1]}")
    why = ", ".join(reasons) or "the records hold nothing that can be labelled"
    return UsageError(f"{data.name}: no usable frame; {why}")
