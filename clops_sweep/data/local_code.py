"""Modules that are neither installed nor ours, and what a file imports of them."""

from __future__ import annotations

import ast
import importlib.machinery
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

_INSTALLED = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_OURS = __name__.partition(".")[0]
_IMPORTERS = ("import_module", "__import__")


@cache
def is_installed(folder: Path) -> bool:
    """Return whether a folder belongs to Python or holds installed packages."""
    of_python = not {"site-packages", "dist-packages"}.isdisjoint(folder.parts)
    return of_python or any(map(folder.is_relative_to, _INSTALLED)) or any(folder.glob("*.dist-info"))


class Import(NamedTuple):
    """A module that a file imports by its dotted name; `level` is the number of leading dots of a relative import."""

    name: str
    level: int


def imports_of(node: ast.AST) -> list[Import]:
    """Return the modules that a statement may import, in its order; names that are no modules are among them."""
    imports = list[Import]()
    for part in ast.walk(node):
        if isinstance(part, ast.Import):
            imports += [Import(alias.name, 0) for alias in part.names]
        elif isinstance(part, ast.ImportFrom):
            base = part.module or ""
            imports.append(Import(base, part.level))
            imports += [Import(f"{base}.{alias.name}".strip("."), part.level) for alias in part.names]
        elif isinstance(part, ast.Call) and part.args and _called(part.func) in _IMPORTERS:
            first = part.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                imports.append(Import(first.value, 0))
    return imports


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def texts_of(imports: Sequence[Import], importer: Path | None, seen: set[Path]) -> Iterator[str]:
    """Yield the text of imported local modules, and of those that they import, each once.

    Args:
        imports: the imported modules.
        importer: the file that imports them; None for a notebook, which has no relative imports.
        seen: files whose text is known; those that are yielded are added.
    """
    for imported in imports:
        for file in _files(imported, importer):
            if file in seen:
                continue
            seen.add(file)
            text = _text(file)
            if not text.strip():  # such as the __init__.py of most packages
                continue
            yield text
            if file.suffix == ".py":
                yield from texts_of(_imports_in(text), file, seen)


def _text(file: Path) -> str:
    """Return the text of a module; the bytes of a compiled one as hexadecimal digits."""
    if file.suffix == ".py":
        return file.read_text(encoding="utf-8", errors="replace")
    return file.read_bytes().hex()


@lru_cache(maxsize=256)  # many plug-ins use the same modules
def _imports_in(text: str) -> list[Import]:
    try:
        return imports_of(ast.parse(text))
    except SyntaxError:
        return []


def _files(imported: Import, importer: Path | None) -> list[Path]:
    """Return the files that Python executes to import a local module: its packages, and itself."""
    if imported.level:
        if importer is None:
            return []
        folder = importer.parent
        for _ in range(imported.level - 1):
            folder = folder.parent
        parts = [part for part in imported.name.split(".") if part]
        return _below([folder], parts) if parts else _existing(folder / "__init__.py")
    top, *parts = imported.name.split(".")
    places = _top_level(top)
    if places is None:
        return []
    files, folders = places
    return [*files, *_below(folders, parts)]


def _existing(file: Path) -> list[Path]:
    return [file.resolve()] if file.is_file() else []


def _below(folders: Sequence[Path], parts: Sequence[str]) -> list[Path]:
    """Return the files of the packages and the module that dotted parts name, below the folders of a package."""
    below = list[Path]()
    for part in parts:
        files = [file for folder in folders for file in _existing(folder / f"{part}.py")]
        packages = [folder / part for folder in folders if (folder / part).is_dir()]
        for package in packages:
            files += _existing(package / "__init__.py")
        for folder in folders:
            for suffix in importlib.machinery.EXTENSION_SUFFIXES:
                files += _existing(folder / f"{part}{suffix}")
        below += files
        folders = packages
    return below


def _top_level(name: str) -> tuple[list[Path], list[Path]] | None:
    """Return the files and the folders of a local top-level module or package; None if it is installed or ours."""
    if not name.isidentifier() or name == _OURS or name in sys.stdlib_module_names:
        return None
    spec = getattr(sys.modules.get(name), "__spec__", None)
    if spec is None:
        try:
            spec = importlib.machinery.PathFinder.find_spec(name)
        except (ImportError, ValueError):
            return None
    if spec is None:
        return None
    folders = [Path(folder).resolve() for folder in spec.submodule_search_locations or ()]
    files = _existing(Path(spec.origin)) if spec.has_location and spec.origin else []
    places = [*(folder.parent for folder in folders), *(file.parent for file in files if not folders)]
    if not places or any(map(is_installed, places)):
        return None
    return files, folders
