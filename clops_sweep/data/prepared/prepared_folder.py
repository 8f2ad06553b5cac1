"""Find the prepared folder of a data set, and check that it is complete and matches its source."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.files.arrays import load_npy
from clops_sweep.data.files.checksums import unlike
from clops_sweep.data.files.folder import is_file, one_sentence
from clops_sweep.data.prepared.cache import hold
from clops_sweep.data.prepared.commands import data_command
from clops_sweep.data.prepared.earlier_editions import is_earlier
from clops_sweep.data.prepared.frame_table import FrameTable
from clops_sweep.data.prepared.freshness import Change, changes, changes_in_words, is_fresh
from clops_sweep.data.prepared.manifest import (
    FRAMES,
    Manifest,
    check_content,
    check_sizes,
    check_small_files,
    read_manifest,
    remedy,
)
from clops_sweep.data.records import OnError, Source
from clops_sweep.data.same_samples import OF_REPEATED_RECORDS
from clops_sweep.data.sets.data_set import DataSet
from clops_sweep.data.sets.named import data_set
from clops_sweep.errors import AbsentData, DamagedStore, UsageError, either

State = Literal["absent", "raw", "prepared", "changed", "damaged"]


@dataclass(frozen=True)
class PreparedSet:
    """A complete prepared folder and its manifest."""

    folder: Path
    manifest: Manifest

    @cached_property
    def table(self) -> FrameTable:
        """The table of its frames."""
        return FrameTable(self.folder, self.manifest)


def prepared_set(name: str, prepared_root: Path, data_root: Path | None = None) -> PreparedSet | None:
    """Return the prepared folder of a data set; None without a prepared folder of this version.

    If a user's file declares the data set, None also if its code or files have changed since. Without a file that
    declares it, a user's data set of any version is taken as it is, and so is an earlier edition.

    Raises:
        DamagedStore: a file is missing or has another size than was written.
    """
    folder = prepared_root / name
    manifest = read_manifest(folder)
    if manifest is None:
        return None
    is_known = manifest.name in DATASETS and not is_earlier(folder)
    if is_known and not data_set(manifest.name).accepts(manifest.reader_version, manifest.classes):
        return None
    check_sizes(folder, manifest)
    if not is_fresh(folder, manifest, data_root):
        return None
    return PreparedSet(folder, manifest)


def register_prepared(name: str, prepared_root: Path) -> None:
    """Register a prepared data set that no file declares in this process, so that configs can name it."""
    if name in DATASETS:
        return
    with contextlib.suppress(UsageError):
        manifest = read_manifest(prepared_root / name)
        info = None if manifest is None else manifest.dataset_info()
        if info is not None:
            DATASETS.register(info)


def required_set(name: str, prepared_root: Path, data_root: Path | None = None) -> PreparedSet:
    """Return `prepared_set`, which must exist.

    Raises:
        UsageError: the set is not prepared (the message names the command) or is damaged.
    """
    prepared = prepared_set(name, prepared_root, data_root)
    if prepared is None:
        name = data_set(name).name  # refuses unknown names
        command = data_command("prepare", name, prepared_root=prepared_root, data_root=data_root)
        root = "None" if data_root is None else f"Path({str(data_root)!r})"
        call = f"clops_sweep.prepare({name!r}, prepared_root=Path({str(prepared_root)!r}), data_root={root})"
        how = either(f"'{command}', or in Python {call},", call)
        if changed := changes_since(name, prepared_root, data_root):
            raise UsageError(
                f"dataset {name!r} changed since it was prepared ({changes_in_words(changed)}); run {how} to prepare "
                "it again"
            )
        raise UsageError(f"dataset {name!r} is not prepared; run {how} first")
    return prepared


def changes_since(name: str, prepared_root: Path, data_root: Path | None) -> list[Change]:
    """Return what changed since a data set was prepared here; empty if it is not, or if nothing changed."""
    folder = prepared_root / name
    with contextlib.suppress(UsageError, OSError):
        manifest = read_manifest(folder)
        return [] if manifest is None else list(changes(folder, manifest, data_root))
    return []


def mapped_frames(prepared: PreparedSet) -> NDArray[Any]:
    """Return the stored frames [n, samples], mapped read-only, and lock them against removal while this process lives.

    Raises:
        DamagedStore: the file is not an array, or not of the manifest's shape.
    """
    hold(prepared.folder)
    try:
        frames = load_npy(prepared.folder / FRAMES, mapped=True)
    except DamagedStore as error:
        raise DamagedStore(f"{error}; {remedy(prepared.folder)}") from None
    if frames.shape != (prepared.manifest.frames, prepared.manifest.samples):
        raise DamagedStore(
            f"{prepared.folder / FRAMES}: holds {frames.shape} instead of {prepared.manifest.frames} frames"
        )
    return frames


def state(name: str, *, prepared_root: Path, data_root: Path | None) -> State:
    """Return whether a data set is prepared, damaged, `raw` (only the publisher's files exist) or absent.

    It is `changed` if its files or code changed since it was prepared.

    Checks the sizes of all prepared files and the content of all but the frames. Of the publisher's files it reads only
    the tables that list the records.
    """
    try:
        if (prepared := prepared_set(name, prepared_root, data_root)) is not None:
            check_small_files(prepared.folder, prepared.manifest)
            return "prepared"
    except UsageError:
        return "damaged"
    try:
        with one_sentence(data_root or name):
            data_set(name).look(data_root)
    except AbsentData:
        return "absent"
    except UsageError:
        return "damaged"
    return "changed" if changes_since(name, prepared_root, data_root) else "raw"


def source_files(data: DataSet, records: Iterable[Source], data_root: Path | None) -> list[Path]:
    """Return the publisher's files that frames are made from; for a duplicate record, those of the first."""
    sources = list(records)
    first = {source.record: source for source in reversed(sources)}
    return [
        *(file for source in sources if first[source.record] is source for file in source.files),
        *(data.tables(data_root) if sources else ()),
    ]


def prepared_problems(data: DataSet, *, prepared_root: Path, files: Sequence[Path]) -> list[str] | None:
    """Return what is wrong with prepared frames, one sentence each; None without prepared frames.

    Compares every file of the folder with the manifest, bit by bit, and the publisher's `files` with those that the
    frames were made from.
    """
    name = data.name
    try:
        prepared = prepared_set(name, prepared_root)
        if prepared is None:
            return None
        for file, record in prepared.manifest.files.items():
            check_content(prepared.folder, file, record)
        mapped_frames(prepared)
    except UsageError as damage:
        return [str(damage)]
    known = prepared.manifest.sources
    changed = f"has changed since {name} was prepared; {remedy(prepared.folder)}"
    return [
        problem
        for file in files
        if is_file(file) and (data.file_key(file) in known or not data.checks_files_on_opening)
        for problem in unlike(file, known.get(data.file_key(file), ""), changed)
    ]


def is_to_be_made_again(name: str, *, prepared_root: Path, data_root: Path | None, on_error: OnError) -> bool:
    """Return whether prepared frames must be made again: they are damaged, or the files under the data root changed.

    Also true if records were skipped, or windows of a declared set left out, and `on_error` is now "stop"; and if
    records were kept that "skip" leaves out.
    """
    data = data_set(name)
    files: list[Path] = []
    with contextlib.suppress(UsageError):  # without sources, the prepared frames alone are checked
        if not data.checks_files_on_opening:  # `prepared_set` checks the files otherwise
            files = source_files(data, data.find(data_root), data_root)
    if prepared_problems(data, prepared_root=prepared_root, files=files):
        return True
    prepared = prepared_set(name, prepared_root, data_root)
    if prepared is None:
        return False
    manifest = prepared.manifest
    if on_error == "skip":
        return manifest.on_error == "stop" and any(note.startswith(OF_REPEATED_RECORDS) for note in manifest.notes)
    has_refused_windows = data.rules.whole_moments and "missing samples" in manifest.dropped
    is_lenient = manifest.on_error == "skip" and has_refused_windows
    return is_lenient or bool(manifest.skipped)
