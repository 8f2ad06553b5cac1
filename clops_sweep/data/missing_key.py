"""Errors about a key that a file or a table of a user's function lacks, with the keys that are there."""

from __future__ import annotations

import ast
import linecache
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Final

from clops_sweep.data.files.folder import shorten
from clops_sweep.errors import closest, listed, shown

_MOST_KEYS: Final = 50
"""Most keys of which those that are there are named: a mapping of people or files may have 1,000s."""

_OF_MAT: Final = ("__header__", "__version__", "__globals__")
"""Keys that scipy adds to the variables of a MAT file."""


def missing_key(error: BaseException, *, named: Path | None = None, only: Path | None = None) -> str:
    """Return which key is not there, with the keys that are; empty if the error is another or they are unknown.

    Libraries name neither the file nor its keys. Both are those of the object that was asked for the key.

    Args:
        error: the error, with its traceback.
        named: the file that the message names already.
        only: the file of objects that were read from one and do not know it.
    """
    if not isinstance(error, KeyError):
        return ""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    asked = [_asked_of_name(frames[-1], error), *map(_asked_of_library, reversed(frames))]
    for holder, key in filter(None, asked):
        keys = _keys_of(holder)
        if key in keys or not 0 < len(keys) <= _MOST_KEYS:
            continue
        file = _file_of(holder, only)
        begin = "there is" if file is None or file == named else f"{shorten(file)} has"
        similar = closest(key, keys)
        hint = "" if similar is None else f" (did you mean {shown(similar)}?)"
        return f"{begin} no {shown(key)}{hint}, but {listed(keys)}"
    return ""


def _keys_of(holder: Any) -> list[str]:
    """Return the keys of a file, table or dictionary; none if it is closed."""
    try:
        return [str(key) for key in holder if key not in _OF_MAT]
    except Exception:  # of the library that closed it
        return []


def _asked_of_library(frame: FrameType) -> tuple[Any, str] | None:
    """Return the object of a library that is asked for a key in a frame, and the key; None in another frame."""
    names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    if frame.f_code.co_name != "__getitem__" or len(names) != 2:
        return None
    holder, key = (frame.f_locals.get(name) for name in names)
    is_known = isinstance(holder, Mapping) or hasattr(holder, "columns")
    return (holder, key) if is_known and isinstance(key, str) else None


def _asked_of_name(frame: FrameType, error: KeyError) -> tuple[Any, str] | None:
    """Return the dictionary whose name is in the source of the failing expression, and the key; None without one."""
    failure = traceback.extract_tb(error.__traceback__)[-1]
    is_on_one_line = failure.lineno == failure.end_lineno and failure.colno is not None
    if not is_on_one_line or len(error.args) != 1 or not isinstance(error.args[0], str):
        return None
    line = linecache.getline(failure.filename, failure.lineno or 0).encode()
    try:
        expression = ast.parse(line[failure.colno : failure.end_colno], mode="eval").body
    except (SyntaxError, ValueError):  # the file has changed
        return None
    if not isinstance(expression, ast.Subscript) or not isinstance(expression.value, ast.Name):
        return None
    holder = frame.f_locals.get(expression.value.id)
    return (holder, error.args[0]) if isinstance(holder, dict) else None


def _file_of(holder: Any, only: Path | None) -> Path | None:
    """Return the file that an object was read from, if it knows it; `only` for others that were read from a file."""
    for path in (
        getattr(getattr(holder, "zip", None), "filename", None),
        getattr(getattr(holder, "file", None), "filename", None),
    ):
        if isinstance(path, str):
            return Path(path)
    is_of_mat = isinstance(holder, dict) and not holder.keys().isdisjoint(_OF_MAT)
    ending = ".mat" if is_of_mat else ".npz" if hasattr(holder, "zip") else None
    return only if only is not None and only.suffix.lower() == ending else None
