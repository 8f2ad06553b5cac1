"""Search-space files: the names that a Python file defines, and the files that come with the package."""

from __future__ import annotations

import ast
import os
import runpy
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from clops_sweep.data.files.folder import shorten
from clops_sweep.errors import UsageError, closest, listed, nearest_or_all, one_line, prefixed
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.spaces.claims import Claim, check_claims
from clops_sweep.experiment.spaces.local_modules import importable
from clops_sweep.experiment.spaces.misspelt import suggestion, without_path
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.experiment.spaces.started_sweeps import executed_by_command

_LONGEST_SAID = 200


def load_spaces(path: Path) -> list[SearchSpace]:
    """Return the `SPACE` of a search-space file, always as a list; see `load_file`."""
    return load_file(path)[0]


def load_file(path: Path) -> tuple[list[SearchSpace], tuple[Claim, ...]]:
    """Return the `SPACE` of a search-space file, always as a list, and its `CLAIMS`, if any.

    The file is Python and is executed: run only files that you trust. It may import modules in its own folder; workers
    need not find them (see `importable`).

    Raises:
        UsageError: the file does not exist, raises, defines no SPACE, or imports a compiled module in its folder; a
            claim is invalid (see `check_claims`).
    """
    names = names_in(path)
    spaces = spaces_in(names)
    if not spaces:
        others = [name for name, value in names.items() if isinstance(value, SearchSpace)]
        but = f", but the search space {listed(others)}" if others else ""
        raise UsageError(f"{path} defines no SPACE{but}; expected SPACE = SearchSpace(...) or a list of them")
    names_of_spaces = [space.name for space in spaces]
    twice = sorted(name for name in names_of_spaces if names_of_spaces.count(name) > 1)
    if twice:
        raise UsageError(f"{path} has two search spaces of the name {twice[0]!r}")
    if "CLAIMS" not in names:
        return spaces, ()
    with prefixed(path):
        return spaces, claims_about(spaces, names["CLAIMS"])


def criteria_beside(path: Path) -> Path:
    """Return the path of the acceptance criteria that go with a search-space file."""
    return path.with_name(f"{path.stem}_criteria.toml")


def defines_space(path: Path) -> bool:
    """Return whether a file assigns `SPACE` at its top level. The file is read, and not executed."""
    try:
        module = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return False
    targets: list[ast.expr] = []
    for statement in module.body:
        if isinstance(statement, ast.Assign):
            targets += statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets.append(statement.target)
    return any(isinstance(target, ast.Name) and target.id == "SPACE" for target in targets)


def spaces_in(names: Mapping[str, Any]) -> list[SearchSpace]:
    """Return the `SPACE` among the names of a file as a list; empty if it is no search space and no list of them."""
    space = names.get("SPACE")
    spaces = [space] if isinstance(space, SearchSpace) else space
    if not isinstance(spaces, list | tuple) or not all(isinstance(each, SearchSpace) for each in spaces):
        return []
    return list(spaces)


def claims_about(spaces: Iterable[SearchSpace], claims: object) -> tuple[Claim, ...]:
    """Return the claims about some search spaces.

    Raises:
        UsageError: a claim is invalid (see `check_claims`).
    """
    configs: set[RunConfig] = set()
    for space in spaces:
        configs.update(config.replace(seed=0) for config in _comparable(space))
    return check_claims(claims, configs)


def _comparable(space: SearchSpace) -> list[RunConfig]:
    """Return the configs of a space that claims may compare: requested ones, and those that tuning may choose."""
    if space.tuned is not None:
        return space.tuned.reported_at_bounds
    return [request.config for request in space.requests()]


def names_in(path: Path) -> dict[str, Any]:
    """Execute a file of search spaces or plug-ins, with modules in its folder importable, and return its names.

    Raises:
        UsageError: the file does not exist, raises, calls `sweep`, or imports a compiled module in its folder.
    """
    try:
        is_there = path.is_file()
    except OSError as error:  # an invalid file name, or a folder without read permission
        raise UsageError(f"{shorten(path)}: cannot be read ({error.strerror or one_line(error)})") from None
    if not is_there:
        raise UsageError(f"{path}: no such search-space file{_similar_file(path)}")
    try:
        with importable(path.resolve().parent), executed_by_command():
            # absolute: a worker, which runs in another folder, shows the lines of this file in tracebacks
            return runpy.run_path(os.path.abspath(path), run_name="clops_sweep_search_space")
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # user code may raise anything
        kind = f"{type(error).__name__}{_line_in(path, error)}"
        meant = suggestion(error, path.resolve().parent)
        raise UsageError(f"{path} raises {kind}: {_said(error)}{meant}") from None


def _similar_file(path: Path) -> str:
    """Return " (did you mean 'wards.py'?)" if the folder of a missing file has a file of a similar name."""
    try:
        names = [file.name for file in path.parent.glob("*.py")]
    except (OSError, ValueError):
        return ""
    meant = closest(path.name, names)
    return "" if meant is None else f" (did you mean {str(path.parent / meant)!r}?)"


def shipped_spaces() -> Mapping[str, Path]:
    """Return the search-space files of the package: name without extension to path."""
    folder = Path(str(files("clops_sweep.search_spaces")))
    return {path.stem: path for path in sorted(folder.glob("*.py")) if path.stem != "__init__"}


def shipped_space(name: str) -> Path:
    """Return the path of a search-space file of the package, as in `shipped_space("class_il_grid")`.

    Raises:
        UsageError: no search space has that name.
    """
    shipped = shipped_spaces()
    if name not in shipped:
        raise UsageError(
            f"{name!r}: no search-space file of that name comes with the package{nearest_or_all(name, shipped)}"
        )
    return shipped[name]


def _said(error: BaseException) -> str:
    """Return the message of an exception of user code on one line, shortened."""
    said = without_path(one_line(error)).encode("utf-8", "backslashreplace").decode("utf-8")
    return said if len(said) <= _LONGEST_SAID else f"{said[:_LONGEST_SAID]}..."


def _line_in(path: Path, error: BaseException) -> str:
    """Return the line in the user's file, if the traceback has it."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f" in line {error.lineno}"
    lines = []
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == os.path.abspath(path):
            lines.append(traceback.tb_lineno)
        traceback = traceback.tb_next
    return f" in line {lines[-1]}" if lines else ""
