"""How often verdicts are wrong, by a small simulation that the ordinary t-test fails; and the table of a large one."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

STUDIES = 200
DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(scope="module")
def simulation(loaded: Callable[[str, Path], ModuleType]) -> ModuleType:
    return loaded("simulation", DOCS / "claims" / "simulation.py")


def highest(studies: int, errors: int = 2) -> float:
    """5 % and Monte-Carlo errors."""
    return 0.05 + errors * math.sqrt(0.05 * 0.95 / studies)


def cells(markdown: str) -> list[list[str]]:
    return [[it.strip() for it in line.split("|")[1:-1]] for line in markdown.splitlines() if line.startswith("|")]


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


@pytest.mark.parametrize("measure", ["test_accuracy", "prequential_accuracy"])
def test_differences_are_rarely_found_where_evaluated_people_are_trained_on(
    simulation: ModuleType, measure: str
) -> None:
    rates = [
        np.mean([simulation.people_in_both(rng, 47, 12, measure, corrected=corrected) for _ in range(STUDIES)])
        for corrected, rng in ((True, np.random.default_rng(0)), (False, np.random.default_rng(0)))
    ]
    assert rates[0] <= highest(STUDIES)
    assert rates[0] < rates[1], "rho = 1 finds too many"
