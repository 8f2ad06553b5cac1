"""How a prepared folder is made: windows of all records, caps, signals (in parallel), split, manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from clops_sweep.data.declared.data_set import DataSet
from clops_sweep.data.files.folder import appearing_folder, is_file, one_sentence
from clops_sweep.data.files.hashes import file_sha256
from clops_sweep.data.files.progress import with_progress
from clops_sweep.data.prepared.frame_table import FrameColumns
from clops_sweep.data.prepared.freshness import states_of
from clops_sweep.data.prepared.manifest import FRAMES
from clops_sweep.data.prepared.record_pool import record_pool
from clops_sweep.data.preparing.frame_file import FrameFile
from clops_sweep.data.preparing.prepared_files import by_key, remember_files, write_rest
from clops_sweep.data.preparing.reading import apart_where_bad, looked_at, read_frames, windows_or_reason
from clops_sweep.data.preparing.record_problems import Problems, with_names, without_duplicates
from clops_sweep.data.records import Index, Offer, OnError, Source
from clops_sweep.data.same_samples import SeenSamples
from clops_sweep.errors import UsageError

_Result = TypeVar("_Result")


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
        UsageError: no record, a record that cannot be read (under `stop`), or a folder that cannot be written.
    """
    with one_sentence(data_root or folder):
        before = {} if data.built_in else states_of(by_key(data, data.tables(data_root)))
        sources = data.find(data_root)
        tables = data.tables(data_root)
    problems = Problems(on_error)
    sources = without_duplicates(with_names(sources, problems), problems)
    with (
        appearing_folder(folder) as staging,
        record_pool(data.name, len(sources), workers if data.parallel else 1) as run,
    ):
        going = _Preparation(data, problems, run, progress)
        offered, index = going.selected(going.offered(sources))
        with FrameFile(staging / FRAMES, np.dtype(data.common.stored_as), len(index)) as file:
            columns = going.written(offered, index, file)
        # Also records without a frame: once they are others, the set is to be made again.
        keyed = by_key(data, {*(file for source in sources for file in source.files), *tables})
        sums = {data.file_key(file): sha256 for file, sha256 in going.hashes.items()}
        sums |= {key: file_sha256(file) for key, file in keyed.items() if key not in sums and is_file(file)}
        write_rest(data, staging, file, columns, sums, going.notes, going.dropped, problems)
        if not data.built_in:
            remember_files(data, staging, data_root, before, {key: keyed[key] for key in sums})


class _Preparation:
    """A data set that is being prepared, and what was met on the way.

    Attributes:
        hashes: SHA-256 of the files that were read.
        dropped: frames that are left out, by reason.
        notes: what a user should know, one sentence each.
    """

    def __init__(self, data: DataSet, problems: Problems, run: Callable[..., Any], progress: bool) -> None:
        self._data, self._problems, self._run, self._progress = data, problems, run, progress
        self.hashes: dict[Path, str] = {}
        self.dropped: Counter[str] = Counter()
        self.notes: list[str] = []
        self._seen = SeenSamples()

    def offered(self, sources: list[Source]) -> list[Offer]:
        """All readable sources that have frames, with these."""
        found = []
        results = self._run(partial(windows_or_reason, self._data.common), sources)
        for source, result in self._shown(zip(sources, results, strict=True), len(sources), "labels"):
            if isinstance(result, str):
                self._problems.note(source.record, result)
                continue
            self.dropped.update(result.dropped)
            if len(result):
                found.append((source, result))
        if not found:
            raise _no_frame(self._data, self.dropped, self._problems)
        return found

    def selected(self, offered: list[Offer]) -> tuple[list[Offer], Index]:
        """Those frames that the data set's rules keep, and the same as one index."""
        index = Index.of(offered)
        keep, reasons = self._data.select(index)
        self.dropped += Counter(reasons)
        if not keep.all():
            ends = np.cumsum([len(windows) for _, windows in offered])
            rows = [np.flatnonzero(part) for part in np.split(keep, ends[:-1])]
            each = zip(offered, rows, strict=True)
            offered = [(source, windows.take(kept)) for (source, windows), kept in each if len(kept)]
            index = Index.of(offered)
        self._require_enough(index)
        return offered, index

    def written(self, offered: list[Offer], index: Index, file: FrameFile) -> FrameColumns:
        """Writes the frames that are whole and not a flat line; returns what is known of each.

        A record with a lead that has no such frame is a problem, and left out as a whole: each lead then has the same
        records. So is a record with the samples of an earlier one, unless the publisher ships such.
        """
        gains, offsets, statistics, kept = [], [], [], []
        tolerant = self._data.rules.tolerates_repeats and self._problems.on_error == "stop"
        first = 0
        results = self._run(partial(read_frames, self._data.common), offered)
        for (source, windows), result in self._shown(zip(offered, results, strict=True), len(offered), "signals"):
            for single, its, read in apart_where_bad(self._data.common, source, windows, result):
                begin, first = first, first + len(its)
                if isinstance(read, str):
                    self._problems.note(single.record, read)
                    continue
                self.hashes |= read.hashes
                wrong, unusable = looked_at(self._data, single, its, read, self._seen, tolerant)
                if wrong:
                    self._problems.note(single.record, wrong[0])
                    continue
                bad = np.zeros(len(its), bool)
                for reason, of_reason in unusable.items():
                    if of_reason.any():
                        self.dropped[reason] += int(of_reason.sum())
                        bad |= of_reason
                if bad.all():
                    continue
                good = np.flatnonzero(~bad)
                rows = good if bad.any() else slice(None)
                file.append(read.signals.stored[rows])
                gains.append(read.signals.gain[rows])
                offsets.append(read.signals.offset[rows])
                statistics.append(read.statistics[rows])
                kept.append(begin + good)
        if not kept:
            raise _no_frame(self._data, self.dropped, self._problems)
        index = index.of_rows(np.concatenate(kept))
        self._require_enough(index)
        gain, offset = (np.concatenate(each).astype(np.float32) for each in (gains, offsets))
        per_patient = self._data.split(index, 0)
        self.notes = [*self._data.notes(index, per_patient), *self._seen.note()]
        return FrameColumns(index, gain, offset, np.concatenate(statistics), per_patient[index.patients])

    def _shown(self, results: Iterable[_Result], many: int, what: str) -> Iterable[_Result]:
        return with_progress(results, many, f"{self._data.name}: {what}", self._progress)

    def _require_enough(self, index: Index) -> None:
        if problem := self._data.too_few(index, self.dropped):
            raise UsageError(problem)


def _no_frame(data: DataSet, dropped: Counter[str], problems: Problems) -> UsageError:
    reasons = [f"{count:,} frames dropped for {reason}" for reason, count in sorted(dropped.items())]
    if problems.skipped:
        reasons.append(f"records skipped: {len(problems.skipped):,}, the first one for {problems.skipped[0][1]}")
    why = ", ".join(reasons) or "the records hold nothing that can be labelled"
    return UsageError(f"{data.name}: no usable frame; {why}")
