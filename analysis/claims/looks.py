"""Verdicts on claims as they were shown: the files of a store that keep them. None is ever replaced."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import isclose
from typing import Any

from clops_sweep.errors import one_line, warn_user
from clops_sweep.experiment.spaces.claims import sha256
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.verdict_files import FOLDER, damaged, stored_verdicts

_NUMBERS = ("difference", "low", "high", "level", "p_for", "p_against")
_NOT_COMPARED = ("at", "version", "spaces")


@dataclass(frozen=True)
class Look:
    """A verdict as it was shown at one moment.

    Attributes:
        at: time, in ISO format and UTC.
        version: version of clops-sweep.
        claim: key of the claim.
        definition: SHA-256 of the claim.
        spaces: names of the search spaces of its file.
        dataset: the data set.
        scenario: the scenario.
        outcome: holds, does not hold, or undecided.
        n: number of units of the difference that supports the claim least.
        unit: what n counts (`Verdict.unit`).
        pairs: number of pairs of patient split and seed in that difference.
        difference: that difference.
        low: lower bound of its interval; None without one.
        high: upper bound of its interval; None without one.
        level: level of its interval; None without one.
        p_for: p-value for the claim, corrected; None if not tested.
        p_against: p-value against the claim, corrected; None if not tested.
        run_ids: the runs that decided it.
    """

    at: str
    version: str
    claim: str
    definition: str
    spaces: tuple[str, ...]
    dataset: str
    scenario: str
    outcome: str
    n: int
    unit: str
    pairs: int
    difference: float | None
    low: float | None
    high: float | None
    level: float | None
    p_for: float | None
    p_against: float | None
    run_ids: tuple[str, ...]

    @property
    def day(self) -> str:
        """The date, such as 2026-11-30."""
        return self.at[:10]

    def is_about(self, other: Look) -> bool:
        """Return whether both are about the claim of one name and search space; without runs, the other has no data."""
        same_data = other.dataset in ("", self.dataset) and other.scenario in ("", self.scenario)
        return self.claim == other.claim and same_data and not set(self.spaces).isdisjoint(other.spaces)

    def is_like(self, other: Look) -> bool:
        """Return whether both are equal but for time, version, other spaces of the file and rounding errors."""
        for name, value in vars(self).items():
            of_other = getattr(other, name)
            if name in _NOT_COMPARED or value == of_other:
                continue
            if name not in _NUMBERS or None in (value, of_other) or not isclose(value, of_other, rel_tol=1e-9):
                return False
        return True


def kept(store: RunStore) -> Iterator[Look]:
    """Yield the verdicts that a store keeps, oldest first.

    Raises:
        DamagedStore: a file was edited.
    """
    for path, rows in stored_verdicts(store.files):
        try:
            looks = [_look_of(row) for row in rows]
        except (KeyError, TypeError):
            raise damaged(path) from None
        yield from looks


def _look_of(row: dict[str, Any]) -> Look:
    """Return the look of a row of JSON, in which tuples are lists."""
    given = dict(row)
    for name in ("spaces", "run_ids"):
        given[name] = tuple(given[name])
    return Look(**given)


def keep(looks: Sequence[Look], store: RunStore) -> bool:
    """Write new verdicts to a file of their own, and return whether it was possible; else with a warning.

    Args:
        looks: the verdicts, of one time.
        store: the store.
    """
    content = {"verdicts": [asdict(look) for look in looks]}
    digest = sha256(content)
    moment = looks[0].at.translate(str.maketrans("", "", "-:"))[:22]  # with microseconds: names are in order of time
    path = f"{store.files.root}/{FOLDER}/{moment}-{digest[:8]}.json"
    try:
        store.files.write(path, json.dumps({**content, "sha256": digest}, indent=1).encode())
    except OSError as error:
        warn_user(f"{path}: these verdicts are not recorded ({error.strerror or one_line(error)})")
        return False
    return True
