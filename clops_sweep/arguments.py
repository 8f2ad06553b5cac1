"""Wrong arguments of the public functions and classes: one sentence, instead of Python's TypeError."""

from __future__ import annotations

import functools
import inspect
import itertools
import numbers
import sysconfig
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from clops_sweep.errors import UsageError, listed, nearest, several

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Class = TypeVar("_Class", bound=type)

_LIBRARY = sysconfig.get_path("stdlib")

_FIRST = ("self", "cls")
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


_PEOPLE = ("subject", "subjects", "person", "persons", "people", "group", "groups")
_FORMER = {"no_ray": "ray=False to compute in this process, ray=True for Ray, and neither to start Ray if it pays"}
"""Arguments of earlier versions, and what to write instead."""

_OF_PEOPLE = ("patients", "patient")
"""Arguments for people, who have other names in other fields."""


class WrongArguments(UsageError, TypeError):
    """A call with an unknown, missing or repeated argument; a `TypeError`, as in Python."""


def named_arguments(function: _Function, name: str | None = None) -> _Function:
    """Return a function whose calls with wrong arguments raise `WrongArguments`.

    A UsageError is raised from the call itself, so that no long traceback stands above its sentence, unless code of the
    user took part in it. The sentence names the unknown argument with the most similar known one. A call that succeeds
    costs nothing more: the arguments are compared with the signature after a TypeError only.

    Args:
        function: the function.
        name: how it is called, for the sentence; by default its name.
    """
    signature = inspect.signature(function)
    called_as = name or function.__name__

    @functools.wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except UsageError as error:
            if _is_of_user(error):
                raise
            raise error.with_traceback(None) from error.__cause__
        except TypeError:
            problem = _problem(signature, arguments, named)
            if problem is None:  # raised within the function
                raise
        raise WrongArguments(f"{called_as}: {problem}")

    return called  # type: ignore[return-value]


def _is_of_user(error: BaseException) -> bool:
    """Return whether code of the user was under way in a public function that raises an error."""
    frames = itertools.islice(traceback.walk_tb(error.__traceback__), 1, None)  # without the call itself
    for frame, _ in frames:
        file = frame.f_code.co_filename
        is_ours = frame.f_globals.get("__name__", "").partition(".")[0] == "clops_sweep"
        is_installed = "site-packages" in file or file.startswith((_LIBRARY, "<"))
        if not (is_ours or is_installed):
            return True
    return False


def arguments_of_class(cls: _Class) -> _Class:
    """Return a class whose constructor and public class methods are `named_arguments`."""
    setattr(cls, "__init__", named_arguments(vars(cls)["__init__"], cls.__name__))  # noqa: B010  # a type checker forbids it
    for name, member in list(vars(cls).items()):
        if isinstance(member, classmethod) and not name.startswith("_"):
            setattr(cls, name, classmethod(named_arguments(member.__func__, f"{cls.__name__}.{name}")))
    return cls


def _problem(signature: inspect.Signature, arguments: Sequence[Any], named: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the arguments of a call, or None."""
    try:
        signature.bind(*arguments, **named)
    except TypeError:
        pass
    else:
        return None
    parameters = [parameter for parameter in signature.parameters.values() if parameter.name not in _FIRST]
    known = [parameter.name for parameter in parameters if parameter.kind not in _ANY_NUMBER]
    ordered = [parameter.name for parameter in parameters if parameter.kind in _BY_POSITION]
    takes_any_name = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    for name in named:
        if name not in known and not takes_any_name:
            advice = _present_name(name, known) or nearest(name, known) or _other_name(name, known)
            advice = advice or f"; it takes {', '.join(known)}"
            return f"no argument {name!r}{advice}"
    given = len(arguments) - (len(signature.parameters) - len(parameters))
    if given > len(ordered):
        wanted = f"at most {len(ordered)}, the others by name" if ordered else "all by name"
        return f"{several(given, 'argument')} without a name; expected {wanted}"
    for name in ordered[:given]:
        if name in named:
            return f"{name} is given by position and by name; leave one out"
    missing = [name for name in _required(parameters) if name not in named and name not in ordered[:given]]
    labels = signature.bind_partial(*arguments, **named).arguments.get("labels")
    return f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing; {_expected(missing[0], labels)}"


def _expected(name: str, labels: Any) -> str:
    """Return what a missing argument may be, for a sentence; `labels` are those of the call, if it has any."""
    if name == "patients":
        return "expected patients=[...], or patients=None if they are unknown: each recording then counts as a person"
    if name == "classes" and labels is not None:
        found = _distinct(labels)
        if found:
            return f"expected classes=[...]; the labels are {listed(found)}"
    return f"expected {name}=..."


def _distinct(labels: Any) -> list[str]:
    """Return the distinct labels as text, sorted; none unless they are a list of texts or whole numbers."""
    array = np.asarray(labels, dtype=object)
    values = array.tolist() if array.ndim == 1 else []
    for kind in (str, numbers.Integral):
        if all(isinstance(value, kind) for value in values):
            return [str(value) for value in sorted(set(values))]
    return []


def _present_name(name: str, known: Sequence[str]) -> str:
    """Return what to write instead of the name that an argument had earlier; else ""."""
    if name in _FORMER and name not in known:
        return f"; since 0.4, write {_FORMER[name]}"
    return ""


def _other_name(name: str, known: Sequence[str]) -> str:
    """Return " (did you mean 'patients'?)" for another word for people; else ""."""
    if name.lower() in _PEOPLE:
        for meant in _OF_PEOPLE:
            if meant in known:
                return f" (did you mean {meant!r}?)"
    return ""


def _required(parameters: Sequence[inspect.Parameter]) -> list[str]:
    """Return the names of the parameters without a default."""
    required = []
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.kind not in _ANY_NUMBER:
            required.append(parameter.name)
    return required
