"""How often verdicts are wrong, by a small simulation that the ordinary t-test fails; and the table of a large one."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(scope="module")
def simulation(loaded: Callable[[str, Path], ModuleType]) -> ModuleType:
    return loaded("simulation", DOCS / "claims" / "simulation.py")


def highest(studies: int) -> float:
    """5 % and two Monte-Carlo errors."""
    return 0.05 + 2 * math.sqrt(0.05 * 0.95 / studies)


@pytest.mark.parametrize(
    ("design", "before"),
    [({"people": 47, "splits": 12}, 0.25), ({"people": 200, "splits": 6}, 0.1), ({"people": 47, "folds": 5}, 0.0)],
)
def test_wrong_verdicts_are_rare_and_were_not(simulation: ModuleType, design: dict[str, int], before: float) -> None:
    studies = 100
    holds, fails, gains = simulation.shares(simulation.Design(**design), studies=studies, claims=3)
    for wrong in (holds, fails):
        ordinary, corrected = wrong[:, 0]
        assert corrected <= highest(studies)
        assert ordinary >= max(before, corrected), "without the correction the simulation finds the errors"
    assert (gains[1] <= gains[0]).all()


def test_the_table_has_every_design_and_keeps_what_it_promises(simulation: ModuleType) -> None:
    _, _, below = simulation.DOCUMENT.read_text().partition(simulation.HEADING)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in below.splitlines() if line.startswith("|")][2:]
    assert [row[:2] for row in rows] == [[f"{it.people:,}", str(it)] for it in simulation.DESIGNS]
    for row in rows:
        holds, _, fails, _, power, before = (float(cell.rstrip("%")) / 100 for cell in row[2:])
        assert max(holds, fails) <= highest(simulation.STUDIES)
        assert power <= before
