"""Bands of ages and other numbers, for subgroups."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from clops_sweep.data.declared.recording_checks import UNKNOWN

MOST_CODES = 3
"""Most different numbers of a column that are taken as codes, and shown one by one."""

_YEARS = 10
_YOUNGEST, _OLDEST = 10, 80


def banded(name: str, values: Sequence[str]) -> list[str]:
    """Return a column of a data set with its numbers in bands; other columns unchanged.

    Ages are in bands of 10 years up to 80. Other numbers are in four bands of about as many instances each. Up to three
    different numbers are codes and stay, except ages of which one is at least 10.

    Args:
        name: name of the column.
        values: its values as text; `UNKNOWN` is kept.
    """
    known = [value for value in values if value != UNKNOWN]
    numbers = {value: _number(value) for value in set(known)}
    found = {value: number for value, number in numbers.items() if number is not None}
    if not found or len(found) < len(numbers):
        return list(values)
    is_age = "age" in name.lower().split("_")
    if len(found) <= MOST_CODES and not (is_age and max(found.values()) >= _YOUNGEST):
        return list(values)
    if is_age:
        bands = {value: _age_band(number) for value, number in found.items()}
    else:
        bands = _quarters(found, np.array([found[value] for value in known]))
    return [bands.get(value, value) for value in values]


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _age_band(age: float) -> str:
    if age >= _OLDEST:
        return f"{_OLDEST} and older"
    low = int(age // _YEARS) * _YEARS
    return f"{low} to {low + _YEARS - 1}"


def _quarters(numbers: dict[str, float], values: np.ndarray) -> dict[str, str]:
    """Return the band of each number: between quartiles, "1: below 3.5", "2: 3.5 to below 7" and so on."""
    edges = list(dict.fromkeys(float(edge) for edge in np.quantile(values, [0.25, 0.5, 0.75])))
    names = [f"1: below {edges[0]:g}"]
    for position, (low, high) in enumerate(itertools.pairwise(edges), 2):
        names.append(f"{position}: {low:g} to below {high:g}")
    names.append(f"{len(edges) + 1}: {edges[-1]:g} and above")
    places = {text: int(np.searchsorted(edges, number, side="right")) for text, number in numbers.items()}
    return {text: names[place] for text, place in places.items()}
