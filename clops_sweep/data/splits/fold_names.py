"""Names of folds, such as "fold:1/5". Imports no NumPy, so that a configuration is validated without it."""

from __future__ import annotations

import re

from clops_sweep.arguments import named_arguments
from clops_sweep.errors import UsageError, shown

_FOLD = re.compile(r"fold:([1-9][0-9]{0,5})/([1-9][0-9]{0,5})")
_FEWEST = 3


@named_arguments
def folds(k: int) -> list[str]:
    """Return the names of k folds: fold:1/k to fold:k/k.

    ``axes={"split": folds(5)}`` tests on every person once; ``axes={"split": folds(5), "split_seed": range(2)}`` twice.

    Raises:
        UsageError: k is below 3.
    """
    names = [f"fold:{i}/{k}" for i in range(1, k + 1)]
    fold_of(f"fold:1/{k}")
    return names


def fold_of(name: str) -> tuple[int, int]:
    """Return i, from 1, and k of "fold:i/k".

    Raises:
        UsageError: the name is invalid, k is below 3, or i is not from 1 to k.
    """
    match = _FOLD.fullmatch(name)
    i, k = map(int, match.groups()) if match else (0, 0)
    if k < _FEWEST or i > k:
        raise UsageError(f"split = {shown(name)}: expected fold:i/k with i from 1 to k, and k from {_FEWEST}")
    return i, k
