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


@pytest.mark.parametrize("tuned", [1, 2, None])
def test_intervals_of_the_optimism_cover_what_they_promise(simulation: ModuleType, tuned: int | None) -> None:
    rng = np.random.default_rng(0)
    missed = np.mean([simulation.optimism(rng, 47, 5, tuned) for _ in range(STUDIES)])
    assert 0.02 <= missed <= highest(STUDIES)


@pytest.mark.parametrize(
    ("measure", "shape", "people", "units"),
    [
        ("share_of_s_between_tasks", "uniform", 120, "5 seeds, independent s"),
        ("share_of_s_between_tasks", "two-peaked", 120, "5 seeds, lasting s"),
        ("share_of_s_between_tasks", "uniform", 480, "5 splits, lasting s"),
        ("similarity_by_curriculum", "uniform", 120, "5 seeds, independent s"),
        ("similarity_by_curriculum", "two-peaked", 120, "5 seeds, lasting s"),
        ("distance_from_gaussian", "Gaussian", 480, "5 seeds, lasting s"),
        ("distance_from_gaussian", "uniform", 480, "5 seeds, independent s"),
        ("distance_from_gaussian", "two-peaked", 480, "5 seeds, independent s"),
    ],
)
def test_noise_is_no_claim_about_s(simulation: ModuleType, measure: str, shape: str, people: int, units: str) -> None:
    """Measures that cannot be negative, tested against 0, call nearly all of these studies a finding."""
    outcome = "does not hold" if (measure, shape) == ("distance_from_gaussian", "Gaussian") else "holds"
    rng = np.random.default_rng(0)
    wrong = np.mean([simulation.of_s(rng, people, measure, outcome, shape, units) for _ in range(20)])
    assert wrong <= highest(20)


def test_s_that_is_not_gaussian_is_found(simulation: ModuleType) -> None:
    rng, asked = np.random.default_rng(0), ("distance_from_gaussian", "does not hold", "two-peaked")
    assert np.mean([simulation.of_s(rng, 480, *asked, "5 seeds, lasting s") for _ in range(10)]) > 0.5


def test_the_table_has_every_design_and_keeps_what_it_promises(simulation: ModuleType) -> None:
    below = simulation.DOCUMENT.read_text().partition(simulation.HEADING)[2]
    rows = cells(below.partition(simulation.OTHER_HEADING)[0])[2:]
    assert [row[:2] for row in rows] == [[f"{it.people:,}", str(it)] for it in simulation.DESIGNS]
    for row in rows:
        holds, _, fails, _, power, before = (float(cell.rstrip("%")) / 100 for cell in row[2:])
        assert max(holds, fails) <= (0.12 if row[0] == "10" else highest(simulation.STUDIES)), row
        assert power <= before


def test_the_tables_of_other_verdicts_have_every_kind_and_keep_what_they_promise(simulation: ModuleType) -> None:
    rows = [row for row in cells(simulation.DOCUMENT.read_text().partition(simulation.OTHER_HEADING)[2]) if "5%" in row]
    assert [row[:2] for row in rows] == [[it.what, it.units] for it in simulation.KINDS]
    for row, kind in zip(rows, simulation.KINDS, strict=True):
        assert max(float(cell.rstrip("%")) / 100 for cell in row[3:]) <= highest(kind.studies, 3), row
