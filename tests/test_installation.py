"""What an installation has: platforms, and packages for everything that is imported."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = DECLARED["project"]
EXTRAS = PROJECT["optional-dependencies"]
FOR_DEVELOPERS = {"all", "dev", "docs", "peers", "test"}


def test_every_package_that_is_imported_is_installed_with_this_one_or_by_an_extra() -> None:
    optional = [it for name, given in EXTRAS.items() if name not in FOR_DEVELOPERS for it in given]
    declared = {_name(it) for it in [*PROJECT["dependencies"], *optional]}
    known = declared | {_name(it) for package in declared for it in _required(package)}
    installed = packages_distributions()
    missing = {
        f"{name} ({path.relative_to(ROOT)})"
        for folder in ("clops_sweep", "analysis", "search_spaces")
        for path in (ROOT / folder).rglob("*.py")
        for name in _imported(path)
        if not known & {_name(it) for it in installed.get(name, [name])}
    }
    assert missing == set()


def test_the_oldest_packages_that_may_be_installed_are_those_that_are_tested_every_night() -> None:
    extras = [it for name, given in EXTRAS.items() if name == "test" or name not in FOR_DEVELOPERS for it in given]
    tested = (ROOT / ".ci" / "lower-bounds.txt").read_text("utf-8").splitlines()[1:]
    declared = [*DECLARED["build-system"]["requires"], *PROJECT["dependencies"], *extras]
    assert {_oldest(it) for it in tested} == {_oldest(it) for it in declared}
    assert len(tested) == len(set(map(_name, declared)))


def _oldest(requirement: str) -> tuple[str, Version]:
    """The package, and the oldest release that a requirement allows."""
    (oldest,) = (it.version for it in Requirement(requirement).specifier if it.operator in {">=", "=="})
    return _name(requirement), Version(oldest)


def _imported(path: Path) -> Iterator[str]:
    """The packages that a file imports, also within functions."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = [it.name for it in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
        for name in names:
            package = name.partition(".")[0]
            if package not in sys.stdlib_module_names and package != "clops_sweep":
                yield package


def _required(package: str) -> list[str]:
    """What a package always brings, and what it brings to those who ask for an extra that this project asks for."""
    asked = {it for given in PROJECT["dependencies"] if _name(given) == package for it in _extras(given)}
    try:
        found = requires(package) or []
    except PackageNotFoundError:
        return []
    return [it for it in found if "extra ==" not in it or any(f"'{e}'" in it or f'"{e}"' in it for e in asked)]


def _name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def _extras(requirement: str) -> list[str]:
    found = re.match(r"[A-Za-z0-9._-]+\[([^]]*)\]", requirement)
    return found[1].split(",") if found else []
