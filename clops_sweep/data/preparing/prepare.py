"""Prepared data sets: prepared once, checked whenever they are opened, mapped from disk by every run.

A prepared folder holds `frames.npy` [n, samples], `index.parquet` (one row per frame) and `manifest.json` (with the
SHA-256 of the publisher's files). Splits of other seeds than 0 that need a solver are cached in `splits/`, by `prepare`
or when frames are first opened with them.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clops_sweep.arguments import named_arguments
from clops_sweep.data.catalog import OptionValue
from clops_sweep.data.files.hashes import array_sha256, hash_of
from clops_sweep.data.files.termination import terminated_like_interrupted
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.left_out import LeftOut, Reason, without_names
from clops_sweep.data.nameless_notes import leaks_without_names
from clops_sweep.data.prepared.commands import data_command, default_prepared_root
from clops_sweep.data.prepared.freshness import other_project, prepared_for
from clops_sweep.data.prepared.manifest import FRAMES, check_small_files, frames_hash, left_out
from clops_sweep.data.prepared.normalization import normalized_gain_offset
from clops_sweep.data.prepared.prepared_folder import (
    PreparedSet,
    mapped_frames,
    required_set,
)
from clops_sweep.data.prepared.prepared_split import make_splits, split_at_hand, split_of, within
from clops_sweep.data.prepared.verified_frames import array_written, check_array
from clops_sweep.data.preparing.still_equal import current_set, required_current_set
from clops_sweep.data.records import OnError
from clops_sweep.data.sets.data_set import DataSet
from clops_sweep.data.sets.named import data_set
from clops_sweep.data.shortcuts import shortcuts_of
from clops_sweep.errors import DamagedStore, UsageError, listed, one_line


@named_arguments
def prepare(
    name: str,
    *,
    prepared_root: Path,
    data_root: Path | None,
    progress: bool = False,
    on_error: OnError = "stop",
    options: Mapping[str, OptionValue] | None = None,
    workers: int | None = None,
    anew: bool = False,
    split_seeds: Collection[int] = (),
) -> PreparedSet:
    """Prepare the frames of a data set under `prepared_root`, unless they are complete and up to date.

    They are prepared again if they are damaged, of an older version, from other code or files than declared now, or
    made with other options than given here; a set with skipped records is kept. The folder appears atomically; a killed
    preparation starts again.

    Args:
        name: a data set of the catalogue.
        prepared_root: folder of prepared sets; nothing is written elsewhere.
        data_root: folder with the publisher's folder; not needed for generated data.
        progress: whether to show a progress bar on standard error.
        on_error: what to do about an unreadable record: `stop` with an error, or `skip` it, listed in the manifest.
        options: options of the data set that differ from their defaults; None accepts an existing set with any options.
        workers: number of processes that read records; by default one per available core.
        anew: whether to prepare an existing set again.
        split_seeds: split seeds to prepare: splits that need a solver are solved and cached in the prepared folder, or
            only in this process if the folder is read-only.

    Raises:
        UsageError: the data root or a file in it is missing or not as published; one sentence with the remedy.
    """
    data = data_set(name, options)
    prepared = _usable_set(data, prepared_root, data_root, any_options=options is None)
    with terminated_like_interrupted():
        if prepared is None or anew:
            from clops_sweep.data.preparing.preparation import make_prepared_folder

            folder = prepared_root / name
            if other := other_project(folder, name):
                print(f"{name}: replaces the frames that {prepared_for(other)}", file=sys.stderr)
            with _enough_memory(name):
                kept = make_prepared_folder(
                    data, folder, data_root, progress=progress, on_error=on_error, workers=workers
                )
            prepared = required_set(name, prepared_root, data_root)
            if kept is not None:
                print(f"{name}: {_of_kept_edition(kept, prepared)}", file=sys.stderr)
            array_written(prepared.folder, FRAMES, prepared.manifest.files[FRAMES])
        make_splits(prepared, split_seeds, progress)
    return prepared


def _of_kept_edition(kept: Path, prepared: PreparedSet) -> str:
    """Return what differs from the edition that was replaced, where that is kept, and how to remove it."""
    from clops_sweep.data.preparing.edition_changes import labels_changed

    changed = labels_changed(kept, prepared) or "the frames are others"
    size = sum(file.stat().st_size for file in kept.rglob("*") if file.is_file())
    remove = data_command("evict", kept.parent.name, prepared_root=kept.parent.parent)
    return (
        f"{changed}; the earlier edition, which runs have used, is kept for their reports in {kept.parent} "
        f"({size / 1e6:,.1f} MB); remove it if none is needed: {remove}"
    )


def _usable_set(data: DataSet, prepared_root: Path, data_root: Path | None, *, any_options: bool) -> PreparedSet | None:
    """Return the set as it is prepared; None if it is missing, damaged or outdated, or has other options."""
    try:
        prepared = current_set(data.name, prepared_root, data_root)
    except DamagedStore:
        return None
    if prepared is None:
        return None
    same_options = prepared.manifest.options == data.chosen
    return prepared if any_options or same_options else None


@contextmanager
def _enough_memory(name: str) -> Iterator[None]:
    """Raise a UsageError if the memory does not suffice to prepare a data set in the block."""
    try:
        yield
    except MemoryError as error:
        raise UsageError(
            f"dataset {name!r}: not enough memory to prepare it ({one_line(error) or 'MemoryError'}); cut "
            "shorter or fewer frames, or use a machine with more"
        ) from None


@named_arguments
def open_frames(
    name: str,
    *,
    prepared_root: str | Path | None = None,
    split_seed: int = 0,
    normalize: str = "none",
    leads: str = "single",
    split: str | None = None,
    validation: float | None = None,
    split_within: str = "people",
    stratify: str | None = None,
    data_root: str | Path | None = None,
) -> FrameSet:
    """Open a prepared data set, with its frames mapped read-only from disk.

    The sizes of all files and the content of all files except the frames are verified; the frames are verified if their
    file changed since the last check on this machine (`verified_frames`). A split that needs a solver is solved and
    cached in the prepared folder.

    Args:
        name: name of the data set.
        prepared_root: folder of prepared sets; by default that of the commands.
        split_seed: seed of the patient split.
        normalize: normalisation of each frame and channel: none, minmax or zscore.
        leads: ``single`` for one instance per lead, ``all`` for frames [leads, samples] of the times at which all leads
            were recorded. With one lead, both are equal.
        split: a fold of the patients, such as "fold:1/5"; by default the split of the data set.
        validation: share of the training patients for validation, if the publisher defines no validation set.
        split_within: ``people``, or ``time`` to split recordings of training and validation patients by time into three
            parts (`split_by_time`).
        stratify: a column of domains, such as "site", whose people are in every part in proportion, by class.
        data_root: folder to check files of a declared data set for changes; by default that of the file that declares
            it, if it has them, else that of the preparation.

    Raises:
        UsageError: the set is not prepared (names the command) or damaged, `normalize` is unknown, or the patients or
            recordings cannot be split as requested.
    """
    root = default_prepared_root() if prepared_root is None else Path(prepared_root)
    prepared = required_current_set(name, root, None if data_root is None else Path(data_root))
    manifest = prepared.manifest
    check_small_files(prepared.folder, manifest)
    check_array(prepared.folder, FRAMES, manifest.files[FRAMES])
    table = prepared.table
    frames = mapped_frames(prepared)
    gain, offset = normalized_gain_offset(normalize, table.gain, table.offset, table.statistics)
    of_people = split_of(prepared, split_seed, split, validation, stratify)
    split_codes = within(prepared, of_people, split_within)
    dropped = left_out(manifest)
    if manifest.skipped:
        dropped.append(LeftOut(Reason("records", "that cannot be read"), len(manifest.skipped)))
    domains = {}
    for axis, domain_names in manifest.domains.items():
        domains[axis] = (table.domain(axis), domain_names)
    single_leads = FrameSet(
        name=name,
        frames=frames,
        gain=gain,
        offset=offset,
        unit=manifest.unit if normalize == "none" else normalize,
        patients=table.patients,
        patient_names=manifest.patient_names,
        labels=table.labels,
        classes=manifest.classes,
        split=split_codes,
        leads=table.leads,
        lead_names=manifest.lead_names,
        times=table.times,
        data_hash=_hash_of_frames(prepared, split_codes, normalize, "single"),
        frame_seconds=manifest.frame_seconds,
        domains=domains,
        info=manifest.dataset_info(),
        recordings=table.recordings,
        start=table.start,
        left_out=without_names(dropped),
        shortcuts=tuple(shortcuts_of(manifest.notes)),
        prepared_hash=manifest.data_hash,
        leaks=tuple(leaks_without_names(manifest.notes)),
    )
    if leads == "single" or len(manifest.lead_names) == 1:
        return single_leads
    hash_of_all_leads = _hash_of_frames(prepared, split_codes, normalize, leads)
    return _all_leads(single_leads, _moments(prepared), hash_of_all_leads)


def _all_leads(frames: FrameSet, moments: NDArray[np.int64], data_hash: str) -> FrameSet:
    """Return instances that hold all leads, in the order of `lead_names`, from instances of single leads.

    Moments without a usable row of every lead are left out.

    Args:
        frames: instances of one row each.
        moments: the moment of each row, int64 [r], nondecreasing.
        data_hash: data hash of the result.

    Raises:
        UsageError: no moment is left, as in MIT-BIH, where one lead of each recording is read.
    """
    count = len(frames.lead_names)
    rows = np.arange(len(moments))
    is_regular = np.array_equal(moments, rows // count) and np.array_equal(frames.leads, rows % count)
    order = rows if is_regular else np.lexsort((frames.leads, moments))
    sizes = np.bincount(moments)
    complete = np.flatnonzero(sizes == count)
    if not len(complete):
        raise UsageError(
            f"dataset {frames.name!r}: leads = 'all': no recording has frames of all its leads at one time "
            f"({listed(frames.lead_names)}); expected leads = 'single'"
        )
    begins = np.concatenate([[0], np.cumsum(sizes)])
    positions = begins[complete][:, None] + np.arange(count)
    members = order[positions].astype(np.int64)
    first = members[:, 0]
    domains = {}
    for axis, (codes, names) in frames.domains.items():
        domains[axis] = (codes[first], names)
    return replace(
        frames,
        members=members,
        patients=frames.patients[first],
        labels=frames.labels[first],
        split=frames.split[first],
        leads=frames.leads[first],
        times=None if frames.times is None else frames.times[first],
        domains=domains,
        recordings=None if frames.recordings is None else frames.recordings[first],
        start=None if frames.start is None else frames.start[first],
        data_hash=data_hash,
    )


def _moments(prepared: PreparedSet) -> NDArray[np.int64]:
    """Return a nondecreasing number for each row [n], equal for rows of one moment of one recording."""
    if not prepared.manifest.whole_moments:
        return prepared.table.moments()
    leads = len(prepared.manifest.lead_names)
    return np.repeat(np.arange(prepared.manifest.frames // leads), leads)


def _hash_of_frames(prepared: PreparedSet, split: NDArray[np.int8], normalize: str, leads: str) -> str:
    manifest = prepared.manifest
    of_single_leads = frames_hash(manifest.content_hash, array_sha256(split), normalize)
    if leads == "single" or len(manifest.lead_names) == 1:
        return of_single_leads
    return hash_of(frames=of_single_leads, leads=leads)


@named_arguments
def data_hash(
    name: str,
    *,
    prepared_root: Path,
    split_seed: int = 0,
    normalize: str = "none",
    leads: str = "single",
    split: str | None = None,
    validation: float | None = None,
    split_within: str = "people",
    stratify: str | None = None,
    data_root: Path | None = None,
) -> str | None:
    """Return the `data_hash` of the FrameSet of `open_frames` in milliseconds, without writing anything.

    If source files changed, their recordings are compared once, which may take longer (see `still_equal`). None if the
    set is not prepared or outdated, or its split needs a solver and is not cached; `prepare` with `split_seeds` makes
    all of these.

    Raises:
        UsageError: the patients or recordings cannot be split as requested.
    """
    prepared = current_set(name, prepared_root, data_root)
    if prepared is None:
        return None
    of_people = split_at_hand(prepared, split_seed, split, validation, stratify)
    if of_people is None:
        return None
    split_codes = within(prepared, of_people, split_within)
    return _hash_of_frames(prepared, split_codes, normalize, leads)
