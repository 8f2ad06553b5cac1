"""Simulated coverage of intervals of an AUC near 1, cut off at 1 or not: a table of docs/results/statistics.md.

python docs/claims/bounded.py          writes the table (a minute)

A study splits its people n times into 60 % for training and 20 % for test. Each person has a quality ~ N(0, 1), which
it brings to every split that evaluates it, and a split adds 0.5 N(0, 1). The AUC of a split is Phi(1 + mean quality of
its test people + what the split adds): near 1, and skewed. The true value is the mean AUC over people and splits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from scipy import special

from clops_sweep.analysis.statistics import Partition, clipped, paired_difference
from clops_sweep.experiment.metrics import metric_named

DOCUMENT = Path(__file__).parents[1] / "results" / "statistics.md"
HEADING, NEXT_HEADING = "## Intervals of bounded measures\n", "## Error rates of verdicts\n"
STUDIES: Final = 2000
PEOPLE, SPLITS = (10, 47, 200), (3, 5, 12)
OFFSET, OF_SPLIT = 1.0, 0.5
TEXT = """
Share of 2,000 simulated studies whose 95 % interval of a mean AUC contains the true value
(Monte-Carlo error 0.5 points), as computed and cut off at 0 and 1. *Beyond*: intervals that reached
above 1. The two columns are equal because the true value lies between the limits.
`python docs/claims/bounded.py` writes this table.
"""


def true_value(people: int) -> float:
    """Return the mean AUC: that of Phi(m + s Z) is Phi(m / sqrt(1 + s²))."""
    variance = 1 / (people // 5) + OF_SPLIT**2
    return float(special.ndtr(OFFSET / np.sqrt(1 + variance)))


def coverage(people: int, splits: int, seed: int = 0) -> tuple[float, float, float]:
    """Return the coverage of the interval, that of the interval between the limits, and the share beyond 1."""
    rng, part, truth = np.random.default_rng(seed), people // 5, true_value(people)
    known = {split: Partition(f"{split}", validation=part / (people - 2 * part)) for split in range(splits)}
    replicates = [(split, 0) for split in range(splits)]
    counted = np.zeros(3)
    for _ in range(STUDIES):
        of_person = rng.normal(size=people)
        tested = np.stack([of_person[rng.permutation(people)[:part]].mean() for _ in range(splits)])
        values = special.ndtr(OFFSET + tested + OF_SPLIT * rng.normal(size=splits))
        found = paired_difference(values, np.zeros(splits), replicates, known)
        within = clipped(found, metric_named("auc").limits)
        counted += found.low <= truth <= found.high, within.low <= truth <= within.high, found.high > 1
    as_computed, cut_off, beyond = (counted / STUDIES).tolist()
    return as_computed, cut_off, beyond


def table() -> str:
    """Return the table in Markdown."""
    lines = [
        "| people | units | true AUC | as computed | between 0 and 1 | beyond |",
        "| ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for people in PEOPLE:
        for splits in SPLITS:
            shares = " | ".join(f"{share:.1%}" for share in coverage(people, splits))
            lines.append(f"| {people} | {splits} splits | {true_value(people):.3f} | {shares} |")
    return "\n".join(lines)


if __name__ == "__main__":
    before, _, after = DOCUMENT.read_text().partition(NEXT_HEADING)
    before = before.partition(HEADING)[0]
    DOCUMENT.write_text(f"{before}{HEADING}{TEXT}\n{table()}\n\n{NEXT_HEADING}{after}")
