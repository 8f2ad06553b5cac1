"""Random generators of a method's own, which make its numbers differ when a run is repeated or resumed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any, Final

import numpy as np
import torch

from clops_sweep.data.source_code import functions_of, global_names

_GENERATORS: Final = (np.random.Generator, np.random.RandomState, random.Random, torch.Generator)
_MAKERS: Final = frozenset({"default_rng", "RandomState", "SystemRandom", "Random", "Generator", "urandom", "uuid4"})
"""Names of functions and classes whose numbers differ with each call, or that make a generator."""


def own_randomness(member: type) -> str | None:
    """Return which of its own random generators a class uses, as a clause; None if none is found in its code.

    Looks at the methods of the class and of its bases outside this package, and at functions beside them that they
    call.
    """
    for cls in member.__mro__:
        if cls.__module__.startswith("clops_sweep.") or cls is object:
            continue
        for function in _with_called(cls):
            for name, value in _values_of(function):
                if isinstance(value, _GENERATORS):
                    return f"{function.__qualname__}() uses {name}, a random generator of its own"
            makers = sorted(_MAKERS & _names_in(function.__code__))
            if makers:
                return f"{function.__qualname__}() calls {makers[0]}, which makes random numbers of its own"
    return None


def _with_called(cls: type) -> Iterator[FunctionType]:
    """Yield the methods of a class, and the functions of its module that they or these call."""
    waiting = functions_of(cls)
    seen: set[int] = set()
    while waiting:
        function = waiting.pop(0)
        if id(function) in seen:
            continue
        seen.add(id(function))
        yield function
        for _, value in _values_of(function):
            if isinstance(value, FunctionType) and value.__module__ == cls.__module__:
                waiting.append(value)


def _values_of(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the globals, defaults and variables of functions around it that a function reads, by name."""
    for name in sorted(global_names(function.__code__)):
        if name in function.__globals__:
            yield name, function.__globals__[name]
    for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield "a default", value
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def _names_in(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in a function, also within functions that it defines."""
    names = set(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names |= _names_in(inner)
    return names
