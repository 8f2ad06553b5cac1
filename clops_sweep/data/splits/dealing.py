"""Assignment of people to parts: folds, and a share of the training people for validation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.frames import TEST, TRAINING, VALIDATION
from clops_sweep.data.splits.split_program import FRACTIONS, required_patients

Quotas = Callable[[int], Sequence[float]]
"""The share of each part in a number of people or frames."""


def stratified_split(counts: NDArray[np.int64], seed: int) -> NDArray[np.int8]:
    """Return TRAINING, VALIDATION or TEST for every person, [people] int8, by iterative stratification.

    Each column is dealt 60, 20 and 20 percent of its people, and at least `required_patients`, as far as people with
    several columns allow.

    Args:
        counts: frames of every person and column, [people, K], as `strata` returns them.
        seed: the split seed.
    """
    random = _stream(seed, "stratified")
    parts = deal(counts, FRACTIONS, random, _covering)
    return parts.astype(np.int8)


def strata(counts: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the frames of every person in each group with each class, and in each group, [people, G * C + G].

    Args:
        counts: frames of every person, group and class, [people, G, C].
        groups: frames of every person and group, [people, G]; a frame with several classes counts once.
    """
    people = len(counts)
    of_cells = counts.reshape(people, -1)
    return np.hstack([of_cells, groups])


def fold_split(
    counts: NDArray[np.int64], i: int, k: int, seed: int, fixed: NDArray[np.int64] | None = None
) -> NDArray[np.int8]:
    """Return the split of every person in fold i of k, [people] int8: part i is the test set, part i + 1 validation.

    The parts depend only on counts, k, seed and `fixed`. Part 1 follows part k.

    Args:
        counts: frames of every person and class, [people, C].
        i: the fold, from 1 to k.
        k: number of parts.
        seed: the split seed.
        fixed: the part that a person is in, from 0, [people]; -1 for a person who is dealt. None if all are.
    """
    parts = deal(counts, [1 / k] * k, _stream(seed, "folds", k), fixed=fixed)
    split = np.full(len(counts), TRAINING, np.int8)
    split[parts == i - 1] = TEST
    split[parts == i % k] = VALIDATION
    return split


def validation_share(counts: NDArray[np.int64], share: float, seed: int) -> NDArray[np.bool_]:
    """Return which of the training people are for validation, [people] bool; counts as in `fold_split`."""
    parts = deal(counts, [1 - share, share], _stream(seed, "validation share"))
    return np.asarray(parts == 1)


def deal(
    counts: NDArray[np.int64],
    shares: Sequence[float],
    random: np.random.Generator,
    quotas: Quotas | None = None,
    fixed: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Return the part of every person, [people], balanced over classes by iterative stratification.

    The class with the fewest unassigned people comes first, in a random order. A person goes to the part that lacks
    most people of this class, relative to the part's share. Ties are broken by the person's other classes, then by
    frames of this class, then by people. (Sechidis, Tsoumakas and Vlahavas, "On the stratification of multi-label
    data", 2011, with people as examples.)

    Args:
        counts: frames of every person and class, [people, C].
        shares: the share of every part; they add up to 1.
        random: generator of the order.
        quotas: the share of each part in the people of a class; by default in proportion to `shares`.
        fixed: the part that a person is in already, [people]; -1 for a person who is dealt. None if all are.
    """
    people = len(counts)
    carries = counts > 0
    parts = np.full(people, -1, np.int64) if fixed is None else fixed.copy()
    order = random.permutation(people)
    needs = _Needs(counts, shares, quotas or partial(_shared, shares=shares))
    for person in np.flatnonzero(parts >= 0).tolist():
        needs.give(person, int(parts[person]))
    left = carries[parts < 0].sum(0)
    while left.any():
        code = int(np.argmin(np.where(left > 0, left, people + 1)))
        for person in order[carries[order, code] & (parts[order] < 0)].tolist():
            parts[person] = needs.neediest(person, code)
            needs.give(person, parts[person])
        left = carries[parts < 0].sum(0)
    for person in order[parts[order] < 0].tolist():  # people without a class
        parts[person] = needs.neediest_of_people()
        needs.give(person, parts[person])
    return parts


class _Needs:
    """What each part still lacks of its share: people, people of each class, and frames of each class."""

    def __init__(self, counts: NDArray[np.int64], shares: Sequence[float], quotas: Quotas) -> None:
        people_of_class = (counts > 0).sum(0).tolist()
        frames_of_class = counts.sum(0).tolist()
        self._counts = counts
        self._parts = range(len(shares))
        self._people_of_class = people_of_class
        self._people = [share * len(counts) for share in shares]
        self._of_class = [[*quotas(many)] for many in people_of_class]
        self._frames = [_shared(many, shares) for many in frames_of_class]

    def neediest(self, person: int, code: int) -> int:
        """Return the part for a person of a class."""
        classes = self._classes(person)

        def need(part: int) -> tuple[float, ...]:
            of_classes = sum(self._of_class[other][part] / self._people_of_class[other] for other in classes)
            return self._of_class[code][part], of_classes, self._frames[code][part], self._people[part]

        return max(self._parts, key=need)

    def neediest_of_people(self) -> int:
        """Return the part for a person without a class."""
        return max(self._parts, key=self._people.__getitem__)

    def give(self, person: int, part: int) -> None:
        """Count a person that a part has got."""
        self._people[part] -= 1
        for code in self._classes(person):
            self._of_class[code][part] -= 1
            self._frames[code][part] -= int(self._counts[person, code])

    def _classes(self, person: int) -> list[int]:
        classes: list[int] = np.flatnonzero(self._counts[person]).tolist()
        return classes


def _shared(many: int, shares: Sequence[float]) -> list[float]:
    return [share * many for share in shares]


def _covering(many: int) -> list[float]:
    """Return 60, 20 and 20 percent of a number of people, with at least `required_patients` in the last two parts."""
    _, least_validation, least_test = required_patients(many)
    _, of_validation, of_test = FRACTIONS
    validation = max(of_validation * many, least_validation)
    test = max(of_test * many, least_test)
    return [many - validation - test, validation, test]


def _stream(seed: int, name: str, *counters: int) -> np.random.Generator:
    """Return a generator at the start of a named stream of the split seed."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    return np.random.default_rng([seed, number, *counters])
