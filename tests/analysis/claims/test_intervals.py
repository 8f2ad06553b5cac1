"""Coverage of intervals over people in a small simulation, and the table of a large one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(scope="module")
def intervals(loaded: Callable[[str, Path], ModuleType]) -> ModuleType:
    return loaded("intervals", DOCS / "claims" / "intervals.py")


@pytest.mark.parametrize(
    ("kind", "people"),
    [
        ("accuracy; most people alone in a class", 20),
        ("accuracy; each person is a task", 10),
        ("accuracy; each task is four people", 20),
        ("difference in accuracy of two runs", 20),
        ("calibration error 0", 50),
        ("difference of calibration errors", 50),
    ],
)
def test_intervals_cover_the_number_of_the_population(intervals: ModuleType, kind: str, people: int) -> None:
    """Two Monte-Carlo errors below 92 %; intervals that kept single people in every resample covered about 30 %."""
    covered, printed = intervals.coverage(kind, people, studies=40)
    assert covered >= 0.92 - 2 * (0.92 * 0.08 / 40) ** 0.5
    assert printed >= 0.9


def test_the_table_has_every_kind_and_keeps_what_the_page_says(intervals: ModuleType) -> None:
    _, _, below = intervals.DOCUMENT.read_text().partition(intervals.HEADING)
    below, _, _ = below.partition("\n## ")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in below.splitlines() if line.startswith("|")]
    assert rows[0][2:] == [f"{it} people" for it in intervals.PEOPLE]
    assert [row[0] for row in rows[2:]] == list(intervals.KINDS)
    for row in rows[2:]:
        covered = {n: float(cell.split("%")[0]) for n, cell in zip(intervals.PEOPLE, row[2:], strict=True) if cell}
        assert all(share >= 88 for n, share in covered.items() if n >= 20), row
        assert all(share >= 80 for n, share in covered.items() if 5 <= n < 20), row
