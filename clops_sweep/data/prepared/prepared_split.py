"""Splits of prepared frames: stored with the frames, cached beside them, or computed now."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.arrays import load_npy, npy_bytes
from clops_sweep.data.files.folder import write_file
from clops_sweep.data.files.hashes import array_sha256
from clops_sweep.data.files.progress import with_progress
from clops_sweep.data.files.regular_files import open_regular
from clops_sweep.data.frames import TEST, TRAINING, VALIDATION
from clops_sweep.data.misspelt import hint
from clops_sweep.data.prepared.manifest import INDEX, check_content, remedy
from clops_sweep.data.prepared.prepared_folder import PreparedSet
from clops_sweep.data.records import Index
from clops_sweep.data.sets.data_set import DataSet
from clops_sweep.data.sets.named import data_set
from clops_sweep.data.splits.by_time import split_by_time
from clops_sweep.data.splits.dealing import fold_split, strata, stratified_split, validation_share
from clops_sweep.data.splits.fixed_folds import fixed_folds
from clops_sweep.data.splits.fold_names import fold_of
from clops_sweep.data.splits.split_program import balanced_split
from clops_sweep.errors import UsageError, listed, prefixed, several, shown

SOLVED: dict[tuple[str, int], NDArray[np.int8]] = {}
"""Splits solved by this process, by content and seed, because a read-only folder cannot cache them."""


def split_at_hand(
    prepared: PreparedSet,
    seed: int,
    split: str | None = None,
    validation: float | None = None,
    stratify: str | None = None,
) -> NDArray[np.int8] | None:
    """Return the split of each frame, int8 [n], for a split seed, or None if it needs a solver. Takes milliseconds.

    The split is stored with the frames (seed 0), cached in the folder, solved earlier by this process, or fast to
    compute for this data set. Nothing is written.

    Args:
        prepared: the prepared set.
        seed: the split seed.
        split: the name of a fold; None for the split of the data set.
        validation: share of the training people that becomes the validation set; None to keep the split as it is.
        stratify: a column of domains that the split balances, beside classes; None for classes alone.

    Raises:
        UsageError: the data set has no such column, cannot be split into these folds, or is too small for this share.
        DamagedStore: the prepared set is damaged.
    """
    if split is not None:
        return _fold(prepared, seed, split, stratify)
    if stratify is not None:
        return _stratified(prepared, seed, stratify)
    if validation is not None:
        return _with_validation(prepared, seed, validation)
    if seed == 0 or prepared.manifest.given_split:
        return prepared.table.split
    kept = _kept(prepared, seed)
    if kept is not None:
        return kept
    solved = SOLVED.get((prepared.manifest.content_hash, seed))
    if solved is not None:
        return solved
    index = frame_index(prepared)
    per_patient = _data_set(prepared).quick_split(index, seed)
    return None if per_patient is None else _of_frames(per_patient, index)


def split_of(
    prepared: PreparedSet,
    seed: int,
    split: str | None = None,
    validation: float | None = None,
    stratify: str | None = None,
) -> NDArray[np.int8]:
    """Return `split_at_hand`, or solve the split and cache it in the prepared folder.

    Raises:
        UsageError: as `split_at_hand`.
    """
    of_frames = split_at_hand(prepared, seed, split, validation, stratify)
    key = (prepared.manifest.content_hash, seed)
    if of_frames is None:
        index = frame_index(prepared)
        of_frames = SOLVED[key] = _of_frames(balanced_split(_data_set(prepared).counts(index), seed), index)
    if of_frames is SOLVED.get(key):  # not cached yet
        _keep(_path(prepared, seed), of_frames)
    return of_frames


def within(prepared: PreparedSet, split: NDArray[np.int8], split_within: str) -> NDArray[np.int8]:
    """Return a split of each frame [n] as it is, or with each person's recordings split by time (see `split_by_time`).

    Raises:
        UsageError: `split_within` is unknown, or a person has too few frames.
    """
    manifest, table = prepared.manifest, prepared.table
    if split_within == "people":
        return split
    if split_within != "time":
        raise UsageError(f"split_within = {shown(split_within)}: expected 'people' or 'time'")
    if manifest.frame_seconds is None:
        raise UsageError(f"dataset {manifest.name!r}: the duration of its frames is unknown; {remedy(prepared.folder)}")
    positions = table.patients, manifest.patient_names, table.recordings, table.start, table.times
    with prefixed(f"dataset {manifest.name!r}"):
        by_time = split_by_time(split, *positions, manifest.frame_seconds)
    by_time.flags.writeable = False
    return by_time


def fold_of_people(prepared: PreparedSet, k: int, split_seed: int = 0, stratify: str | None = None) -> dict[str, int]:
    """Return the number of the fold whose test set has each person, from 1, by name.

    Args:
        prepared: the prepared set.
        k: the number of folds.
        split_seed: the split seed.
        stratify: a column of domains that the folds balance, beside classes; None for classes alone.

    Raises:
        UsageError: the people cannot be divided into these folds.
    """
    names, patients = prepared.manifest.patient_names, prepared.table.patients
    of_people: dict[str, int] = {}
    for fold in range(1, k + 1):
        of_frames = split_of(prepared, split_seed, f"fold:{fold}/{k}", stratify=stratify)
        tested = np.unique(patients[of_frames == TEST])
        of_people |= {names[person]: fold for person in tested.tolist()}
    return dict(sorted(of_people.items()))


def make_splits(prepared: PreparedSet, seeds: Collection[int], progress: bool) -> None:
    """Ensure that `split_at_hand` returns the split of each of these seeds.

    Raises:
        UsageError: the prepared set is damaged.
    """
    # a split solved by this process may be missing in a folder that was prepared again
    solved = {seed for content, seed in SOLVED if content == prepared.manifest.content_hash}
    missing = [seed for seed in sorted({*seeds}) if seed in solved or split_at_hand(prepared, seed) is None]
    all_of_them = several(len({*seeds}), "patient split")
    count = all_of_them if len(missing) == len({*seeds}) else f"{len(missing)} of {all_of_them}"
    description = f"{prepared.manifest.name}: dividing people into training, validation and test for {count}"
    for seed in with_progress(missing, len(missing), description, progress and bool(missing)):
        split_of(prepared, seed)


def frame_index(prepared: PreparedSet) -> Index:
    """Return the index of all frames, after checking its file.

    Raises:
        DamagedStore: the table has changed since it was written.
    """
    check_content(prepared.folder, INDEX, prepared.manifest.files[INDEX])
    return prepared.table.index()


def _fold(prepared: PreparedSet, seed: int, split: str, stratify: str | None) -> NDArray[np.int8]:
    """Return the split of each frame [n] in a fold."""
    manifest, (i, k) = prepared.manifest, fold_of(split)
    if manifest.given_split:
        raise UsageError(
            f"dataset {manifest.name!r} has a split fixed by its publisher, so it has no folds; leave out "
            f"split = {split!r}"
        )
    index = frame_index(prepared)
    counts = _data_set(prepared).counts(index)
    _require_people(prepared, split, k, counts, "each class", manifest.classes)
    if stratify is not None:
        codes, names = _column(prepared, stratify)
        of_values = _frames_of_values(index, codes, len(names))
        _require_people(prepared, split, k, of_values, f"each {stratify}", names)
        counts = _strata(prepared, index, codes, of_values)
    fixed = fixed_folds(manifest.folds, manifest.name, split, k, seed)
    return _of_frames(fold_split(counts, i, k, seed, fixed), index)


def _require_people(
    prepared: PreparedSet, split: str, k: int, counts: NDArray[np.int64], each: str, names: Sequence[str]
) -> None:
    """Check that each of some columns has at least k people, from the frames of every person [people, columns]."""
    people = (counts > 0).sum(0)
    fewest = int(np.argmin(np.where(people > 0, people, len(counts) + 1)))
    if people[fewest] < k:
        meant = hint(names[fewest], dict(zip(names, people.tolist(), strict=False)))
        one_name = f"one name for {each}, " if meant else ""
        raise UsageError(
            f"dataset {prepared.manifest.name!r}: split = {split!r} needs {k} people of {each}, and "
            f"{names[fewest]}{meant} has {people[fewest]}; expected {one_name}fewer folds, or split_seed alone"
        )


def _stratified(prepared: PreparedSet, seed: int, stratify: str) -> NDArray[np.int8]:
    """Return the split of each frame [n], with the people of each value of a column in proportion."""
    if prepared.manifest.given_split:
        raise UsageError(
            f"dataset {prepared.manifest.name!r} has a split fixed by its publisher; leave out stratify = {stratify!r}"
        )
    index = frame_index(prepared)
    codes, names = _column(prepared, stratify)
    counts = _strata(prepared, index, codes, _frames_of_values(index, codes, len(names)))
    return _of_frames(stratified_split(counts, seed), index)


def require_column_to_stratify(dataset: str, stratify: str, domains: Collection[str]) -> None:
    """Raise a UsageError unless a data set has the column of domains that `stratify` names."""
    if stratify not in domains:
        there = f"its columns are {listed(domains)}" if domains else "it has none; declare domains=..."
        raise UsageError(f"dataset {dataset!r}: stratify = {stratify!r}: expected a column of its domains; {there}")


def _column(prepared: PreparedSet, stratify: str) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Return the code of each frame [n] in a column of domains, and the names of the codes."""
    domains = prepared.manifest.domains
    require_column_to_stratify(prepared.manifest.name, stratify, domains)
    return prepared.table.domain(stratify), domains[stratify]


def _frames_of_values(index: Index, codes: NDArray[np.int32], values: int) -> NDArray[np.int64]:
    """Return the frames of every person and value of a column, [people, values]."""
    people = len(index.patient_names)
    cells = index.patients.astype(np.int64) * values + codes
    return np.bincount(cells, minlength=people * values).reshape(people, values)


def _strata(
    prepared: PreparedSet, index: Index, codes: NDArray[np.int32], of_values: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the `strata` of the classes and a column of domains."""
    data, whole = _data_set(prepared), _data_set(prepared).counts(index)
    counts = np.zeros((len(whole), of_values.shape[1], whole.shape[1]), np.int64)
    for code in range(of_values.shape[1]):
        chosen = codes == code
        of_value = replace(index, patients=index.patients[chosen], labels=index.labels[chosen])
        of_classes = data.counts(of_value)
        counts[:, code, : of_classes.shape[1]] = of_classes
    return strata(counts, of_values)


def _with_validation(prepared: PreparedSet, seed: int, share: float) -> NDArray[np.int8]:
    """Return the split of each frame [n], with a share of the training people moved to validation."""
    name, split = prepared.manifest.name, prepared.table.split
    if not prepared.manifest.given_split or (split == VALIDATION).any():
        raise UsageError(
            f"dataset {name!r} has a validation set; leave out validation = {share:g}, which is for data "
            "whose publisher has fixed only training and test"
        )
    index = frame_index(prepared)
    trained_on = np.unique(index.patients[split == TRAINING])
    chosen = trained_on[validation_share(_data_set(prepared).counts(index)[trained_on], share, seed)]
    if not 0 < len(chosen) < len(trained_on):
        left = "validation" if not len(chosen) else "training"
        raise UsageError(
            f"dataset {name!r}: validation = {share:g} of {len(trained_on)} training people leaves none for {left}; "
            f"expected a {'larger' if left == 'validation' else 'smaller'} share"
        )
    split = np.where(np.isin(index.patients, chosen), np.int8(VALIDATION), split)
    split.flags.writeable = False
    return split


def _data_set(prepared: PreparedSet) -> DataSet:
    return data_set(prepared.manifest.name, prepared.manifest.options)


def _of_frames(per_patient: NDArray[np.int8], index: Index) -> NDArray[np.int8]:
    """Return the split of each frame [n], read-only, from that of each patient."""
    split = per_patient[index.patients]
    split.flags.writeable = False
    return split


def _path(prepared: PreparedSet, seed: int) -> Path:
    return prepared.folder / "splits" / f"{seed}.npy"


def _kept(prepared: PreparedSet, seed: int) -> NDArray[np.int8] | None:
    """Return the split cached in the folder; None if it is missing or its file has changed."""
    path, table = _path(prepared, seed), prepared.table
    with contextlib.suppress(UsageError):
        if path.exists() and _parts_patients(split := load_npy(path), table.patients):
            return split if _recorded_sum(path) == array_sha256(split) else None
    return None


def _recorded_sum(path: Path) -> str | None:
    """Return the SHA-256 of a cached split; None if its file is missing."""
    with contextlib.suppress(FileNotFoundError), open_regular(path.with_suffix(".sha256"), limit=100) as file:
        return file.read().decode("ascii", "replace").strip()
    return None


def _parts_patients(split: NDArray[Any], patients: NDArray[np.int32]) -> bool:
    """Whether an array is a split of these frames: known values only, and one value per patient."""
    if split.dtype != np.int8 or split.shape != patients.shape:
        return False
    per_patient = np.full(int(patients.max(initial=0)) + 1, -1, np.int8)
    per_patient[patients] = split
    return bool(np.isin(split, (0, 1, 2)).all() and (per_patient[patients] == split).all())


def _keep(path: Path, split: NDArray[np.int8]) -> None:
    """Cache a split if possible; with a read-only folder, the next process solves it again."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        write_file(path.with_suffix(".sha256"), f"{array_sha256(split)}\n".encode())
        write_file(path, npy_bytes(split))
