"""Hash of the source code of a function, including everything that it uses."""

from __future__ import annotations

import ast
import dis
import hashlib
import inspect
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from clops_sweep.data.local_code import Import, imports_of, is_installed, texts_of

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
"""Types whose values are the same text in every process."""
_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
"""Instructions that read a global."""
_CHANGES = (ast.Expr, ast.AugAssign, ast.Delete)
"""Statements that bind no name but may change the value of a name."""


def source_file(member: Any) -> Path | None:
    """Return the file that defines a function or class; None in a notebook or an interpreter."""
    code = getattr(inspect.unwrap(member), "__code__", None)
    if code is None:
        methods = (getattr(value, "__code__", None) for value in vars(member).values())
        code = next((method for method in methods if method is not None), None)
    path = None if code is None else Path(code.co_filename)
    return path.resolve() if path is not None and path.is_file() else None


class CodeHashes(NamedTuple):
    """SHA-256 in hexadecimal digits of a function or class and of what it uses.

    Attributes:
        whole: with all modules that are not installed.
        beside: only with modules beside its file, as earlier versions recorded it. Both are equal if there are no
            others.
    """

    whole: str
    beside: str


def code_hash(member: Any) -> str:
    """Return the hex SHA-256 of the source text of a function or class and of everything that it uses.

    This is its own text without decorators, the statements of its file that bind the names it mentions, and so on
    recursively; and the whole text of the modules that any of them imports, wherever they are. Other statements of the
    file, such as a search space, and installed packages do not count.

    Without a file, as in a notebook, the hash is of the function's own text, or else of its byte code, and of the
    functions, classes, numbers and texts of the notebook that it uses.
    """
    return code_hashes(member).whole


def code_hashes(member: Any) -> CodeHashes:
    """Return the hashes of a function or class; see `code_hash`."""
    path = source_file(member)
    if path is None:
        digest = hashlib.sha256(_without_file(member))
        beside = digest.hexdigest()
        further = _used_in_notebook(member)
    else:
        statements = _needed(path, member.__name__)
        digest = hashlib.sha256()
        seen = {path}
        for text in _texts(path, statements, seen):
            digest.update(text.encode() + b"\0")
        beside = digest.hexdigest()
        further = _elsewhere(path, statements, seen)
    for text in further:
        digest.update(text.encode() + b"\0")
    return CodeHashes(digest.hexdigest(), beside)


def _without_file(member: Any) -> bytes:
    try:
        return inspect.getsource(member).encode()
    except (OSError, TypeError):
        code = getattr(inspect.unwrap(member), "__code__", None)
        return repr(member).encode() if code is None else _compiled(code)


def _compiled(code: CodeType) -> bytes:
    """Return the byte code of a function, with its constants and names, and of the functions that it defines."""
    constants = [value for value in code.co_consts if not isinstance(value, CodeType)]
    inner = [_compiled(value) for value in code.co_consts if isinstance(value, CodeType)]
    texts = [repr([_ordered(value) for value in constants]), repr(code.co_names), repr(code.co_varnames)]
    return b"\0".join([code.co_code, *(text.encode() for text in texts), *inner])


def _ordered(constant: Any) -> Any:
    """Return a constant whose text is the same in every process."""
    return sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant


def _used_in_notebook(member: Any, seen: set[int] | None = None, files: set[Path] | None = None) -> Iterator[str]:
    """Yield the text of what a function or class without a file uses of its notebook, in the order of names."""
    seen = set() if seen is None else seen
    files = set() if files is None else files
    seen.add(id(member))
    if isinstance(member, type) and not _has_text(member):
        yield from _of_class(member, seen, files)
    for function in functions_of(member):
        known = function.__globals__
        for name in sorted(global_names(function.__code__)):
            yield from _of_value(name, known.get(name), seen, files)
        yield from _bound_values(function, seen, files)
    for base in member.__mro__[1:] if isinstance(member, type) else ():
        if id(base) not in seen:
            yield from _of_notebook(base, seen, files)


def _of_value(name: str, value: Any, seen: set[int], files: set[Path]) -> Iterator[str]:
    """Yield the text of a value that a function uses: a module, numbers, texts, functions, or a container of them."""
    if isinstance(value, ModuleType):
        yield from texts_of([Import(value.__name__, 0)], None, files)
    elif is_plain(value):
        yield f"{name} = {value!r}"
    elif id(value) in seen:
        return
    elif isinstance(value, FunctionType | type):
        yield from _of_notebook(value, seen, files)
    elif isinstance(value, partial):
        seen.add(id(value))
        yield from _of_value(name, value.func, seen, files)
        yield from _of_value(name, [*value.args], seen, files)
        yield from _of_value(name, value.keywords, seen, files)
    elif isinstance(value, dict | list | tuple):
        seen.add(id(value))
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in items:
            yield from _of_value(f"{name}[{key!r}]" if is_plain(key) else name, part, seen, files)


def _bound_values(function: FunctionType, seen: set[int], files: set[Path]) -> Iterator[str]:
    """Yield the text of functions and containers of them among the defaults and the closure of a function.

    Plain defaults stand in its own text already, if that is known.
    """
    defaults = list(function.__defaults__ or ()) + list((function.__kwdefaults__ or {}).values())
    for number, value in enumerate(defaults):
        if not is_plain(value) or not _has_text(function):
            yield from _of_value(f"default {number}", value, seen, files)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        if name != "__class__":
            yield from _of_value(name, value, seen, files)


def _of_notebook(value: FunctionType | type, seen: set[int], files: set[Path]) -> Iterator[str]:
    """Yield the text of a function or class that a notebook defines or imports."""
    seen.add(id(value))
    is_defined_there = value.__module__ == "__main__" and source_file(value) is None
    if is_defined_there:
        yield _without_file(value).decode(errors="replace")
        yield from _used_in_notebook(value, seen, files)
    else:
        yield from texts_of([Import(value.__module__, 0)], None, files)


def is_plain(value: Any) -> bool:
    """Return whether a value is a number, a text, or a list, tuple or dictionary of such."""
    if isinstance(value, dict):
        return all(is_plain(key) and is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(is_plain, value))
    return isinstance(value, _PLAIN)


def _has_text(member: FunctionType | type) -> bool:
    """Return whether Python knows the text of a function or class, which it does not of all of a notebook."""
    try:
        inspect.getsource(member)
    except (OSError, TypeError):
        return False
    return True


def _of_class(member: type, seen: set[int], files: set[Path]) -> Iterator[str]:
    """Yield the bases, attributes and methods of a class whose text is not known."""
    yield " ".join(base.__qualname__ for base in member.__bases__)
    for name, value in vars(member).items():
        if not name.startswith("__") and not isinstance(value, FunctionType):
            yield from _of_value(name, value, seen, files)
    for function in functions_of(member):
        yield _without_file(function).decode(errors="replace")


def functions_of(member: Any) -> list[FunctionType]:
    """Return a function, or the methods of a class and of the classes within it."""
    plain = inspect.unwrap(member)
    if not isinstance(plain, type):
        return [plain] if isinstance(plain, FunctionType) else []
    functions = list[FunctionType]()
    for value in vars(plain).values():
        method = getattr(value, "__func__", getattr(value, "fget", value))
        if isinstance(method, FunctionType):
            functions.append(method)
        elif isinstance(value, type) and value.__qualname__.startswith(f"{plain.__qualname__}."):
            functions += functions_of(value)
    return functions


def global_names(code: CodeType) -> set[str]:
    """Return the names of globals that a function reads, also within functions that it defines."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname in _GLOBALS}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names |= global_names(inner)
    return names


def _needed(path: Path, name: str) -> list[_Statement]:
    """Return the statements of a file behind a name, in its order."""
    body = _statements(path.read_text(encoding="utf-8", errors="replace"))
    needed, taken = {name}, set[int]()
    while True:
        serving = set()
        for number, statement in enumerate(body):
            if number not in taken and _serves(statement, needed):
                serving.add(number)
        if not serving:
            break
        taken |= serving
        for number in serving:
            needed |= set(body[number].mentioned)
    return [body[number] for number in sorted(taken)]


def _texts(path: Path, statements: Sequence[_Statement], seen: set[Path]) -> Iterator[str]:
    """Yield the text of statements, then that of the modules beside their file."""
    for statement in statements:
        yield statement.text
    for statement in statements:
        yield from _beside(path.parent, statement.node, seen)


def _elsewhere(path: Path, statements: Sequence[_Statement], seen: set[Path]) -> Iterator[str]:
    """Yield the text of the local modules that are imported, but for those of `_beside`."""
    if is_installed(path.parent):
        return
    known = [path, *sorted(seen - {path})]
    seen |= {file.resolve() for file in known}
    for statement in statements:
        yield from texts_of(imports_of(statement.node), path, seen)
    for file in known[1:]:
        yield from texts_of(imports_of(ast.parse(file.read_text(encoding="utf-8", errors="replace"))), file, seen)


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
    decorators = set()
    for decorator in getattr(statement, "decorator_list", []):
        decorators |= {id(node) for node in ast.walk(decorator)}
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
