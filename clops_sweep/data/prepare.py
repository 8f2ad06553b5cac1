"""Prepared data sets: made once, checked on every opening, mapped from disk by every run.

A prepared folder holds `frames.npy` [n, 2500], small arrays beside it, `index.parquet` (one row per frame, for people
and pandas), `sources.json` (the publisher's files with SHA-256) and `manifest.json`. Splits of other seeds than 0 are
added under `splits/` when they are first asked for.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.arrays import Arrays
from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.folder import one_sentence, shorten
from clops_sweep.data.frames import FRAME_LENGTH, FrameSet
from clops_sweep.data.manifest import (
    Manifest,
    array_sha256,
    check_sizes,
    check_small_files,
    frames_hash,
    read_manifest,
)
from clops_sweep.data.normalization import normalized_gain_offset
from clops_sweep.data.prepared_split import split_of
from clops_sweep.data.reader import OnError, OptionValue, Reader
from clops_sweep.data.termination import terminated_like_interrupted
from clops_sweep.errors import AbsentData, BadInput, DamagedStore

State = Literal["absent", "raw", "prepared", "damaged"]


@dataclass(frozen=True)
class PreparedSet:
    """A prepared folder that is whole, and its manifest."""

    folder: Path
    manifest: Manifest


def default_prepared_root() -> Path:
    """Where prepared sets live: CLOPS_PREPARED_ROOT, else `prepared` in the user's cache folder for clops-sweep."""
    if chosen := os.environ.get("CLOPS_PREPARED_ROOT"):
        return Path(chosen)
    from platformdirs import user_cache_path

    return user_cache_path("clops-sweep", appauthor=False) / "prepared"


def reader_for(name: str, options: Mapping[str, OptionValue] | None = None) -> Reader:
    """The reader of a data set of the catalogue, with the given options.

    Raises:
        BadInput: no such data set, or no such option.
    """
    if name == "vfdb":
        raise BadInput("vfdb is prepared as part of the data set 'mitbih_vfdb'; use that name")
    if name not in DATASETS:
        raise BadInput(f"dataset {shorten(name)!r} is not known; known: {', '.join(DATASETS)}")
    module, _, attribute = DATASETS[name].reader.partition(":")
    reader: Reader = getattr(importlib.import_module(module), attribute)(options)
    return reader


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
) -> PreparedSet:
    """Makes the frames of a data set under `prepared_root`; at once if they are there and whole.

    A prepared set is made anew where it is damaged, of an older reader, or was made with other options than those
    given here; one from which records were skipped is taken as it is. It appears whole or not at all; a killed
    preparation is simply started again.

    Args:
        name: a data set of the catalogue.
        prepared_root: where prepared sets live; nothing is ever written anywhere else.
        data_root: the folder that holds the publisher's folder; not needed for generated data.
        progress: whether to show a bar with the time left, on standard error.
        on_error: what to do about a record that cannot be read: `stop` with its sentence, or `skip` it, counted
            and listed in the manifest.
        options: options of the data set's reader that differ from their defaults; None takes a set that is there,
            whatever options it was made with.
        workers: processes to read records with; by default one per core that this process may use.
        anew: whether to make it again even though it is there.

    Raises:
        BadInput: the data root or a file in it is missing or not as published; one sentence with the remedy.
    """
    reader = reader_for(name, options)
    folder = prepared_root / name
    try:
        manifest = _manifest(folder)
    except DamagedStore:
        manifest = None
    if manifest is not None and not anew and (options is None or manifest.options == reader.chosen):
        return PreparedSet(folder, manifest)
    from clops_sweep.data.preparation import make_prepared_folder

    with terminated_like_interrupted():
        make_prepared_folder(reader, folder, data_root, progress=progress, on_error=on_error, workers=workers)
    return _whole(name, prepared_root)


def open_frames(name: str, *, prepared_root: Path, split_seed: int = 0, normalize: str = "none") -> FrameSet:
    """A prepared data set, its frames mapped read-only from the disk.

    Sizes of all files and the content of all but the frames are checked.

    Raises:
        BadInput: the set is not prepared (the command that does is named) or damaged, or `normalize` is unknown.
    """
    prepared = _whole(name, prepared_root)
    folder, manifest = prepared.folder, prepared.manifest
    check_small_files(folder, manifest)
    load = Arrays(folder)
    frames = load("frames", mapped=True)
    if frames.shape != (manifest.frames, FRAME_LENGTH):
        raise DamagedStore(f"{folder / 'frames.npy'}: holds {frames.shape} instead of {manifest.frames} frames")
    gain, offset = normalized_gain_offset(normalize, load("gain"), load("offset"), load("statistics"))
    return FrameSet(
        name=name,
        frames=frames,
        gain=gain,
        offset=offset,
        unit=manifest.unit if normalize == "none" else normalize,
        patients=load("patients"),
        patient_names=manifest.patient_names,
        labels=load("labels"),
        classes=manifest.classes,
        split=_split(prepared, split_seed),
        leads=load("leads"),
        lead_names=manifest.lead_names,
        times=load("times") if "times.npy" in manifest.files else None,
        data_hash=_data_hash(prepared, split_seed, normalize),
        frame_seconds=manifest.frame_seconds,
    )


def data_hash(name: str, *, prepared_root: Path, split_seed: int = 0, normalize: str = "none") -> str | None:
    """The `data_hash` of the FrameSet that `open_frames` would return, in a few milliseconds; None if not prepared."""
    folder = prepared_root / name
    manifest = _manifest(folder)
    return None if manifest is None else _data_hash(PreparedSet(folder, manifest), split_seed, normalize)


def state(name: str, *, prepared_root: Path, data_root: Path | None) -> State:
    """Whether a data set is prepared, damaged, only there as its publisher ships it (`raw`), or absent.

    A prepared folder is looked at as on opening: sizes of all files, content of all but the frames. Of the publisher's
    files only the tables are read that list the records.
    """
    try:
        if (prepared := prepared_set(name, prepared_root)) is not None:
            check_small_files(prepared.folder, prepared.manifest)
            return "prepared"
    except BadInput:
        return "damaged"
    try:
        with one_sentence(data_root or name):
            reader_for(name).find(data_root)
    except AbsentData:
        return "absent"
    except BadInput:
        return "damaged"
    return "raw"


def _split(prepared: PreparedSet, seed: int) -> NDArray[np.int8]:
    manifest = prepared.manifest
    return split_of(prepared.folder, manifest, partial(reader_for, manifest.name, manifest.options), seed)


def _data_hash(prepared: PreparedSet, split_seed: int, normalize: str) -> str:
    split_hash = array_sha256(_split(prepared, split_seed))
    return frames_hash(prepared.manifest.content_hash, split_hash, normalize)


def _manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder whose files all have their sizes; None if there is none, or none of this version."""
    manifest = read_manifest(folder)
    if manifest is None:
        return None
    reader = reader_for(manifest.name)
    if (manifest.reader_version, manifest.classes) != (reader.version, reader.classes):
        return None
    check_sizes(folder, manifest)
    return manifest


def prepared_set(name: str, prepared_root: Path) -> PreparedSet | None:
    """The prepared folder of a data set with its manifest, or None where there is none of this version.

    Raises:
        DamagedStore: a file is missing or of another size than it was written with.
    """
    manifest = _manifest(prepared_root / name)
    return None if manifest is None else PreparedSet(prepared_root / name, manifest)


def _whole(name: str, prepared_root: Path) -> PreparedSet:
    reader = reader_for(name)
    manifest = _manifest(prepared_root / name)
    if manifest is None:
        where = " --data-root DIR" if reader.reads_files else ""
        raise BadInput(f"dataset {name!r} is not prepared; run 'clops-sweep data prepare {name}{where}' first")
    return PreparedSet(prepared_root / name, manifest)
