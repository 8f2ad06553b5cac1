"""Search-space files: the names that a Python file defines, and the files that come with the package."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from clops_sweep.errors import UsageError, listed, nearest_or_all, prefixed
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.spaces.claims import Claim, check_claims
from clops_sweep.experiment.spaces.executed_file import names_in
from clops_sweep.experiment.spaces.search_space import SearchSpace


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
