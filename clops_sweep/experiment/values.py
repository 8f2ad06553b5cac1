"""What a value is that somebody has given a config field."""

from __future__ import annotations

import numbers
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


def groups_of_classes(value: Any) -> tuple[tuple[int | str, ...], ...]:
    """Groups of classes by number or name, as `task_classes` has them.

    Raises:
        ValueError: they are none.
    """
    expected = "expected groups of two classes or more, as in [[0, 1], [2, 3]]"
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(expected)
    groups = []
    for group in value:
        if not isinstance(group, list | tuple) or len(group) < 2:
            raise ValueError(expected)
        if not all(isinstance(it, str) or is_whole(it) for it in group):
            raise ValueError(f"{expected}, by number or name")
        groups.append(tuple(it if isinstance(it, str) else int(it) for it in group))
    classes = [it for group in groups for it in group]
    twice = next((it for it in classes if classes.count(it) > 1), None)
    if twice is not None:
        raise ValueError(f"class {shown(twice)} is there twice; expected every class in one task")
    return tuple(groups)
