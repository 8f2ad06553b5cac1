"""Splits of many patients: a shuffle by the seed, with sizes rounded down as in the paper's counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.frames import TEST, TRAINING, VALIDATION
from clops_sweep.data.records import Index


def shuffled(index: Index, seed: int) -> NDArray[np.int8]:
    """Return `_sixty_twenty_twenty` of the patients of frames."""
    return _sixty_twenty_twenty(len(index.patient_names), seed)


def balanced(index: Index, seed: int) -> None:
    """Return None, so that the integer programme of `split_program` splits the patients."""


def _sixty_twenty_twenty(patients: int, seed: int) -> NDArray[np.int8]:
    """Return floor(0.6 n) patients for training, floor(0.2 n) for validation, the rest for test: [n] int8."""
    return _shuffled(patients, 6 * patients // 10, 2 * patients // 10, seed)


def test_first(patients: int, seed: int) -> NDArray[np.int8]:
    """Return floor(0.2 n) patients for test, floor(0.2) of the rest for validation, the others for training: [n] int8.

    Gives the paper's 4402 / 1100 / 1375 for 6877 patients.
    """
    test = patients // 5
    validation = (patients - test) // 5
    return _shuffled(patients, patients - test - validation, validation, seed)


def within_groups(groups: NDArray[np.int64], seed: int) -> NDArray[np.int8]:
    """Return `_sixty_twenty_twenty` within each group of patients; groups [n] int64.

    Gives the paper's 6387 / 2129 / 2130 for terms of 5226, 2860 and 2560 patients.
    """
    split = np.zeros(len(groups), np.int8)
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        split[members] = _shuffled(len(members), 6 * len(members) // 10, 2 * len(members) // 10, seed, int(group))
    return split


def _shuffled(patients: int, training: int, validation: int, *seeds: int) -> NDArray[np.int8]:
    split = np.full(patients, TEST, np.int8)
    order = np.random.default_rng([*seeds, patients]).permutation(patients)
    split[order[:training]] = TRAINING
    split[order[training : training + validation]] = VALIDATION
    return split
