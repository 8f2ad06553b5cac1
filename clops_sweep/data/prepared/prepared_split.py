"""The split of prepared frames for a split seed: that of the folder, one kept beside it, or one found now."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared.data_set import DataSet
from clops_sweep.data.files.arrays import load_npy, npy_bytes
from clops_sweep.data.files.folder import write_file
from clops_sweep.data.files.hashes import array_sha256
from clops_sweep.data.files.progress import with_progress
from clops_sweep.data.prepared.frame_table import FrameTable
from clops_sweep.data.prepared.manifest import INDEX, check_content
from clops_sweep.data.prepared.prepared_folder import PreparedSet
from clops_sweep.data.records import Index
from clops_sweep.data.splits.split_program import balanced_split
from clops_sweep.errors import UsageError
from clops_sweep.regular_files import open_regular

_SOLVED: dict[tuple[str, int], NDArray[np.int8]] = {}
"""Splits that this process has solved, by content and seed: a folder that cannot be written to keeps none."""


def split_at_hand(prepared: PreparedSet, seed: int) -> NDArray[np.int8] | None:
    """The split of every frame [n] int8 for a split seed in milliseconds; None where it takes a solver.

    It is that of the folder (seed 0), one that is kept beside it, one that this process has solved, or one that the
    data set is quick to find. Nothing is written.

    Raises:
        DamagedStore: the prepared set is damaged.
    """
    if seed == 0 or prepared.manifest.given_split:
        return FrameTable(prepared.folder, prepared.manifest).split
    kept = _kept(prepared, seed)
    if kept is not None:
        return kept
    solved = _SOLVED.get((prepared.manifest.content_hash, seed))
    if solved is not None:
        return solved
    index = frame_index(prepared)
    per_patient = _data_set(prepared).quick_split(index, seed)
    return None if per_patient is None else _of_frames(per_patient, index)


def split_of(prepared: PreparedSet, seed: int) -> NDArray[np.int8]:
    """The split of every frame [n] int8 for a split seed; one that takes a solver is kept in the prepared folder.

    Raises:
        UsageError: the prepared set is damaged.
    """
    split = split_at_hand(prepared, seed)
    key = (prepared.manifest.content_hash, seed)
    if split is None:
        index = frame_index(prepared)
        split = _SOLVED[key] = _of_frames(balanced_split(_data_set(prepared).counts(index), seed), index)
    if split is _SOLVED.get(key):  # not in the folder yet
        _keep(_path(prepared, seed), split)
    return split


def make_splits(prepared: PreparedSet, seeds: Collection[int], progress: bool) -> None:
    """Sees to it that `split_at_hand` has the split of each of these seeds.

    Raises:
        UsageError: the prepared set is damaged.
    """
    # What this process has solved is perhaps in no folder, or in one that has been made anew since.
    solved = {seed for content, seed in _SOLVED if content == prepared.manifest.content_hash}
    missing = [seed for seed in sorted({*seeds}) if seed in solved or split_at_hand(prepared, seed) is None]
    for seed in with_progress(missing, len(missing), f"{prepared.manifest.name}: splits", progress and bool(missing)):
        split_of(prepared, seed)


def frame_index(prepared: PreparedSet) -> Index:
    """The index of all frames, once its file is seen to be whole.

    Raises:
        DamagedStore: the table is not what was written.
    """
    check_content(prepared.folder, INDEX, prepared.manifest.files[INDEX])
    return FrameTable(prepared.folder, prepared.manifest).index()


def _data_set(prepared: PreparedSet) -> DataSet:
    return DataSet(prepared.manifest.name, prepared.manifest.options)


def _of_frames(per_patient: NDArray[np.int8], index: Index) -> NDArray[np.int8]:
    """The split of every frame [n], read-only, from that of every patient."""
    split = per_patient[index.patients]
    split.flags.writeable = False
    return split


def _path(prepared: PreparedSet, seed: int) -> Path:
    return prepared.folder / "splits" / f"{seed}.npy"


def _kept(prepared: PreparedSet, seed: int) -> NDArray[np.int8] | None:
    """The split that is kept in the folder; None where there is none, or its file has changed since."""
    path, table = _path(prepared, seed), FrameTable(prepared.folder, prepared.manifest)
    with contextlib.suppress(UsageError):
        if path.exists() and _parts_patients(split := load_npy(path), table.patients):
            return split if _recorded_sum(path) in (None, array_sha256(split)) else None
    return None


def _recorded_sum(path: Path) -> str | None:
    """The SHA-256 that a split was kept with; None for one that an earlier version has kept."""
    with contextlib.suppress(FileNotFoundError), open_regular(path.with_suffix(".sha256"), limit=100) as file:
        return file.read().decode("ascii", "replace").strip()
    return None


def _parts_patients(split: NDArray[Any], patients: NDArray[np.int32]) -> bool:
    """Whether a split is of these frames, has known values only and puts each patient on one side."""
    if split.dtype != np.int8 or split.shape != patients.shape:
        return False
    per_patient = np.full(int(patients.max(initial=0)) + 1, -1, np.int8)
    per_patient[patients] = split
    return bool(np.isin(split, (0, 1, 2)).all() and (per_patient[patients] == split).all())


def _keep(path: Path, split: NDArray[np.int8]) -> None:
    """Saves a split where it can be saved; a read-only folder only means that the next process solves it again."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        write_file(path.with_suffix(".sha256"), f"{array_sha256(split)}\n".encode())
        write_file(path, npy_bytes(split))
