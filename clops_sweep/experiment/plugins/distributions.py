"""What a parameter of a search may be: a number within bounds, one of several values, or one of several variants.

Names and meaning are Optuna's (`optuna.distributions`), so that Optuna itself need not be imported to write them down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from clops_sweep.errors import UsageError, shown
from clops_sweep.experiment.plugins.values import as_list, as_python, has_twice, is_number, length

MOST_CHOICES = 10_000
"""Values of one categorical parameter: each is checked before anything starts."""


@dataclass(frozen=True)
class FloatDistribution:
    """A real number from `low` to `high`, both included.

    Args:
        low: the lowest value.
        high: the highest value.
        log: whether the logarithm is what varies evenly.
        step: distance between two values; None for all numbers in between.

    Raises:
        UsageError: bounds that are not finite or in the wrong order, a logarithm of what is not positive, a step that
            does not lead from `low` to `high`, or both `log` and `step`.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        _as_numbers(self, whole=False)
        _check(self, self.step, smallest=0.0)
        if self.log and self.step is not None:
            raise UsageError(f"{self}: expected log or step, not both")

    def nearest(self, value: float) -> float:
        """The value at a whole number of steps: 0.3 and not 0.1 + 0.2, so that a grid's runs are found again."""
        if self.step is None:
            return value
        low, step = Decimal(str(self.low)), Decimal(str(self.step))
        return float(low + step * round((Decimal(str(value)) - low) / step))


@dataclass(frozen=True)
class IntDistribution:
    """A whole number from `low` to `high`, both included.

    Args:
        low: the lowest value.
        high: the highest value.
        log: whether the logarithm is what varies evenly.
        step: distance between two values.

    Raises:
        UsageError: bounds that are no whole numbers or in the wrong order, a logarithm of what is not positive, a step
            that does not lead from `low` to `high`, or both `log` and `step`.
    """

    low: int
    high: int
    log: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        _as_numbers(self, whole=True)
        _check(self, self.step, smallest=1)
        if self.log and self.step != 1:
            raise UsageError(f"{self}: expected log or step, not both")


@dataclass(frozen=True)
class CategoricalDistribution:
    """One of several values, which have no order.

    Args:
        choices: the values.

    Raises:
        UsageError: no values, a text instead of a list of values, or a value twice.
    """

    choices: Sequence[Any]

    def __post_init__(self) -> None:
        what = f"CategoricalDistribution({shown(self.choices)})"
        if (length(self.choices) or 0) > MOST_CHOICES:
            raise UsageError(f"{what}: expected {MOST_CHOICES:,} values at most")
        try:
            choices = as_list(self.choices)
            twice = has_twice(choices)
        except ValueError as error:
            raise UsageError(f"{what}: {error}") from None
        if not choices:
            raise UsageError(f"{what}: expected at least one value")
        if twice:
            raise UsageError(f"{what} holds a value twice")
        object.__setattr__(self, "choices", tuple(choices))


Distribution = FloatDistribution | IntDistribution | CategoricalDistribution
Parameter = Distribution | Sequence[Any] | Mapping[str, Mapping[str, Any]]
"""A distribution; or, as on an axis, a list of values or named variants, each of which sets any number of fields."""


def of_optuna(it: Any) -> Distribution | None:
    """One of Optuna's own distributions as one of these; None for anything else.

    Raises:
        UsageError: it has no values, or none in between.
    """
    if type(it).__module__ != "optuna.distributions":
        return None
    from optuna import distributions as optunas

    if isinstance(it, optunas.CategoricalDistribution):
        return CategoricalDistribution(it.choices)
    if isinstance(it, optunas.FloatDistribution):
        return FloatDistribution(it.low, it.high, it.log, it.step)
    if isinstance(it, optunas.IntDistribution):
        return IntDistribution(it.low, it.high, it.log, it.step)
    return None


def _as_numbers(it: FloatDistribution | IntDistribution, whole: bool) -> None:
    """Store bounds and step as Python's own numbers, which a study keeps as JSON.

    Raises:
        UsageError: one is not a number, or `log` is neither True nor False.
    """
    if not isinstance(it.log, bool):
        raise UsageError(f"{type(it).__name__}: log = {shown(it.log)}: expected True or False")
    for name in ("low", "high", "step"):
        value = as_python(getattr(it, name))
        if value is None and name == "step" and not whole:
            continue
        if not is_number(value) or (whole and not isinstance(value, int)) or not _fits(value):
            kind = "a whole number" if whole else "a finite number"
            raise UsageError(f"{type(it).__name__}: {name} = {shown(value)}: expected {kind}")
        object.__setattr__(it, name, value if isinstance(value, int) else float(value))


def _fits(value: Any) -> bool:
    """Whether a number is finite, and not beyond what a float or a 64-bit integer holds."""
    try:
        return math.isfinite(value) and (not isinstance(value, int) or abs(value) < 2**63)
    except OverflowError:
        return False


def _check(it: FloatDistribution | IntDistribution, step: float | None, smallest: float) -> None:
    if it.low >= it.high:
        raise UsageError(f"{it}: expected low to be less than high")
    if it.log and it.low <= 0:
        raise UsageError(f"{it}: expected low to be positive, since log is set")
    if step is None:
        return
    if step <= 0 or step < smallest:
        raise UsageError(f"{it}: expected a positive step")
    if (Decimal(str(it.high)) - Decimal(str(it.low))) % Decimal(str(step)):
        raise UsageError(f"{it}: expected high to be low plus a multiple of step")
