"""The files of a prepared folder other than the frames: the table of the frames and the manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS, DatasetInfo
from clops_sweep.data.declared.data_set import DataSet
from clops_sweep.data.files.folder import shorten, write_file
from clops_sweep.data.files.hashes import array_sha256, file_sha256, hash_of, npy_sha256
from clops_sweep.data.prepared.counts import count_table
from clops_sweep.data.prepared.frame_table import FrameColumns
from clops_sweep.data.prepared.freshness import State, remember, states_of
from clops_sweep.data.prepared.manifest import (
    FORMAT_VERSION,
    FRAMES,
    INDEX,
    MANIFEST,
    FileRecord,
    Manifest,
    frames_hash,
)
from clops_sweep.data.preparing.frame_file import FrameFile
from clops_sweep.data.preparing.record_problems import Problems
from clops_sweep.data.records import Index
from clops_sweep.errors import UsageError


def write_rest(
    data: DataSet,
    staging: Path,
    frames: FrameFile,
    columns: FrameColumns,
    sources: Mapping[str, str],
    notes: Sequence[str],
    dropped: Counter[str],
    problems: Problems,
) -> None:
    """Write all files except the frames, the manifest last.

    Args:
        data: the data set.
        staging: the folder that holds the frames.
        frames: the closed file of frames.
        columns: the columns of the table.
        sources: SHA-256 of the source files, by key.
        notes: notes for the user.
        dropped: number of frames left out, by reason.
        problems: the records that were left out.
    """
    common, index, split = data.common, columns.index, columns.split
    columns.write(staging / INDEX, common.classes, common.channels)
    arrays: dict[str, NDArray[Any]] = {"gain": columns.gain, "offset": columns.offset}
    arrays |= {"patients": index.patients, "labels": index.labels, "leads": index.leads}
    if index.times is not None:
        arrays["times"] = index.times
    arrays |= {f"domain_{name}": codes for name, (codes, _) in index.domains.items()}
    hashes = {name: array_sha256(array) for name, array in arrays.items()}
    shape = (frames.count, frames.samples)
    hashes["frames"] = str(npy_sha256(frames.path, frames.dtype.str, shape))
    declared = None if data.built_in else DATASETS.declared(data.name)
    own = _of_declared(data, index)
    content_hash = hash_of(arrays=hashes, classes=common.classes, leads=common.channels, unit=common.units, **own)
    manifest = Manifest(
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
        counts=count_table(index.labels, split, common.classes),
        dropped=dict(sorted(dropped.items())),
        skipped=tuple(problems.skipped),
        notes=tuple(notes),
        files={
            FRAMES: FileRecord(
                (staging / FRAMES).stat().st_size,
                hashes["frames"],
                (frames.dtype.str, shape),
            ),
            INDEX: FileRecord((staging / INDEX).stat().st_size, file_sha256(staging / INDEX)),
        },
        sources=dict(sorted(sources.items())),
        content_hash=content_hash,
        data_hash=frames_hash(content_hash, array_sha256(split), "none"),
        samples=frames.samples,
        sampling_rate=data.sampling_rate,
        frame_seconds=data.frame_seconds,
        domains={name: names for name, (_, names) in index.domains.items()},
        groups={name: names for name, (_, names) in index.groups.items()},
        multi_label=index.labels.ndim == 2,
        dated=index.times is not None,
        given_split=data.given_split,
        whole_moments=not data.built_in,
        fingerprint=declared.fingerprint if declared else None,
        info=_info_of(data) if declared else None,
    )
    write_file(staging / MANIFEST, manifest.to_json())


def _info_of(data: DataSet) -> DatasetInfo:
    """Return the facts about a declared data set, completed by what reading it has shown."""
    return replace(DATASETS[data.name], classes=len(data.common.classes), simultaneous_leads=len(data.common.channels))


def _of_declared(data: DataSet, index: Index) -> dict[str, Any]:
    """Return what else the tasks of a declared data set depend on; for built-in sets it never changes."""
    if data.built_in:
        return {}
    info = DATASETS[data.name]
    domains = {name: names for name, (_, names) in index.domains.items()}
    return {"terms": info.terms, "reference": info.reference_lead, "domains": domains}


def by_key(data: DataSet, files: Iterable[Path]) -> dict[str, Path]:
    """Return source files by their keys in the manifest."""
    return {data.file_key(file): file for file in files}


def remember_files(
    data: DataSet, staging: Path, data_root: Path | None, before: Mapping[str, State], files: Mapping[str, Path]
) -> None:
    """Record the state of the source files.

    Raises:
        UsageError: a file has changed since the preparation began.
    """
    after = states_of(files)
    for key, state in before.items():
        if after.get(key) != state:
            what = "has changed" if key in after else "has vanished"
            raise UsageError(f"{shorten(files.get(key, key))}: {what} while {data.name} was made from it; start again")
    remember(staging, data_root, after)
