"""Acceptance criteria of an update, as data."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from os import PathLike
from pathlib import Path

from clops_sweep.data.files.folder import one_sentence
from clops_sweep.errors import UsageError, nearest_or_all, shown


@dataclass(frozen=True)
class Criteria:
    """Limits that an update must keep; None for no limit. All are shares from 0 to 1.

    A criterion is about the model after the update, on the compared test instances. A subgroup is a value of a column
    that the report was asked for.

    Attributes:
        max_flips: instances that were right before and are wrong after, of all.
        max_group_flips: the same in every subgroup.
        min_accuracy: accuracy.
        max_accuracy_loss: accuracy before less accuracy after.
        min_group_accuracy: accuracy in every subgroup.
        min_sensitivity: sensitivity of the model's decisions, by class.
        min_specificity: specificity of the model's decisions, by class.
        max_calibration_error: expected calibration error.
        max_drift: Jensen-Shannon distance between the predicted probabilities before and after.

    Raises:
        UsageError: a limit that is no share, or no limit for any class.
    """

    max_flips: float | None = None
    max_group_flips: float | None = None
    min_accuracy: float | None = None
    max_accuracy_loss: float | None = None
    min_group_accuracy: float | None = None
    min_sensitivity: Mapping[str, float] | None = field(default=None, hash=False)
    min_specificity: Mapping[str, float] | None = field(default=None, hash=False)
    max_calibration_error: float | None = None
    max_drift: float | None = None

    def __post_init__(self) -> None:
        for name, given in vars(self).items():
            if name not in BY_CLASS:
                limits = {name: given}
            elif given is not None and (not isinstance(given, Mapping) or not given):
                raise UsageError(f'{name}: expected a limit by class, such as {{"AF": 0.9}}, not {shown(given)}')
            else:
                limits = {f"{name}[{of!r}]": limit for of, limit in (given or {}).items()}
            for where, limit in limits.items():
                if limit is not None and not _is_share(limit):
                    raise UsageError(f"{where}: expected a number from 0 to 1, not {shown(limit)}")

    @property
    def given(self) -> bool:
        """Whether there is any limit."""
        return any(limit is not None for limit in vars(self).values())


BY_CLASS = {"min_sensitivity": "sensitivity", "min_specificity": "specificity"}
"""Criteria by class, and what each is about."""
BY_GROUP = ("max_group_flips", "min_group_accuracy")


def read_criteria(path: str | PathLike[str]) -> Criteria:
    """Criteria in a TOML file: a line such as ``max_flips = 0.02``, a table ``[min_sensitivity]`` for limits by class.

    Raises:
        UsageError: no such file, no TOML, or a name or limit that is not one.
    """
    file = Path(path)
    with one_sentence(file):
        content = file.read_bytes()
    try:
        found = tomllib.loads(content.decode())
    except ValueError as error:  # also what is not UTF-8
        raise UsageError(f"{file}: is no TOML file ({error}); expected lines such as max_flips = 0.02") from None
    known = [it.name for it in fields(Criteria)]
    for name in found:
        if name not in known:
            raise UsageError(f"{file}: {shown(name)} is no criterion{nearest_or_all(name, known)}")
    if not found:
        raise UsageError(f"{file}: has no criterion; expected lines such as max_flips = 0.02")
    try:
        return Criteria(**found)
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from None


def _is_share(limit: object) -> bool:
    return isinstance(limit, int | float) and not isinstance(limit, bool) and math.isfinite(limit) and 0 <= limit <= 1
