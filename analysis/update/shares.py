"""Shares in words, with no more decimals than their number of patients supports."""

from __future__ import annotations

import math

from ..formats import DASH, number
from .findings import Decision
from .measures import Change, Quantity

ENOUGH_FOR_DECIMALS = 100
"""Units from which a share has a decimal: one of fewer people weighs more than a point."""

_MOST_DECIMALS = 6


def decimals_of(units: int) -> int:
    """Return the decimals of a percentage over a number of units."""
    return 1 if units >= ENOUGH_FOR_DECIMALS else 0


def percent(quantity: Quantity, units: int, signed: bool = False) -> str:
    """Format a share with its interval: "2 % [0, 4]", or "+2 points [0, 4]" if `signed`.

    From `ENOUGH_FOR_DECIMALS` units on, there is a decimal. A share above 0 is never "0 %", nor one below 1 "100 %".
    """
    return _percent(quantity, decimals_of(units), signed)


def percents(change: Change, units: int) -> tuple[str, str, str]:
    """Format shares before and after, and their difference, with intervals.

    All have one more decimal than `percent` gives if before and after round alike, but their difference does not round
    to 0, or the other way round.
    """
    before, after, difference = change.before.as_share(), change.after.as_share(), change.difference
    decimals = decimals_of(units)
    values = before.value, after.value, difference.value
    if all(map(math.isfinite, values)):
        alike = _rounded(100 * before.value, decimals) == _rounded(100 * after.value, decimals)
        is_zero = not round(100 * difference.value, decimals)
        if alike != is_zero:
            decimals += 1
    return _percent(before, decimals), _percent(after, decimals), _percent(difference, decimals, True)


def measured(decision: Decision, quantity: Quantity | None = None) -> str:
    """Format the value of a criterion and its interval.

    The value and each end of the interval have as many decimals as show on which side of the limit they are.

    Args:
        decision: the verdict.
        quantity: the value to show; by default that of the verdict.
    """
    shown = decision.measured if quantity is None else quantity
    fewest = decimals_of(decision.units)
    decimals = _decimals_to_tell(shown.value, decision.limit, fewest)
    low = _decimals_to_tell(shown.low, decision.limit, decimals)
    high = _decimals_to_tell(shown.high, decision.limit, decimals)
    return _percent(shown, decimals, of_ends=(low, high))


def _decimals_to_tell(value: float, limit: float, fewest: int) -> int:
    """Return the decimals of a percentage that show on which side of a limit a value is."""
    decimals = fewest
    while decimals < _MOST_DECIMALS and not _on_its_side(value, limit, decimals):
        decimals += 1
    return decimals


def _on_its_side(value: float, limit: float, decimals: int) -> bool:
    """Return whether a rounded percentage is below, at or above a limit as the exact one is."""
    if not math.isfinite(value) or math.isclose(value, limit, abs_tol=1e-12):
        return True
    rounded = round(100 * value, decimals)
    return (rounded < 100 * limit) == (value < limit) and not math.isclose(rounded, 100 * limit, abs_tol=1e-9)


def _percent(quantity: Quantity, decimals: int, signed: bool = False, of_ends: tuple[int, int] | None = None) -> str:
    """Format a share with its interval, whose ends can have decimals of their own."""
    if not math.isfinite(quantity.value):
        return DASH
    value = 100 * quantity.value
    text = f"{_rounded(value, decimals)} %"
    if signed:
        sign = "+" if round(value, decimals) > 0 else ""
        text = f"{sign}{number(value, decimals)} points"
    if not math.isfinite(quantity.low):
        return text
    of_low, of_high = of_ends or (decimals, decimals)
    low, high = number(100 * quantity.low, of_low), number(100 * quantity.high, of_high)
    return f"{text} [{low}, {high}]"


def _rounded(value: float, decimals: int) -> str:
    """Return a percentage: one that is neither 0 nor 100 is not rounded to them."""
    step = 10.0**-decimals
    text = number(value, decimals)
    if value > 0 and not float(text):
        return f"< {step:g}"
    if value < 100 and float(text) == 100:
        return f"> {100 - step:g}"
    return text


def bound_without_flips(units: int) -> float:
    """Return the upper 95 % bound of a share of people of whom none of n has been seen: 1 - 0.05^(1/n)."""
    return float(1 - 0.05 ** (1 / units))
