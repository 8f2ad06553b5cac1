"""Modules beside a search space, script, notebook or test, which other processes may lack."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from clops_sweep.data.local_code import is_installed

_last: list[str] = []


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Make modules in a folder importable in the block, in which a search-space file of that folder is executed.

    On exit, these modules are removed from `sys.modules`, so that another folder may have modules of the same names.
    Imported objects stay valid and are pickled by value, so workers do not need the files. Until the next folder, this
    one stays last in `sys.path`, for functions that import a module when they are called.
    """
    folder = folder.resolve()
    offered = {name for name in _names_in(folder) if _is_replaceable(name)}
    names = [name for name in list(sys.modules) if name.partition(".")[0] in offered] if offered else []
    hidden = {name: sys.modules.pop(name) for name in names}
    before = set(sys.modules)
    place = str(folder)
    while _last and (former := _last.pop()) in sys.path:
        sys.path.remove(former)
    sys.path.insert(0, place)
    importlib.invalidate_caches()  # otherwise, modules written a moment ago are not found
    try:
        yield
    finally:
        if place in sys.path:
            sys.path.remove(place)
        if place not in sys.path:
            sys.path.append(place)
            _last.append(place)
        for name in _imported(folder, before):
            del sys.modules[name]
        sys.modules.update(hidden)


def _names_in(folder: Path) -> Iterator[str]:
    """Yield the names of the modules and packages in a folder."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if (folder / name / "__init__.py").is_file():
            yield name
        if name.endswith(".py"):
            yield name.removesuffix(".py")


def _is_replaceable(name: str) -> bool:
    """Return whether a module of this name is imported and not an installed one, which keeps its name."""
    module = sys.modules.get(name)
    if name in ("clops_sweep", "__main__") or name in sys.stdlib_module_names or module is None:
        return False
    file = _place(module)
    return file is not None and not is_installed(file)


def local_modules() -> tuple[ModuleType, ...]:
    """Return the imported modules that are neither installed nor ours."""
    known = list(sys.modules.items())  # another thread may import meanwhile
    tops = {name for name, module in known if name == module.__name__.partition(".")[0]}
    files = {top: _place(sys.modules[top]) for top in tops - {"clops_sweep", "__main__"}}
    local = {top for top, file in files.items() if file is not None and not is_installed(file)}
    return tuple(module for name, module in known if name.partition(".")[0] in local)


def _imported(folder: Path, before: set[str]) -> list[str]:
    """Return the modules imported from a folder since `before`, including submodules of packages."""
    packages = {name: name.partition(".")[0] for name in sys.modules.keys() - before}
    roots = {
        name for name in set(packages.values()) - before if name in sys.modules and _place(sys.modules[name]) == folder
    }
    return [name for name, package in packages.items() if package in roots]


def _place(module: ModuleType) -> Path | None:
    """Return the folder that contains a top-level module or package; None if it has no file."""
    spec = getattr(module, "__spec__", None)
    locations = getattr(spec, "submodule_search_locations", None)
    file = next(iter(locations), None) if locations else getattr(module, "__file__", None)
    return Path(file).resolve().parent if isinstance(file, str) else None
