"""Hash of what the text of a file does not tell of its functions: which definition one is, and the values it reads."""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
import tokenize
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any

from clops_sweep.data.source_code import functions_of, global_names, is_plain, source_file

_OF_PATHS = ("/", "\\")
"""Signs of texts that are paths."""


def read_hash(member: Any) -> str | None:
    """Return the hex SHA-256 of the own text of a function or class of a file, and of the values that it reads.

    A file may define a name twice, in a loop, or within a function. Then the text behind the name is the same, and
    these differ. Values are the numbers and texts among its globals, its defaults and the variables of functions around
    it, also those that the functions among these read. Paths do not count: they differ from machine to machine.

    None without a file; see `source_code.code_hash`.
    """
    if not isinstance(member, FunctionType | type) or source_file(member) is None:
        return None
    digest = hashlib.sha256()
    for text in _texts(member, set()):
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()


def _texts(member: Any, seen: set[int]) -> Iterator[str]:
    """Yield the own text of each function of a member, and its values in the order of their names."""
    seen.add(id(member))
    if isinstance(member, type):
        yield from _plain_texts(vars(member))
    for function in functions_of(member):
        values = _read_by(function)
        yield _own_text(function)
        yield from _plain_texts(values)
        for _, value in sorted(values.items()):
            is_beside = isinstance(value, FunctionType | type) and value.__module__ == function.__module__
            if is_beside and id(value) not in seen:
                yield from _texts(value, seen)


def _plain_texts(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield numbers and texts by name, without paths and names of Python's own."""
    for name, value in sorted(values.items()):
        is_path = isinstance(value, str) and any(sign in value for sign in _OF_PATHS)
        if is_plain(value) and not is_path and not name.startswith("__"):
            yield f"{name} = {value!r}"


def _own_text(function: FunctionType) -> str:
    """Return the text of a definition without its decorators; that of the line for a lambda."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, tokenize.TokenError):  # the file has changed meanwhile
        return ""
    try:
        (statement,) = ast.parse(text).body
    except (SyntaxError, ValueError):  # a lambda within a call of several lines
        return text
    return ast.get_source_segment(text, statement) or text


def _read_by(function: FunctionType) -> dict[str, Any]:
    """Return the globals, defaults and variables of functions around it that a function reads, by name."""
    values = {name: function.__globals__.get(name) for name in global_names(function.__code__)}
    for number, default in enumerate(function.__defaults__ or ()):
        values[f"default {number}"] = default
    values |= function.__kwdefaults__ or {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return values
