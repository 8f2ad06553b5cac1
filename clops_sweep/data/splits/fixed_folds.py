"""Folds that are given for people, such as those of an earlier edition of a data set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clops_sweep.errors import UsageError, listed, shown


@dataclass(frozen=True)
class FixedFolds:
    """The folds of one split seed.

    Attributes:
        split_seed: the split seed.
        k: number of folds.
        parts: the fold of each person, from 1; 0 for people without one, who are dealt.
    """

    split_seed: int
    k: int
    parts: tuple[int, ...]

    @property
    def dealt(self) -> NDArray[np.int64]:
        """The part of each person, from 0, [people]; -1 for people who are dealt."""
        return np.array(self.parts, np.int64) - 1


def fixed_folds(
    given: tuple[FixedFolds, ...], dataset: str, split: str, k: int, split_seed: int
) -> NDArray[np.int64] | None:
    """Return `FixedFolds.dealt` of a split seed; None if no folds are given.

    Args:
        given: the given folds of each split seed.
        dataset: name of the data set.
        split: name of the fold.
        k: number of folds.
        split_seed: the split seed.

    Raises:
        UsageError: folds are given of other split seeds, or another number of them.
    """
    if not given:
        return None
    by_seed = {folds.split_seed: folds for folds in given}
    if split_seed not in by_seed:
        raise UsageError(
            f"dataset {dataset!r}: split_seed = {split_seed}: its folds are given for split_seed "
            f"{listed(map(str, by_seed))}; take one of them"
        )
    folds = by_seed[split_seed]
    if folds.k != k:
        raise UsageError(
            f"dataset {dataset!r}: split = {shown(split)}: its folds are given, and they are {folds.k}; expected "
            f"fold:1/{folds.k} to fold:{folds.k}/{folds.k}"
        )
    return folds.dealt
