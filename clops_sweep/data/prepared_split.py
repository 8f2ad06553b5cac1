"""The split of a prepared data set for a split seed: that of the folder, one kept beside it, or one computed now."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.arrays import Arrays
from clops_sweep.data.folder import write_file
from clops_sweep.data.frame_file import npy_bytes
from clops_sweep.data.manifest import Manifest
from clops_sweep.data.reader import Index, Reader
from clops_sweep.errors import DamagedStore

_COMPUTED: dict[tuple[str, int], NDArray[np.int8]] = {}
"""Splits by content and seed: a folder that cannot be written to does not make a process look for them twice."""


def split_of(folder: Path, manifest: Manifest, reader: Callable[[], Reader], seed: int) -> NDArray[np.int8]:
    """The split of every frame [n] int8 for a split seed; computed once per seed and kept in the prepared folder.

    `reader` makes the reader of the data set with the options of the manifest, where the split is to be computed.
    """
    load = Arrays(folder)
    if seed == 0:
        return load("split")
    name = f"splits/{seed}"
    patients = load("patients")
    with contextlib.suppress(DamagedStore):  # one that is cut short is computed again
        if (folder / f"{name}.npy").exists() and _parts_patients(cached := load(name), patients):
            return cached
    key = (manifest.content_hash, seed)
    if key not in _COMPUTED:
        _COMPUTED[key] = _computed(reader(), _index(folder, manifest), seed)[patients]
        _COMPUTED[key].flags.writeable = False
    _keep_split(folder / f"{name}.npy", _COMPUTED[key])
    return _COMPUTED[key]


def _computed(reader: Reader, index: Index, seed: int) -> NDArray[np.int8]:
    """The split of every patient, [patients] int8."""
    per_patient = reader.quick_split(index, seed)
    if per_patient is None:
        from clops_sweep.data.split_apart import split_apart

        per_patient = split_apart(reader, index, seed)
    return per_patient


def _parts_patients(split: NDArray[Any], patients: NDArray[np.int32]) -> bool:
    """Whether a split is of these frames, has known values only and puts each patient on one side."""
    if split.dtype != np.int8 or split.shape != patients.shape:
        return False
    per_patient = np.full(int(patients.max(initial=0)) + 1, -1, np.int8)
    per_patient[patients] = split
    return bool(np.isin(split, (0, 1, 2)).all() and (per_patient[patients] == split).all())


def _keep_split(path: Path, split: NDArray[np.int8]) -> None:
    """Saves a split where it can be saved; a read-only folder only means that it is computed again next time."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        write_file(path, npy_bytes(split))


def _index(folder: Path, manifest: Manifest) -> Index:
    """The index by its arrays, all frames as of one record: what is in the table alone plays no part in a split."""
    load = Arrays(folder)
    patients = load("patients")
    return Index(
        manifest.patient_names,
        ("",),
        patients,
        np.zeros_like(patients),
        load("leads"),
        np.zeros(len(patients)),
        load("labels"),
        load("times") if "times.npy" in manifest.files else None,
    )
