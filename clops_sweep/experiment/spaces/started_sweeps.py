"""A file that a command executes must not start a sweep: it calls `sweep()` only under `if __name__ == "__main__":`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from clops_sweep.errors import UsageError

MAIN_GUARD = 'if __name__ == "__main__":'
"""The line under which a script calls `sweep()`."""

_IS_EXECUTED: ContextVar[bool] = ContextVar("_IS_EXECUTED", default=False)
"""Whether a command executes a file for its search spaces or plug-ins."""

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@contextmanager
def executed_by_command() -> Iterator[None]:
    """Refuse sweeps in the block, which executes a file for its search spaces or plug-ins."""
    token = _IS_EXECUTED.set(True)
    try:
        yield
    finally:
        _IS_EXECUTED.reset(token)


def check_may_sweep() -> None:
    """Check that no command executes a file at the moment.

    Raises:
        UsageError: a command executes a file for its search spaces or plug-ins.
    """
    if _IS_EXECUTED.get():
        raise UsageError(
            f"it calls sweep() while it is read for its search spaces or plug-ins; put the call under {MAIN_GUARD}"
        )


def line_that_sweeps(file: Path) -> int | None:
    """Return the first line of a file that calls `sweep()` whenever the file is executed; None if none is known.

    The file is read, and not executed. A call within a function counts only where the function is called, so it is
    not found.
    """
    try:
        module = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    names = {"sweep", *_other_names(module)}
    lines = [call.lineno for call in _executed_calls(module.body) if _called_name(call) in names]
    return min(lines, default=None)


def _other_names(module: ast.Module) -> Iterator[str]:
    """Yield the names under which a module imports `sweep`."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom):
            for imported in node.names:
                if imported.name == "sweep" and imported.asname:
                    yield imported.asname


def _executed_calls(nodes: Sequence[ast.AST]) -> Iterator[ast.Call]:
    """Yield the calls of some statements, without those in functions and under the guard of a script."""
    for node in nodes:
        if isinstance(node, _DEFINITIONS):
            continue
        if isinstance(node, ast.If) and _is_main_guard(node.test):
            yield from _executed_calls(node.orelse)
            continue
        if isinstance(node, ast.Call):
            yield node
        yield from _executed_calls(list(ast.iter_child_nodes(node)))


def _is_main_guard(test: ast.expr) -> bool:
    """Return whether a condition compares `__name__` with "__main__"."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = [test.left, *test.comparators]
    has_name = any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
    has_main = any(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides)
    return has_name and has_main


def _called_name(call: ast.Call) -> str:
    """Return the last name of what is called: "sweep" of `clops_sweep.sweep(...)`."""
    if isinstance(call.func, ast.Name):
        return call.func.id
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return ""
