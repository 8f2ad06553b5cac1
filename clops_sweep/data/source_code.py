"""Hash of the source code of a function, including everything that it uses."""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

_CHANGES = (ast.Expr, ast.AugAssign, ast.Delete)
"""Statements that bind no name but may change the value of a name."""


def source_file(member: Any) -> Path | None:
    """Return the file that defines a function or class; None in a notebook or an interpreter."""
    code = getattr(inspect.unwrap(member), "__code__", None)
    if code is None:
        methods = (getattr(value, "__code__", None) for value in vars(member).values())
        code = next((each for each in methods if each is not None), None)
    path = None if code is None else Path(code.co_filename)
    return path.resolve() if path is not None and path.is_file() else None


def code_hash(member: Any) -> str:
    """Return the hex SHA-256 of the source text of a function or class and of everything that it uses.

    This is its own text without decorators, the statements of its file that bind the names it mentions, and so on
    recursively; and the whole text of the modules beside the file that any of them imports. Other statements of the
    file, such as a search space, and installed packages do not count. Without a file, as in a notebook, the hash is of
    the function's own text, or else of its byte code.
    """
    path = source_file(member)
    if path is None:
        return hashlib.sha256(_without_file(member)).hexdigest()
    digest = hashlib.sha256()
    for text in _texts(path, member.__name__):
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()


def _without_file(member: Any) -> bytes:
    try:
        return inspect.getsource(member).encode()
    except (OSError, TypeError):
        code = getattr(inspect.unwrap(member), "__code__", None)
        return repr(member).encode() if code is None else code.co_code + repr(code.co_consts).encode()


def _texts(path: Path, name: str) -> Iterator[str]:
    """Yield the statements behind a name, in the order of the file, then the text of the modules beside it."""
    body = _statements(path.read_text(encoding="utf-8", errors="replace"))
    needed, taken = {name}, set[int]()
    while True:
        found = {place for place, statement in enumerate(body) if place not in taken and _serves(statement, needed)}
        if not found:
            break
        taken |= found
        needed |= {mentioned for place in found for mentioned in body[place].mentioned}
    for place in sorted(taken):
        yield body[place].text
    seen = {path}
    for place in sorted(taken):
        yield from _beside(path.parent, body[place].node, seen)


class _Statement(NamedTuple):
    """A statement of a module.

    Attributes:
        node: its syntax tree.
        text: its text, without its decorators.
        bound: the names that it binds.
        mentioned: the names that it mentions.
    """

    node: ast.stmt
    text: str
    bound: set[str]
    mentioned: set[str]


@lru_cache(maxsize=8)  # a file often registers many functions
def _statements(text: str) -> list[_Statement]:
    lines = [line.encode() for line in text.split("\n")]
    return [_Statement(node, _segment(lines, node), _bound(node), _mentioned(node)) for node in ast.parse(text).body]


def _segment(lines: list[bytes], node: ast.stmt) -> str:
    """Do what `ast.get_source_segment` does, which splits the whole text again for each statement."""
    assert node.end_lineno is not None
    here = lines[node.lineno - 1 : node.end_lineno]
    here[-1] = here[-1][: node.end_col_offset]
    here[0] = here[0][node.col_offset :]
    return b"\n".join(here).decode()


def _serves(statement: _Statement, names: set[str]) -> bool:
    """Return whether a statement binds one of the names or may change its value."""
    node = statement.node
    if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
        return True
    if statement.bound & names:
        return True
    changes = isinstance(node, _CHANGES) or (
        isinstance(node, ast.Assign) and not all(isinstance(target, ast.Name) for target in node.targets)
    )
    return changes and bool(statement.mentioned & names)


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement of a module binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


def _mentioned(statement: ast.stmt) -> set[str]:
    """Return the names that a statement mentions, except those in decorators of its definition."""
    decorators = {id(node) for each in getattr(statement, "decorator_list", []) for node in ast.walk(each)}
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and id(node) not in decorators}


def _beside(folder: Path, statement: ast.AST, seen: set[Path]) -> Iterator[str]:
    """Yield the text of the modules in a folder that a statement imports, and of those that they import."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            modules = [base, *(f"{base}.{alias.name}".strip(".") for alias in node.names)]
        else:
            continue
        for module in filter(None, modules):
            stem = folder.joinpath(*module.split("."))
            for file in (stem.with_suffix(".py"), stem / "__init__.py"):
                if file in seen or not file.is_file():
                    continue
                seen.add(file)
                text = file.read_text(encoding="utf-8", errors="replace")
                yield text
                yield from _beside(folder, ast.parse(text), seen)
