"""Make a prepared folder: read records (in parallel), write frames, then their table and the manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.clipping import clipping_notes
from clops_sweep.data.declared.header_dates import with_header_dates
from clops_sweep.data.files.arrays import bytes_of, npy_header
from clops_sweep.data.files.folder import appearing_folder, is_file, one_sentence, shorten, write_file
from clops_sweep.data.files.hashes import array_sha256, file_sha256, hash_of, npy_sha256
from clops_sweep.data.files.progress import with_progress
from clops_sweep.data.files.units import CONVERTED
from clops_sweep.data.heart_rates import HeartRates
from clops_sweep.data.left_out import sentences, with_totals
from clops_sweep.data.prepared.earlier_editions import mark_unused, place_of_earlier
from clops_sweep.data.prepared.frame_table import FrameColumns
from clops_sweep.data.prepared.freshness import State, remember, states_of
from clops_sweep.data.prepared.listing import listing_hash
from clops_sweep.data.prepared.manifest import (
    FORMAT_VERSION,
    FRAMES,
    INDEX,
    MANIFEST,
    DomainFacts,
    FileRecord,
    Manifest,
    frames_hash,
    rows_per_frame,
    valid_manifest,
)
from clops_sweep.data.prepared.record_pool import record_pool
from clops_sweep.data.preparing.reading import Unusable, records_read
from clops_sweep.data.preparing.record_problems import Problems, named_once
from clops_sweep.data.recording_facts import Facts
from clops_sweep.data.records import Index, OnError, Source, Windows
from clops_sweep.data.same_samples import SeenFrames, SeenSamples
from clops_sweep.data.scales import (
    channel_scale_notes,
    domain_scale_notes,
    ecg_scale_notes,
    scale_notes,
    spans_of,
    usual_scale_notes,
)
from clops_sweep.data.sentinels import sentinel_notes
from clops_sweep.data.sets.data_set import DataSet, Run
from clops_sweep.data.shortcuts import padding_note, shortcut_notes
from clops_sweep.data.splits.fixed_folds import FixedFolds
from clops_sweep.data.usual_rates import rate_notes
from clops_sweep.errors import UsageError, listed, several

_MOST_NOTES: Final = 100
"""Most different notes on recordings that a manifest lists."""


def make_prepared_folder(
    data: DataSet,
    folder: Path,
    data_root: Path | None,
    *,
    progress: bool,
    on_error: OnError,
    workers: int | None,
) -> Path | None:
    """Prepare a data set into `folder`, which appears whole or not at all.

    Returns:
        The folder of the earlier edition that it replaces; None if that is not kept, see `earlier_editions`.

    Raises:
        UsageError: no record, a record that cannot be read (under `stop`), or a folder that cannot be written.
    """
    with one_sentence(data_root or folder):
        before = states_of({data.file_key(file): file for file in data.tables(data_root)})
        records = data.find(data_root)
        tables = data.tables(data_root)
    listing: str | None = None
    if data.checks_files_on_opening and isinstance(records, list):
        listing = listing_hash(data.common, records, data.file_key)
    problems = Problems(on_error, tolerant=on_error == "stop")
    sources = named_once(records, problems) if isinstance(records, list) else records
    many = len(sources) if isinstance(sources, list) else None
    replaced = valid_manifest(folder)
    kept: Path | None = None

    def place_of_old() -> Path | None:
        nonlocal kept
        kept = place_of_earlier(folder, replaced, manifest)
        return kept

    with (
        appearing_folder(folder, place_of_old) as staging,
        record_pool(data.name, many or 0, workers if data.parallel else 1) as run,
    ):
        made = _Made()
        with open(staging / FRAMES, "xb") as file:
            shown = with_progress(data.select(sources, run), many, f"preparing {data.name}", progress)
            columns = _write_frames(data, shown, run, problems, file, made)
        files = set(tables)
        if isinstance(records, list):
            for source in records:  # including records without frames: if their files change, the set is prepared again
                files.update(source.files)
        keyed = {data.file_key(file): file for file in files}
        sums = {data.file_key(path): sha256 for path, sha256 in made.hashes.items()}
        for key, file_of_key in keyed.items():
            if key not in sums and is_file(file_of_key):
                sums[key] = file_sha256(file_of_key)
        columns.write(staging / INDEX, data.common.classes, data.common.channels)
        manifest = _manifest(data, staging, columns, sums, made, problems).with_equal_code(replaced)
        write_file(staging / MANIFEST, manifest.to_json())
        if data.checks_files_on_opening:
            states = _unchanged(data, before, {key: keyed[key] for key in sums})
            remember(staging, data.name, data.root, states, listing)
        mark_unused(staging, manifest, folder, replaced)
    return kept


@dataclass
class _Made:
    """Collected while frames are written.

    Attributes:
        hashes: SHA-256 of the files that were read.
        dropped: number of frames left out, by reason.
        recordings: number of the recordings that were read, by column and value of domains.
        missing: number of frames with missing samples, by channel.
        notes: notes for the user, one sentence each.
        shape: number of stored rows, and samples of each.
        folds: the given folds of people.
        rates: the sampling rates that were read, by column and value of domains; the column "" has all.
        unusable: number of frames left out, by column, value and reason.
    """

    hashes: dict[Path, str] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    recordings: dict[str, Counter[str]] = field(default_factory=dict)
    missing: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    shape: tuple[int, int] = (0, 0)
    folds: tuple[FixedFolds, ...] = ()
    rates: dict[str, dict[str, set[float]]] = field(default_factory=dict)
    unusable: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)

    def count_unusable(self, windows: Windows, unusable: Unusable, rows_of_frame: int) -> None:
        """Count the unusable frames and rates of a source by domain."""
        for column, value in {**windows.domains, "": ""}.items():
            names = [value] if isinstance(value, str) else list(value)
            rates = self.rates.setdefault(column, {})
            for name in names:
                rates.setdefault(name, set()).add(windows.rate)
            of_column = self.unusable.setdefault(column, {})
            for reason, of_reason in unusable.items():
                if not of_reason.any():
                    continue
                sizes = windows.sizes if len(names) > 1 and windows.sizes is not None else [len(windows)]
                of_rows = np.repeat(np.array(names, object), sizes)[of_reason]
                for name, count in Counter(of_rows.tolist()).items():
                    of_column.setdefault(name, Counter())[reason] += count // rows_of_frame

    def by_domain(self) -> dict[str, dict[str, DomainFacts]]:
        """Return what was read of each domain, by column."""
        facts: dict[str, dict[str, DomainFacts]] = {}
        for column, of_column in self.rates.items():
            facts[column] = {}
            for name, rates in sorted(of_column.items()):
                dropped = self.unusable[column].get(name, Counter())
                facts[column][name] = DomainFacts(tuple(sorted(rates)), dict(sorted(dropped.items())))
        return facts


def _write_frames(
    data: DataSet, sources: Iterable[Source], run: Run, problems: Problems, file: IO[bytes], made: _Made
) -> FrameColumns:
    """Write the .npy file of the frames without missing samples or flat lines, and return their columns."""
    dtype = np.dtype(data.common.stored_as)
    file.write(npy_header(dtype, made.shape))  # numpy pads it for many digits, so that the real shape fits in
    gains = []
    offsets = []
    statistics = []
    kept = []
    windows = []
    first = 0
    seen = SeenSamples()
    is_declared = data.recorded_info() is not None
    seen_frames = SeenFrames(len(data.common.channels) if data.rules.whole_moments else 1)
    heart_rates = HeartRates(data.common.channels, data.common.units)
    rows_of_frame = rows_per_frame(DATASETS[data.name], data.common.channels) if data.rules.whole_moments else 1
    noted = dict[str, list[str]]()
    rates = dict[float, list[str]]()
    facts = list[Facts]()
    for source, read, unusable in records_read(data, sources, run, problems, seen):
        frames = read.frames
        made.hashes |= read.hashes
        made.dropped.update(frames.windows.dropped)
        for column, domain in frames.windows.domains.items():
            made.recordings.setdefault(column, Counter()).update([domain] if isinstance(domain, str) else domain)
        made.missing.update(data.common.channels[lead] for lead in frames.windows.leads[read.missing])
        if is_declared:
            made.count_unusable(frames.windows, unusable, rows_of_frame)
        bad = np.zeros(len(frames), bool)
        for reason, of_reason in unusable.items():
            if of_reason.any():
                made.dropped[reason] += int(of_reason.sum()) // rows_of_frame
                bad |= of_reason
        if bad.all():
            made.notes = [f"{source.place} {note}" for note in frames.notes] or made.notes
            continue
        for note in dict.fromkeys(frames.notes):
            noted.setdefault(note, []).extend(source.names)
        rates.setdefault(frames.windows.rate, []).extend(source.names)
        if frames.facts is not None:
            facts.append(frames.facts)
        good = np.flatnonzero(~bad)
        rows = good if bad.any() else slice(None)
        stored = np.asarray(frames.stored[rows], dtype)
        file.write(bytes_of(stored))
        if is_declared:
            seen_frames.add(stored, frames.windows.leads[rows])
            heart_rates.add(stored, good, frames.windows)
        made.shape = made.shape[0] + len(good), frames.stored.shape[1]
        gains.append(frames.gain[rows])
        offsets.append(frames.offset[rows])
        statistics.append(read.statistics[rows])
        kept.append(first + good)
        windows.append((source.names, frames.windows))
        first += len(frames)
    if not kept:
        raise _no_frame(data, made, problems)
    file.seek(0)
    file.write(npy_header(dtype, made.shape))
    index = Index.of(windows).of_rows(np.concatenate(kept))
    on_dates = ""
    if data.common.dates_of_headers:
        index, on_dates = with_header_dates(index)
    left_out = {omission.reason.text: omission.count for omission in data.common.left_out}
    data.check(index, {**made.dropped, **left_out}, facts)
    gain = np.concatenate(gains).astype(np.float32)
    offset = np.concatenate(offsets).astype(np.float32)
    per_patient = data.split(index, 0)
    made.folds, of_folds = data.fixed_folds(index)
    made.notes = [*data.notes(index, per_patient), *of_folds, *seen.note()]
    if is_declared and not seen.of_others:
        made.notes += seen_frames.note(index.patients, index.patient_names)
    made.notes += [on_dates] if on_dates else []
    made.notes += _counted(noted)
    if is_declared:
        made.notes += _notes_on_rates(rates, data.common.windowing.rate)
        seconds = data.frame_seconds if data.common.windowing.window is None else None
        made.notes += rate_notes(rates, data.common.channels, data.common.units, seconds)
        made.notes += _notes_on_flat_channels(index, np.concatenate(statistics), data.common.channels)
    of_sentinels = sentinel_notes((of_source.sentinels for of_source in facts), data.common.channels)
    made.notes += of_sentinels
    recordings = sum(len(of_source.flat) for of_source in facts)
    made.notes += clipping_notes((of_source.clipped for of_source in facts), recordings, data.common.channels)
    if is_declared and not of_sentinels:  # values such as -9999 are no scale
        spans = spans_of(np.concatenate(statistics), gain)
        made.notes += usual_scale_notes(spans, index.leads, data.common.channels, data.common.units)
        if DATASETS[data.name].normalize == "none":
            made.notes += channel_scale_notes(spans, index.leads, data.common.channels, data.common.units)
        names = dict(enumerate(index.record_names))
        of_recordings = spans, index.leads, index.records
        made.notes += scale_notes(*of_recordings, names, data.common.channels)
        made.notes += ecg_scale_notes(*of_recordings, names, data.common.channels, data.common.units)
        columns = {**index.domains, **index.groups}
        made.notes += domain_scale_notes(*of_recordings, columns, data.common.channels, data.common.units)
        made.notes += heart_rates.notes(index.domains)
    if facts:
        made.notes += [*padding_note(facts), *shortcut_notes(facts, data.common.classes, data.common.units)]
    return FrameColumns(index, gain, offset, np.concatenate(statistics), per_patient[index.patients])


def _counted(noted: Mapping[str, Sequence[str]]) -> list[str]:
    """Return notes with the number of their recordings; instead of notes beyond `_MOST_NOTES`, their number.

    Recordings that were converted from another unit are named.
    """
    notes = list[str]()
    rest = 0
    for note, names in noted.items():
        if len(notes) == _MOST_NOTES:
            rest += len(names)
            continue
        which = f" ({listed(names)})" if note.startswith(CONVERTED) else ""
        notes.append(f"{several(len(names), 'recording')}{which}: {note}")
    return [*notes, f"{several(rest, 'recording')}: further notes of other words"] if rest else notes


def _notes_on_rates(rates: Mapping[float, Sequence[str]], target: float | None) -> list[str]:
    """Return a note for each rate of recordings that is not that of the frames, if recordings have several rates."""
    if target is None or len(rates) < 2:
        return []
    notes = []
    for rate, names in rates.items():
        if rate != target:
            many = several(len(names), "recording")
            notes.append(f"{many} of {rate:g} Hz resampled to {target:g} Hz: {listed(names)}")
    return notes


def _notes_on_flat_channels(index: Index, statistics: NDArray[Any], channels: Sequence[str]) -> list[str]:
    """Return a note for each channel that is flat in some frames, with the names of their recordings.

    Args:
        index: the frames.
        statistics: minimum and maximum of each frame, in the first two columns.
        channels: names of the channels.
    """
    notes = []
    is_flat = statistics[:, 0] == statistics[:, 1]
    for code in np.unique(index.leads[is_flat]).tolist():
        rows = np.flatnonzero(is_flat & (index.leads == code))
        names = [index.record_names[record] for record in np.unique(index.records[rows]).tolist()]
        where = several(len(names), "recording")
        notes.append(f"channel {channels[code]} is flat in {several(len(rows), 'frame')} of {where}: {listed(names)}")
    return notes


def _no_frame(data: DataSet, made: _Made, problems: Problems) -> UsageError:
    reasons = [f"{count:,} frames dropped for {reason}" for reason, count in sorted(made.dropped.items())]
    reasons += sentences(data.common.left_out)
    if problems.skipped:
        reasons.append(f"records skipped: {len(problems.skipped):,}, the first one for {problems.skipped[0][1]}")
    why = ", ".join([*reasons, *made.notes]) or "the records hold nothing that can be labelled"
    return UsageError(f"{data.name}: no usable frame; {why}{_of_labels(data)}")


def _of_labels(data: DataSet) -> str:
    """Return what maps labels that are in no class, if there are any."""
    unused = sorted({omission.reason.label for omission in data.common.left_out if omission.reason.label})
    if not unused:
        return ""
    classes = data.common.classes
    example = ", ".join(f"{label!r}: {name!r}" for label, name in zip(unused, classes, strict=False))
    return f"; classes has {shorten(', '.join(classes))}: give the class of each label, such as classes={{{example}}}"


def _manifest(
    data: DataSet, staging: Path, columns: FrameColumns, sources: Mapping[str, str], made: _Made, problems: Problems
) -> Manifest:
    common = data.common
    index = columns.index
    dtype = np.dtype(common.stored_as).str
    hashes = {name: array_sha256(array) for name, array in _hashed_arrays(columns).items()}
    hashes["frames"] = str(npy_sha256(staging / FRAMES, dtype, made.shape))
    domains = {name: names for name, (_, names) in index.domains.items()}
    info = data.recorded_info()
    own = dict[str, Any]()
    if info is not None:  # the tasks depend on this too
        own = {"terms": info.terms, "reference": info.reference_lead, "domains": domains}
    if made.folds:
        own["folds"] = [asdict(folds) for folds in made.folds]
    content_hash = hash_of(arrays=hashes, classes=common.classes, leads=common.channels, unit=common.units, **own)
    sizes = {name: (staging / name).stat().st_size for name in (FRAMES, INDEX)}
    return Manifest(
        format_version=FORMAT_VERSION,
        name=data.name,
        reader_version=data.rules.version,
        options=data.chosen,
        on_error=problems.on_error,
        unit=common.units,
        classes=common.classes,
        lead_names=common.channels,
        patient_names=index.patient_names,
        frames=len(index),
        dropped=dict(sorted(made.dropped.items())),
        left_out=with_totals(common.left_out, made.recordings),
        missing=dict(made.missing),
        skipped=tuple(problems.skipped),
        notes=tuple(made.notes),
        files={
            FRAMES: FileRecord(sizes[FRAMES], hashes["frames"], (dtype, made.shape)),
            INDEX: FileRecord(sizes[INDEX], file_sha256(staging / INDEX)),
        },
        sources=dict(sorted(sources.items())),
        content_hash=content_hash,
        data_hash=frames_hash(content_hash, array_sha256(columns.split), "none"),
        samples=made.shape[1],
        sampling_rate=data.sampling_rate,
        frame_seconds=data.frame_seconds,
        domains=domains,
        groups={name: names for name, (_, names) in index.groups.items()},
        multi_label=index.labels.ndim == 2,
        dated=index.times is not None,
        given_split=data.given_split,
        whole_moments=data.rules.whole_moments,
        fingerprint=data.fingerprint,
        info=info,
        folds=made.folds,
        by_domain=made.by_domain(),
    )


def _hashed_arrays(columns: FrameColumns) -> dict[str, NDArray[Any]]:
    """Return the arrays that the content hash depends on, beside the frames, by name."""
    index = columns.index
    arrays = {
        "gain": columns.gain,
        "offset": columns.offset,
        "patients": index.patients,
        "labels": index.labels,
        "leads": index.leads,
    }
    if index.times is not None:
        arrays["times"] = index.times
    for name, (codes, _) in index.domains.items():
        arrays[f"domain_{name}"] = codes
    return arrays


def _unchanged(data: DataSet, before: Mapping[str, State], files: Mapping[str, Path]) -> dict[str, State]:
    """Return the state of the source files; UsageError if one has changed since the preparation began."""
    after = states_of(files)
    for key, state in before.items():
        if after.get(key) != state:
            what = "has changed" if key in after else "has vanished"
            raise UsageError(f"{shorten(files.get(key, key))}: {what} while {data.name} was made from it; start again")
    return after
