"""What code keeps outside the attributes of objects, which checkpoints leave out: closures, globals and defaults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from clops_sweep.data.source_code import global_names


def functions_of_class(class_: type) -> list[FunctionType]:
    """Return the methods of a class, without those of its bases."""
    functions = []
    for value in vars(class_).values():
        function = getattr(value, "__func__", getattr(value, "fget", value))
        if isinstance(function, FunctionType):
            functions.append(function)
    return functions


def used_by(functions: Iterable[FunctionType]) -> dict[str, Any]:
    """Return what is in closures, globals, defaults and attributes of functions and of those that they use, by name.

    Of the functions that they use, only those of their own modules count.
    """
    waiting = list(functions)
    own = {function.__module__ for function in waiting}
    seen = set[FunctionType]()
    values = dict[str, Any]()
    while waiting:
        function = waiting.pop()
        if function in seen or function.__module__ not in own:
            continue
        seen.add(function)
        for name, value in _values_of(function):
            if isinstance(value, FunctionType):
                waiting.append(value)
            else:
                values[name] = value
    return values


def numbers_in_code(method: type, base: type) -> dict[str, object]:
    """Return the numbers in closures, globals and defaults of a class and its bases, without those of a common base.

    Numbers in dictionaries count. Lists do not: they are often logs, which decide nothing.
    """
    functions = []
    for class_ in method.__mro__:
        if not issubclass(base, class_):
            functions += functions_of_class(class_)
    numbers = dict[str, object]()
    for name, value in used_by(functions).items():
        if isinstance(value, int | float):
            numbers[name] = value
        elif type(value) is dict:
            for key, number in value.items():
                if isinstance(number, int | float):
                    numbers[f"{name}[{key!r}]"] = number
    return numbers


def _values_of(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the values in the closure, the globals, the defaults and the attributes of a function, by name."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    for name in _global_names(function.__code__):
        yield name, function.__globals__.get(name)
    for number, value in enumerate(function.__defaults__ or ()):
        yield f"default {number} of {function.__name__}", value
    for name, value in vars(function).items():
        yield f"{function.__name__}.{name}", value


@lru_cache(maxsize=1024)
def _global_names(code: CodeType) -> frozenset[str]:
    return frozenset(global_names(code))
