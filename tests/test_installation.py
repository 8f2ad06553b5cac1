"""What an installation has: platforms, and packages for everything that is imported."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = DECLARED["project"]
EXTRAS = PROJECT["optional-dependencies"]
FOR_DEVELOPERS = {"all", "dev", "docs", "peers", "test"}
NEEDS_NEWER = {"braindecode"}
"""Extras whose packages exclude the oldest release of another package that clops-sweep allows: wfdb."""


def test_the_oldest_packages_that_may_be_installed_are_those_that_are_tested_every_night() -> None:
    extras = [
        it
        for name, given in EXTRAS.items()
        if name == "test" or name not in FOR_DEVELOPERS | NEEDS_NEWER
        for it in given
    ]
    tested = (ROOT / ".ci" / "lower-bounds.txt").read_text("utf-8").splitlines()[1:]
    declared = [*DECLARED["build-system"]["requires"], *PROJECT["dependencies"], *extras]
    assert {_oldest(it) for it in tested} == {_oldest(it) for it in declared}
    assert len(tested) == len(set(map(_name, declared)))


def _oldest(requirement: str) -> tuple[str, Version]:
    """The package, and the oldest release that a requirement allows."""
    (oldest,) = (it.version for it in Requirement(requirement).specifier if it.operator in {">=", "=="})
    return _name(requirement), Version(oldest)


def _name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found
    return re.sub(r"[-_.]+", "-", found[0]).lower()
