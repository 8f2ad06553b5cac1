"""Checks of values given to config fields."""

from __future__ import annotations

import itertools
import math
import numbers
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from clops_sweep.errors import UsageError, shown


def is_number(value: Any) -> bool:
    """Return whether a value is a Python or NumPy number, finite or not, and not a bool."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def kind_in_words(value: Any) -> str:
    """Describe the type of a value for a sentence."""
    return "text" if isinstance(value, str) else type(value).__name__


def as_number(value: Any) -> Any:
    """Return a number as a plain Python number, the same for equal ones, and None unchanged.

    Raises:
        ValueError: another type, such as True or "20".
    """
    if value is None:
        return None
    if not is_number(value):
        raise ValueError(f"expected a number, not {kind_in_words(value)}")
    return (value if isinstance(value, float) else as_python(value)) + 0  # no -0.0


def as_bool(value: Any) -> Any:
    """Return a bool of NumPy as Python's own, and anything else unchanged."""
    return bool(value) if type(value).__name__ in ("bool", "bool_") else value


def is_whole(value: Any) -> bool:
    """Return whether a value is an integer, such as 20 or 20.0."""
    return is_number(value) and (isinstance(value, numbers.Integral) or bool(value == value // 1))


def as_python(value: Any) -> Any:
    """Convert NumPy, pandas and PyTorch arrays and scalars to Python lists and scalars.

    Floats are rounded to 12 significant digits: `numpy.arange(0.1, 0.5, 0.1)` holds 0.30000000000000004. Those of
    single or half precision become their shortest decimal.
    """
    convert = getattr(value, "tolist", None)
    if not callable(convert) or isinstance(value, type):
        return _rounded(value, float)
    name = str(getattr(value, "dtype", "")).rpartition(".")[2].lower()
    if name not in ("float32", "float16"):
        return _rounded(convert(), float)
    import numpy as np

    return _rounded(convert(), np.float32 if name == "float32" else np.float16)


def _rounded(value: Any, kind: Callable[[float], Any]) -> Any:
    if isinstance(value, list):
        return [_rounded(item, kind) for item in value]
    return float(f"{float(str(kind(value))):.12g}") if isinstance(value, float) else value


def length(values: Any) -> int | None:
    """Return the length of a list, range, array or mapping; None for values without length."""
    try:
        return len(values)
    except TypeError:
        return None
    except OverflowError:  # a range that is longer than memory
        return sys.maxsize


def as_list(values: Any) -> list[Any]:
    """Convert a list, tuple, range, array or series to a list of Python values.

    Raises:
        UsageError: another type, such as text, a mapping, a set or an iterator.
    """
    values = as_python(values)
    if not isinstance(values, Sequence) or isinstance(values, str | bytes | bytearray):
        raise UsageError(f"expected a list of values, not {kind_in_words(values)}")
    return [as_python(value) for value in values]


def has_twice(values: Sequence[Any]) -> bool:
    """Return whether a value occurs twice; 1, 1.0 and True are equal.

    Raises:
        UsageError: a value is of a type that cannot be compared.
    """
    try:
        return len({_hashable(value) for value in values}) < len(values)
    except TypeError:
        raise UsageError("expected numbers, text or lists of them") from None


def _hashable(value: Any) -> Any:
    return tuple(_hashable(item) for item in value) if isinstance(value, list | tuple) else value


def groups_of_classes(value: Any) -> tuple[tuple[int | str, ...], ...]:
    """Return groups of classes by number or name, as in `task_classes`.

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
        if not all(isinstance(label, str) or (is_whole(label) and abs(label) < 2**31) for label in group):
            raise ValueError(f"{expected}, by number or name")
        groups.append(tuple(label if isinstance(label, str) else int(label) for label in group))
    classes = list(itertools.chain.from_iterable(groups))
    if len(set(classes)) < len(classes):
        twice = Counter(classes).most_common(1)[0][0]
        raise ValueError(f"class {shown(twice)} is there twice; expected every class in one task")
    return tuple(groups)


def count_of(fraction: float, size: int) -> int:
    """Return max(1, floor(fraction * size)), with tolerance for rounding: 0.29 of 100 is 29."""
    return max(1, math.floor(fraction * size + 1e-9))
