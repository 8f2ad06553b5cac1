"""The plug-ins that files declare, read without executing the files: which files can be loaded together."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_Name = tuple[str, str]
"""The decorator of a plug-in, such as "dataset", and its name."""


def loadable_together(files: Sequence[Path]) -> list[list[Path]]:
    """Return files in groups: no two files of a group, or modules beside them, declare plug-ins of the same name.

    Args:
        files: Python files, of which each is put into the first group that it fits.
    """
    groups: list[tuple[list[Path], dict[_Name, Path]]] = []
    for file in files:
        declared = declared_names(file)
        for members, of_group in groups:
            if _agree(declared, of_group):
                members.append(file)
                of_group.update(declared)
                break
        else:
            groups.append(([file], dict(declared)))
    return [members for members, _ in groups]


def declared_names(file: Path) -> dict[_Name, Path]:
    """Return the file that declares each plug-in of a file: itself, or a module beside it that it imports.

    The files are read, and not executed. A file that cannot be read, or is no Python, declares nothing.
    """
    places: dict[_Name, Path] = {}
    waiting = [file.resolve()]
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        try:
            module = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        for name in _declared_in(module):
            places.setdefault(name, path)
        for imported in _imported_names(module):
            beside = path.with_name(f"{imported}.py")
            if beside not in seen and beside.is_file():
                seen.add(beside)
                waiting.append(beside)
    return places


def _agree(one: Mapping[_Name, Path], other: Mapping[_Name, Path]) -> bool:
    return all(other.get(name, file) == file for name, file in one.items())


def _declared_in(module: ast.Module) -> Iterator[_Name]:
    """Yield the names in decorators such as `@dataset("wards", ...)`."""
    for statement in module.body:
        if not isinstance(statement, ast.FunctionDef | ast.ClassDef):
            continue
        for decorator in statement.decorator_list:
            if not isinstance(decorator, ast.Call) or not decorator.args:
                continue
            name = decorator.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield ast.unparse(decorator.func).rpartition(".")[2], name.value


def _imported_names(module: ast.Module) -> Iterator[str]:
    """Yield the first parts of the names of the modules that a module imports anywhere."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]
