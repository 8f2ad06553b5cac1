"""Splits of many patients: a shuffle from the seed, then floors as the paper's counts show."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.frames import TEST, TRAINING, VALIDATION
from clops_sweep.data.records import Index


def shuffled(index: Index, seed: int) -> NDArray[np.int8]:
    """`sixty_twenty_twenty` of the patients of frames."""
    return sixty_twenty_twenty(len(index.patient_names), seed)


def balanced(index: Index, seed: int) -> None:
    """Leave the patients to the integer programme of `split_program`."""


def sixty_twenty_twenty(patients: int, seed: int) -> NDArray[np.int8]:
    """floor(0.6 n) training, floor(0.2 n) validation, the rest test: [n] int8."""
    return _shuffled(patients, 6 * patients // 10, 2 * patients // 10, seed)


def test_first(patients: int, seed: int) -> NDArray[np.int8]:
    """floor(0.2 n) test, then floor(0.2) of what is left validation, the rest training: [n] int8.

    Gives the 4402 / 1100 / 1375 of the paper for 6877 patients.
    """
    test = patients // 5
    validation = (patients - test) // 5
    return _shuffled(patients, patients - test - validation, validation, seed)


def within_groups(groups: NDArray[np.int64], seed: int) -> NDArray[np.int8]:
    """`sixty_twenty_twenty` within each group of patients; groups [n] int64.

    Gives the 6387 / 2129 / 2130 of the paper for terms of 5226, 2860 and 2560 patients.
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
