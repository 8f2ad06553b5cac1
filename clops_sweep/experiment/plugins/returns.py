"""Whether a function can return a value, from its source."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator


def never_returns_a_value(function: object) -> bool:
    """Return whether a function ends without a value, however it ends.

    False for functions that only raise, for generators, and for code whose source is not available.
    """
    if not inspect.isfunction(function):
        return False
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return False
    if not isinstance(definition, ast.FunctionDef) or isinstance(definition.body[-1], ast.Raise):
        return False
    for node in _own_nodes(definition):
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return False
        if isinstance(node, ast.Return) and not _is_none(node.value):
            return False
    return True


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _own_nodes(definition: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of functions and classes inside it."""
    for child in ast.iter_child_nodes(definition):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield child
            yield from _own_nodes(child)
