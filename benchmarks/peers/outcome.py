"""The outcome of a run, as a line of results.csv."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Self

from clops_sweep.learning.metrics.r_matrix import average, backward_transfer


@dataclass(frozen=True)
class Outcome:
    """One run of one side: two metrics of the validation AUC, and the time it took."""

    case: str
    side: str
    seed: int
    auc: float
    bwt: float
    processor_seconds: float
    clock_seconds: float

    @classmethod
    def of(cls, case: str, side: str, seed: int, r: Sequence[Sequence[float]], processor: float, clock: float) -> Self:
        """Return the outcome from R and the two times."""
        return cls(case, side, seed, average(r), backward_transfer(r), processor, clock)

    def line(self) -> str:
        """Return the line of the table."""
        text = io.StringIO()
        values = [f"{value:.5g}" if isinstance(value, float) else value for value in asdict(self).values()]
        csv.writer(text, lineterminator="").writerow(values)
        return text.getvalue()


HEADER = ",".join(it.name for it in fields(Outcome))


def read(path: Path) -> list[Outcome]:
    """Return the runs in a file; empty if it is missing."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = ("auc", "bwt", "processor_seconds", "clock_seconds")
    return [
        Outcome(row["case"], row["side"], int(row["seed"]), *(float(row[name]) for name in numbers)) for row in rows
    ]
