"""Pooled folds: every person is tested once, by a model that was trained without them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clops_sweep.errors import UsageError, several

from .paired import Paired


def check_tested_once(tested: Sequence[Paired], names: Sequence[str]) -> None:
    """Check that no person is in the test sets of two folds.

    Args:
        tested: all test instances of each fold.
        names: names of the folds.

    Raises:
        UsageError: a person, or an instance, is tested in two folds.
    """
    fold_of_person: dict[str, str] = {}
    for paired, name in zip(tested, names, strict=True):
        for person in np.unique(paired.patients.astype(str)).tolist():
            first = fold_of_person.setdefault(person, name)
            if first != name:
                raise UsageError(
                    f"a {paired.unit} is tested in {first} and in {name}, but pooled folds count each one once; "
                    "expected folds of one edition of the data"
                )


def tested_once(k: int, people: int, unit: str) -> str:
    """Return a sentence on what pooled folds judge."""
    return (
        f"Each of the {several(people, unit)} is judged by one of {k} models, which was trained without them. The {k} "
        f"models have one recipe: equal settings, trained on different {unit}s. So the verdict is about the recipe, "
        "and no single model was tested on everyone."
    )
