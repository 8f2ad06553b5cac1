"""Which files the frames of a listed recording may depend on. Imports the readers of all formats."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.declared.combining import Member
from clops_sweep.data.declared.file_folder import SignalFile
from clops_sweep.data.declared.formats.ecg_files import from_ecg
from clops_sweep.data.declared.formats.hdf5_rows import Hdf5Rows
from clops_sweep.data.declared.formats.read_files import ReadFile
from clops_sweep.data.declared.formats.readers import from_edf
from clops_sweep.data.declared.formats.variable_files import from_mat, from_npz
from clops_sweep.data.declared.wfdb_folder import WfdbRecord
from clops_sweep.data.prepared.freshness import Change
from clops_sweep.data.records import Source
from clops_sweep.data.sets.data_set import DataSet

_READ_ONE_FILE: Final = (from_edf, from_ecg, from_mat, from_npz)
"""Readers that open no file but the one that they are given."""

_NAME_THEIR_FILES: Final = (SignalFile, WfdbRecord, Hdf5Rows)
"""Recordings that read the files that they name, and files of the same name with another ending."""


def may_be_read(data: DataSet, records: Sequence[Source], changed: Sequence[Change]) -> bool:
    """Return whether the frames of listed recordings may depend on a changed file.

    They depend on their files and perhaps on those beside them with the same name and another ending. Functions of
    users may read any file.
    """
    declared = DATASETS.declared(data.name)
    of_folds = None if declared is None else declared.folds
    keys = {data.file_key(file) for source in records for file in source.files}
    names = {_without_ending(key) for key in keys}
    only_added = all(change.how == "added" for change in changed)
    if not all(_names_its_files(source, only_added) for source in records):
        return True
    for change in changed:
        key = change.what
        folders = {parent.as_posix() for parent in PurePosixPath(key).parents}
        if key in keys or key == of_folds or _without_ending(key) in names or not keys.isdisjoint(folders):
            return True
    return False


def _names_its_files(source: Source, only_added: bool) -> bool:
    """Return whether a recording reads no file but those that it names, and those beside them.

    Args:
        source: the recording.
        only_added: whether files were only added: a reader of this package reads others only if a header names them.
    """
    if isinstance(source, Member):
        return _names_its_files(source.inner, only_added)
    if isinstance(source, ReadFile):
        reader = source.read_by
        return reader.function in _READ_ONE_FILE or (only_added and reader.is_of_this_package)
    return isinstance(source, _NAME_THEIR_FILES)


def _without_ending(key: str) -> str:
    """Return the key of a file up to the first dot of its name."""
    folder, _, name = key.rpartition("/")
    return f"{folder}/{name.split('.')[0]}"
