"""Checks of values given to config fields."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Sequence
from typing import Any

from clops_sweep.errors import shown


def is_number(value: Any) -> bool:
    """Whether it is a number of Python's or NumPy's own and finite or not, but no truth value."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def kind_in_words(value: Any) -> str:
    """Of what kind it is, for a sentence about it."""
    return "text" if isinstance(value, str) else type(value).__name__


def is_whole(value: Any) -> bool:
    """Whether it is a whole number, also with a decimal point."""
    return is_number(value) and (isinstance(value, numbers.Integral) or bool(value == value // 1))


def as_python(value: Any) -> Any:
    """Arrays, series and scalars of NumPy, pandas or PyTorch as Python's own lists and scalars; others as they are."""
    convert = getattr(value, "tolist", None)
    return convert() if callable(convert) and not isinstance(value, type) else value


def length(values: Any) -> int | None:
    """How many values a list, range, array or mapping has; None for what has no length."""
    try:
        return len(values)
    except TypeError:
        return None


def as_list(values: Any) -> list[Any]:
    """A list, tuple, range, array or series as a list of Python's own values.

    Raises:
        ValueError: it is something else, such as text, a mapping, a set or an iterator.
    """
    values = as_python(values)
    if not isinstance(values, Sequence) or isinstance(values, str | bytes | bytearray):
        raise ValueError(f"expected a list of values, not {kind_in_words(values)}")
    return [as_python(value) for value in values]


def has_twice(values: Sequence[Any]) -> bool:
    """Whether two values are equal, as 1, 1.0 and True are.

    Raises:
        ValueError: a value is of a type that cannot be compared.
    """
    try:
        return len({_hashable(value) for value in values}) < len(values)
    except TypeError:
        raise ValueError("expected numbers, text or lists of them") from None


def _hashable(value: Any) -> Any:
    return tuple(_hashable(it) for it in value) if isinstance(value, list | tuple) else value


def groups_of_classes(value: Any) -> tuple[tuple[int | str, ...], ...]:
    """Groups of classes by number or name, as `task_classes` has them.

    Raises:
        ValueError: they are invalid.
    """
    expected = "expected groups of two classes or more, as in [[0, 1], [2, 3]]"
    value = as_python(value)
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(expected)
    groups = []
    for group in map(as_python, value):
        if not isinstance(group, list | tuple) or len(group) < 2:
            raise ValueError(expected)
        if not all(isinstance(it, str) or (is_whole(it) and abs(it) < 2**31) for it in group):
            raise ValueError(f"{expected}, by number or name")
        groups.append(tuple(it if isinstance(it, str) else int(it) for it in group))
    classes = [it for group in groups for it in group]
    if len(set(classes)) < len(classes):
        twice = Counter(classes).most_common(1)[0][0]
        raise ValueError(f"class {shown(twice)} is there twice; expected every class in one task")
    return tuple(groups)


def count_of(fraction: float, size: int) -> int:
    """max(1, floor(fraction * size)), where the floor forgives rounding: 0.29 of 100 is 29."""
    return max(1, math.floor(fraction * size + 1e-9))
