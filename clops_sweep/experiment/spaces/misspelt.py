"""Names that an exception of a user's code shows to be misspelt, and the names that may be meant."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import clops_sweep
from clops_sweep.errors import closest, nearest

_NOT_THERE = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")
_OURS = clops_sweep.__name__


def suggestion(error: BaseException, folder: Path) -> str:
    """Return " (did you mean 'RunConfig'?)" for an exception about a misspelt name; empty for others.

    Args:
        error: the exception.
        folder: the folder of the user's file, whose modules it may import.
    """
    if isinstance(error, ModuleNotFoundError):
        modules = [_OURS, *(file.stem for file in folder.glob("*.py"))]
        return nearest(error.name or "", modules)
    if isinstance(error, ImportError):
        match = _NOT_THERE.match(str(error))
        return "" if match is None else nearest(match[1], _public(dir(sys.modules.get(match[2]))))
    if isinstance(error, NameError) and error.name:
        return _of_variable(error.name, error)
    if isinstance(error, AttributeError) and error.name:
        return nearest(error.name, _public(dir(error.obj)))
    return ""


def without_path(said: str) -> str:
    """Return the message of an ImportError without the path of this package."""
    return re.sub(rf"(from '{_OURS}[\w.]*') \([^)]*\)$", r"\1", said)


def _of_variable(name: str, error: NameError) -> str:
    """Return the suggestion for an unknown variable: one that is defined, or what this package has of its name."""
    if name in dir(clops_sweep):
        return f" (from {_OURS} import {name})"
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    names = dir(builtins)
    if traceback is not None:
        names += [*traceback.tb_frame.f_globals, *traceback.tb_frame.f_locals]
    if closest(name, _public(names)) is None:
        names = dir(clops_sweep)
    return nearest(name, _public(names))


def _public(names: Iterable[str]) -> list[str]:
    """Return the names that do not begin with an underscore."""
    return [name for name in names if not name.startswith("_")]
