"""Assignment of people to parts: folds, and a share of the training people for validation."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.frames import TEST, TRAINING, VALIDATION


def fold_split(counts: NDArray[np.int64], i: int, k: int, seed: int) -> NDArray[np.int8]:
    """Return the split of every person in fold i of k, [people] int8: part i is the test set, part i + 1 validation.

    The parts depend only on counts, k and seed. Part 1 follows part k.

    Args:
        counts: frames of every person and class, [people, C].
        i: the fold, from 1 to k.
        k: number of parts.
        seed: the split seed.
    """
    parts = deal(counts, [1 / k] * k, _stream(seed, "folds", k))
    split = np.full(len(counts), TRAINING, np.int8)
    split[parts == i - 1] = TEST
    split[parts == i % k] = VALIDATION
    return split


def validation_share(counts: NDArray[np.int64], share: float, seed: int) -> NDArray[np.bool_]:
    """Return which of the training people are for validation, [people] bool; counts as in `fold_split`."""
    parts = deal(counts, [1 - share, share], _stream(seed, "validation share"))
    return np.asarray(parts == 1)


def deal(counts: NDArray[np.int64], shares: Sequence[float], random: np.random.Generator) -> NDArray[np.int64]:
    """Return the part of every person, [people], balanced over classes by iterative stratification.

    The class with the fewest unassigned people comes first, in a random order. A person goes to the part that lacks
    most people of this class, relative to the part's share. Ties are broken by the person's other classes, then by
    frames of this class, then by people. (Sechidis, Tsoumakas and Vlahavas, "On the stratification of multi-label
    data", 2011, with people as examples.)

    Args:
        counts: frames of every person and class, [people, C].
        shares: the share of every part; they add up to 1.
        random: generator of the order.
    """
    people = len(counts)
    carries = counts > 0
    of_class = np.maximum(carries.sum(0), 1).tolist()
    lacking = [[share * int(many) for share in shares] for many in carries.sum(0)]
    lacking_frames = [[share * int(many) for share in shares] for many in counts.sum(0)]
    lacking_people = [share * people for share in shares]
    parts = np.full(people, -1, np.int64)
    order = random.permutation(people)

    def place(person: int, code: int | None) -> None:
        own = np.flatnonzero(carries[person]).tolist()

        def need(part: int) -> tuple[float, ...]:
            others = sum(lacking[it][part] / of_class[it] for it in own)
            if code is None:
                return (lacking_people[part],)
            return lacking[code][part], others, lacking_frames[code][part], lacking_people[part]

        part = max(range(len(shares)), key=need)
        parts[person] = part
        lacking_people[part] -= 1
        for it in own:
            lacking[it][part] -= 1
            lacking_frames[it][part] -= int(counts[person, it])

    left = carries.sum(0)
    while left.any():
        code = int(np.argmin(np.where(left > 0, left, people + 1)))
        for person in order[carries[order, code] & (parts[order] < 0)].tolist():
            place(person, code)
        left = carries[parts < 0].sum(0)
    for person in order[parts[order] < 0].tolist():  # people without a class
        place(person, None)
    return parts


def _stream(seed: int, name: str, *counters: int) -> np.random.Generator:
    """Return a generator at the start of a named stream of the split seed."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    return np.random.default_rng([seed, number, *counters])
