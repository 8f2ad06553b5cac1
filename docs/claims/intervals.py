"""Coverage of 95 % intervals over people, from simulated studies: a table of docs/claims.md.

python docs/claims/intervals.py          writes the table (about half an hour)

A study draws people from a population, each with some instances that depend on each other, and computes an interval.
The share of studies whose interval contains the number of the population should be 95 %.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from clops_sweep.analysis.people.patient_intervals import patient_bootstrap
from clops_sweep.analysis.update.measures import Measures, Quantity
from clops_sweep.analysis.update.paired import Paired, last_models

DOCUMENT = Path(__file__).parents[1] / "results" / "statistics.md"
HEADING = "## Coverage of intervals over patients\n"
STUDIES, OF_EACH = 200, 5
PEOPLE = (3, 5, 10, 20, 50, 300)
Floats = NDArray[np.float64]
Rng = np.random.Generator
Interval = tuple[float, float, float]
"""Low end, high end and the number of the population."""


def stored(
    rng: Rng, shares: Floats, classes: NDArray[np.int64], tasks: NDArray[np.int64], outputs: int
) -> pd.DataFrame:
    """Return predictions: person i is right on a share of instances, all of one class and task, after every task."""
    people, stages = np.repeat(np.arange(len(shares)), OF_EACH), int(tasks.max())
    right, target = rng.uniform(size=len(people)) < shares[people], classes[people]
    said = np.where(right, target, (target + 1) % outputs)
    hot = np.eye(outputs)
    columns = {"evaluated_on": tasks[people], "task": tasks[people].astype(str), "instance": np.arange(len(people))}
    columns |= {"patient": people.astype(str), "exclusive": np.ones(len(people), bool)}
    for name, of in (("target", target), ("logit", said), ("probability", said)):
        columns |= {f"{name}_{c}": hot[of, c] for c in range(outputs)}
    rows = pd.DataFrame(columns)
    return pd.concat([rows.assign(trained_on=stage, run_id="a") for stage in range(1, stages + 1)])


def spread(rng: Rng, mean: float | Floats, size: int) -> Floats:
    """Return shares of right instances of people, from 0 to 1, most near the ends."""
    return rng.beta(2 * np.broadcast_to(mean, size), 2 * (1 - np.broadcast_to(mean, size)))


def of_run(measure: str, truth: float, *runs: pd.DataFrame) -> Interval:
    """Return the interval of a run's measure, or of the difference of two runs."""
    found = patient_bootstrap(*runs)[measure]
    return found.low, found.high, truth


def one_task(rng: Rng, n: int) -> Interval:
    """Accuracy; up to 20 people have 8 classes, so most are alone in theirs."""
    outputs = 8 if n <= 20 else 2
    rows = stored(rng, spread(rng, 0.25, n), np.arange(n) % outputs, np.ones(n, int), outputs)
    return of_run("test_accuracy", 0.25, rows)


def in_groups(size: int) -> Callable[[Rng, int], Interval]:
    """Accuracy; each task is a group of people."""

    def simulated(rng: Rng, n: int) -> Interval:
        return of_run(
            "test_accuracy", 0.25, stored(rng, spread(rng, 0.25, n), np.arange(n) % 2, np.arange(n) // size + 1, 2)
        )

    return simulated


def of_classes(rng: Rng, n: int) -> Interval:
    """Balanced accuracy of four classes, three of them with three people each."""
    classes = np.minimum(np.arange(n) // 3, 3)
    shares = spread(rng, np.array([0.2, 0.4, 0.6, 0.8])[classes], n)
    return of_run("test_balanced_accuracy", 0.5, stored(rng, shares, classes, np.ones(n, int), 4))


def auc(rng: Rng, n: int) -> Interval:
    """AUC of a binary class that a third of the people have, with scores that depend on the person."""
    people, has = np.repeat(np.arange(n), OF_EACH), np.arange(n) % 3 == 0
    score = (has + rng.normal(size=n))[people] + rng.normal(size=len(people))
    rows = pd.DataFrame(
        {"run_id": "a", "trained_on": 1, "evaluated_on": 1, "task": "1", "instance": range(len(people))}
    )
    rows = rows.assign(patient=people.astype(str), target_0=has[people].astype(int), probability_0=norm.cdf(score))
    return of_run("test_auc", float(norm.cdf(0.5)), rows)


def paired_runs(rng: Rng, n: int) -> Interval:
    """Difference in accuracy of two runs on the same people; the second is better on each person by 0.1 on average."""
    shares, ones, outputs = 0.8 * spread(rng, 0.25, n), np.ones(n, int), 8 if n <= 20 else 2
    more, classes = shares + 0.2 * rng.uniform(size=n), np.arange(n) % outputs
    return of_run("test_accuracy", 0.1, *(stored(rng, it, classes, ones, outputs) for it in (more, shares)))


def models(rng: Rng, n: int, wrong: Sequence[float], flips: float = 0.0) -> Paired:
    """Return two binary models whose decisions are right with their confidence minus `wrong`, plus ± 0.1 by person.

    Args:
        rng: generator.
        n: people.
        wrong: overconfidence of the models.
        flips: share of people with flips; if above 0, the second flips 30 % of their answers.
    """
    people = np.repeat(np.arange(n), OF_EACH)
    target, each = rng.integers(0, 2, len(people)), []
    for excess in wrong:
        confidence = rng.uniform(0.6, 0.9, len(people))
        right = rng.uniform(size=len(people)) < confidence - excess + rng.choice([-0.1, 0.1], n)[people]
        if flips:
            has = (rng.uniform(size=n) < flips)[people]
            right = ~(has & (rng.uniform(size=len(people)) < 0.3)) if each else np.ones(len(people), bool)
        said = np.where(right, target, 1 - target)
        rows = pd.DataFrame(
            {"run_id": "a", "trained_on": 1, "evaluated_on": 1, "task": "1", "instance": range(len(people))}
        )
        names = {"patient": people.astype(str), "label": np.where(target, "yes", "no"), "target_0": target}
        each.append(rows.assign(**names, probability_0=np.where(said, confidence, 1 - confidence)))
    return last_models(*each)


def ends(it: Quantity, truth: float) -> Interval:
    """Return the interval of a quantity."""
    return it.low, it.high, truth


def flips_of_a_subgroup(rng: Rng, n: int) -> Interval:
    """Right before and wrong after in a subgroup of n people; one in five has flips, in 30 % of the instances."""
    paired = models(rng, n + 30, (0, 0), 0.2)
    group = np.where(paired.patients.astype(int) < n, "a", "b").astype(object)
    measured = Measures(replace(paired, groups={"group": group}))
    return ends(next(it for it in measured.slices() if it.name == "a").right_to_wrong, 0.06)


def calibration(excess: float) -> Callable[[Rng, int], Interval]:
    """Expected calibration error."""
    return lambda rng, n: ends(Measures(models(rng, n, (0, excess))).calibration_error().after, excess)


def calibrations(rng: Rng, n: int) -> Interval:
    """Difference of two calibration errors."""
    return ends(Measures(models(rng, n, (0.05, 0.2))).calibration_error().difference, 0.15)


KINDS: dict[str, tuple[Callable[[Rng, int], Interval], int, int]] = {
    "accuracy; most people alone in a class": (one_task, 3, 300),
    "accuracy; each person is a task": (in_groups(1), 3, 10),
    "accuracy; each task is four people": (in_groups(4), 5, 50),
    "balanced accuracy; three of four classes have three people": (of_classes, 20, 50),
    "AUC": (auc, 10, 50),
    "difference in accuracy of two runs": (paired_runs, 3, 300),
    "flips in a subgroup; one person in five has some": (flips_of_a_subgroup, 10, 300),
    "calibration error 0": (calibration(0.0), 3, 300),
    "calibration error 0.15": (calibration(0.15), 3, 300),
    "difference of calibration errors": (calibrations, 3, 300),
}
"""What an interval is for: a study of n people, and the least and most people simulated."""


def coverage(kind: str, people: int, studies: int = STUDIES, seed: int = 0) -> tuple[float, float]:
    """Return the share of intervals that contain the number of the population, and the share of studies with one."""
    rng = np.random.default_rng([seed, people])
    found = np.array([KINDS[kind][0](rng, people) for _ in range(studies)])
    printed = found[np.isfinite(found[:, 0])]
    low, high, truth = printed.T
    return float(np.mean((low <= truth) & (truth <= high))), len(printed) / studies


def row(kind: str, studies: int = STUDIES) -> str:
    """Return a row of the table in Markdown."""
    cells, (_, least, most) = [], KINDS[kind]
    for people in PEOPLE:
        covered, printed = coverage(kind, people, studies) if least <= people <= most else (np.nan, 1.0)
        cells.append("" if np.isnan(covered) else f"{covered:.0%}" + (f" ({printed:.0%})" if printed < 0.995 else ""))
    return f"| {kind} | 95% | {' | '.join(cells)} |"


def table() -> str:
    """Return the table in Markdown."""
    header = f"| interval | nominal | {' | '.join(f'{it} people' for it in PEOPLE)} |"
    with ProcessPoolExecutor(2) as pool:
        return "\n".join([header, "| --- | ---: |" + " ---: |" * len(PEOPLE), *pool.map(row, KINDS)])


if __name__ == "__main__":
    above, _, below = DOCUMENT.read_text().partition(HEADING)
    intro, _, rest = below.partition("\n| interval")
    _, _, after = rest.partition("\n\n")
    DOCUMENT.write_text(f"{above}{HEADING}{intro}\n{table()}\n" + (f"\n{after}" if after else ""))
