"""Acceptance criteria of an update, read from code or a TOML file."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Any

from clops_sweep.arguments import arguments_of_class
from clops_sweep.data.files.folder import one_sentence
from clops_sweep.data.files.regular_files import open_regular
from clops_sweep.errors import UsageError, nearest_or_all, prefixed, shown


@arguments_of_class
@dataclass(frozen=True)
class Criteria:
    """Limits for an update, each from 0 to 1; None for no limit.

    Each limit applies to the updated model on the compared test instances, those of earlier tasks if a run is compared
    with itself. Limits named `min_new_...` apply to the test instances of the last task alone, such as a new ward. If
    the model of a run on other data has never seen some tasks, `min_new_...` apply to each of those, and the others to
    the tasks that it has learned. A subgroup is one value of a requested column, such as sex.

    Attributes:
        max_flips: share of all instances that were right before and are wrong after.
        max_group_flips: the same share within every subgroup.
        min_accuracy: accuracy.
        max_accuracy_loss: accuracy before minus accuracy after.
        max_task_accuracy_loss: the same within an earlier task, such as a ward: by task, or one number for each of
            them. With another run, within any task that its model has learned.
        min_group_accuracy: accuracy within every subgroup.
        min_sensitivity: sensitivity of the model's decisions, by class.
        min_specificity: specificity of the model's decisions, by class.
        max_calibration_error: calibration error beyond chance; exceeded only if its whole 95 % interval is above.
        max_drift: Jensen-Shannon distance between the predicted probabilities before and after.
        min_new_accuracy: accuracy on the last task, or on each new one.
        min_new_sensitivity: sensitivity of the decisions on the last task, by class.
        min_new_specificity: specificity of the decisions on the last task, by class.
        min_patients: number of patients that each criterion needs to be judged; at least 3, also without it.
        certain: whether a criterion holds only if its verdict is certain; see `Decision`. Otherwise, it is not judged.

    Raises:
        UsageError: a limit is not a number from 0 to 1, or limits by class or task are no mapping with at least
            one of them.
    """

    max_flips: float | None = None
    max_group_flips: float | None = None
    min_accuracy: float | None = None
    max_accuracy_loss: float | None = None
    max_task_accuracy_loss: float | Mapping[str, float] | None = field(default=None, hash=False)
    min_group_accuracy: float | None = None
    min_sensitivity: Mapping[str, float] | None = field(default=None, hash=False)
    min_specificity: Mapping[str, float] | None = field(default=None, hash=False)
    max_calibration_error: float | None = None
    max_drift: float | None = None
    min_new_accuracy: float | None = None
    min_new_sensitivity: Mapping[str, float] | None = field(default=None, hash=False)
    min_new_specificity: Mapping[str, float] | None = field(default=None, hash=False)
    min_patients: int | None = None
    certain: bool = False

    def __post_init__(self) -> None:
        _check_demands(self.min_patients, self.certain)
        for name, given in vars(self).items():
            if name in _DEMANDS:
                continue
            if name not in BY_CLASS and not (name in BY_TASK and isinstance(given, Mapping)):
                limits = {name: given}
            elif given is not None and (not isinstance(given, Mapping) or not given):
                what = 'task, such as {"ICU": 0.02}' if name in BY_TASK else 'class, such as {"AF": 0.9}'
                raise UsageError(f"{name}: expected a limit by {what}, not {shown(given)}")
            else:
                limits = {f"{name}[{of!r}]": limit for of, limit in (given or {}).items()}
            for where, limit in limits.items():
                if limit is not None and not _is_share(limit):
                    raise UsageError(f"{where}: expected a number from 0 to 1, not {shown(limit)}")

    @property
    def given(self) -> bool:
        """Whether any limit is set."""
        return bool(self.limits)

    @property
    def limits(self) -> dict[str, float | Mapping[str, float]]:
        """The limits that are set, by the name of the criterion."""
        return {name: limit for name, limit in vars(self).items() if limit is not None and name not in _DEMANDS}

    @property
    def by_name(self) -> dict[str, float]:
        """Limits and demands by name, a limit of a class or task with it, as in "min_sensitivity of AF"."""
        named: dict[str, float] = {}
        for name, limit in self.limits.items():
            if isinstance(limit, Mapping):
                named |= {f"{name} of {of}": float(of_one) for of, of_one in limit.items()}
            else:
                named[name] = float(limit)
        return named | {name: float(demand) for name, demand in self.demands.items()}

    @property
    def demands(self) -> dict[str, int | bool]:
        """What is asked of all verdicts, by name."""
        return {name: vars(self)[name] for name in _DEMANDS if vars(self)[name]}


BY_CLASS = {
    "min_sensitivity": "sensitivity",
    "min_specificity": "specificity",
    "min_new_sensitivity": "sensitivity",
    "min_new_specificity": "specificity",
}
"""Criteria with a limit for each class, and the measure that each limits."""
BY_TASK = ("max_task_accuracy_loss",)
"""Criteria with a limit for each earlier task, or one for all of them."""
BY_GROUP = ("max_group_flips", "min_group_accuracy")
_DEMANDS = ("min_patients", "certain")
"""What is asked of the verdicts on all limits."""
OF_LAST_TASK = ("min_new_accuracy", "min_new_sensitivity", "min_new_specificity")
"""Criteria about the test instances of the last task alone."""


_MOST_BYTES = 2**14  # a key of half a million names takes tomllib minutes


def read_criteria(path: str | PathLike[str]) -> Criteria:
    """Read criteria from a TOML file: lines such as ``max_flips = 0.02``, and tables such as ``[min_sensitivity]``.

    Raises:
        UsageError: the file is missing, empty or not TOML, or has an unknown criterion or an invalid limit.
    """
    file = Path(path)
    with one_sentence(file), open_regular(file, _MOST_BYTES) as opened:
        content = opened.read()
    try:
        declared = tomllib.loads(content.decode())
    except RecursionError:
        raise UsageError(f"{file}: nested too deeply; expected lines such as max_flips = 0.02") from None
    except ValueError as error:  # invalid TOML or not UTF-8
        raise UsageError(f"{file}: not a TOML file ({error}); expected lines such as max_flips = 0.02") from None
    if not declared:
        raise UsageError(f"{file}: no criterion found; expected lines such as max_flips = 0.02")
    with prefixed(file):
        for table, limits in declared.items():
            for name in limits if isinstance(limits, Mapping) else ():
                if name in _known():
                    raise UsageError(
                        f"{table}: {shown(name)} is a criterion, not one of the names in this table; write it above "
                        f"the line [{table}]"
                    )
        criteria = criteria_of(declared)
    if not criteria.given:
        raise UsageError(f"{file}: has no limit; expected lines such as max_flips = 0.02")
    return criteria


def criteria_of(declared: Mapping[str, Any]) -> Criteria:
    """Return criteria from a mapping, such as ``{"max_flips": 0.02, "min_sensitivity": {"AF": 0.9}}``.

    Raises:
        UsageError: a criterion is unknown, or a limit is invalid.
    """
    for name in declared:
        if name not in _known():
            raise UsageError(f"{shown(name)} is not a criterion{nearest_or_all(str(name), _known())}")
    return Criteria(**declared)


def _known() -> list[str]:
    return [criterion.name for criterion in fields(Criteria)]


def _check_demands(min_patients: object, certain: object) -> None:
    is_whole = isinstance(min_patients, int) and not isinstance(min_patients, bool) and min_patients >= 1
    if min_patients is not None and not is_whole:
        raise UsageError(f"min_patients: expected a whole number from 1, not {shown(min_patients)}")
    if not isinstance(certain, bool):
        raise UsageError(f"certain: expected true or false, not {shown(certain)}")


def _is_share(limit: object) -> bool:
    return isinstance(limit, int | float) and not isinstance(limit, bool) and math.isfinite(limit) and 0 <= limit <= 1
