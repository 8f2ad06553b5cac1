"""The syntax of the product's sources, which several tests look at."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a Python file; it is parsed once for all tests of a process."""
    return tuple(ast.walk(ast.parse(path.read_text("utf-8"))))
