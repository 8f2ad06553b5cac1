"""Pooled folds: every person is tested once, by a model that was trained without them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clops_sweep.errors import UsageError, several

from .copies import by_id_alone
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


def tested_once(k: int, people: int, unit: str, recipes: int, *, are_doubted: bool) -> str:
    """Return sentences on what pooled folds judge.

    Args:
        k: number of folds.
        people: number of people that are tested.
        unit: what they are in words.
        recipes: 2 if the models of another recipe are replaced.
        are_doubted: whether one person may be there under two names.
    """
    doubt = by_id_alone(unit) if are_doubted else ""
    if recipes == 2:
        return (
            f"Each of the {several(people, unit)} is judged once before and once after: by one of {k} models of the "
            f"recipe that is replaced, and by one of {k} models of the new one, each trained without them{doubt}. So "
            "the verdict is about two recipes, and no single model was tested on everyone."
        )
    return (
        f"Each of the {several(people, unit)} is judged by one of {k} models, which was trained without them{doubt}. "
        f"The {k} models have one recipe: equal settings, trained on different {unit}s. So the verdict is about the "
        "recipe, and no single model was tested on everyone."
    )
