"""Simulated error rates of all verdicts, p-values and intervals over splits and seeds: the tables of docs/claims.md.

python docs/claims/simulation.py          writes the tables (half an hour)
python docs/claims/simulation.py kinds    writes the second and third only

A study of differences compares methods that are equally good: each is the same learner on its own features, drawn from
the same distribution. Person i has a label y_i = ±1 and, for each method, a mean x_i ~ N(y_i mu, I) of D features. The
learner computes the mean w of y_i x_i over the training people. The frames of person i have mean x_i and standard
deviation 1, so the accuracy on them is Phi(y_i w.x_i / |w|). People thus affect both training and evaluation.
docs/claims/intervals.py simulates intervals over people.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from clops_sweep.analysis.claims.claim_runs import ClaimRuns, ContrastRuns
from clops_sweep.analysis.claims.run_measures import MEASURES, RunTables, Sampled
from clops_sweep.analysis.claims.verdicts import Outcome, claims_of_paper, decided, evidence_of
from clops_sweep.analysis.statistics import Fold, Partition, Replicate, Split, paired_difference, partitions
from clops_sweep.analysis.tables.tuning import optimism_of
from clops_sweep.experiment.spaces.claims import Claim, Contrast, Side

DOCUMENT, HEADING = Path(__file__).parents[1] / "results" / "statistics.md", "## Error rates of verdicts\n"
FEATURES, SEPARATION, CLAIMS, MATTERS, GAIN = 5, 1.0, 10, 0.02, 0.1
STUDIES, STUDIES_OF_KIND, STUDIES_OF_S = 1000, 400, 60
OTHER_HEADING = "## Error rates of other verdicts\n"
FIRST_ROW, FIRST_ROW_OF_KINDS = "\n| people", "\n| false verdicts"
SIDES = Side("CLOPS", {"strategy": "clops"}), Side("fine-tuning", {"strategy": "finetune"})
CLAIM = Claim("simulated", "x", (Contrast(*SIDES, "test_accuracy"),), "more", MATTERS)
RUNS = ClaimRuns(CLAIM, "simulated", (ContrastRuns(CLAIM.contrasts[0], {}),))


@dataclass(frozen=True)
class Design:
    """Number of people in a study, and their partition: random 60/20/20 splits, or repeated folds."""

    people: int
    splits: int = 0
    folds: int = 0
    repeats: int = 1

    def parts(self, rng: np.random.Generator) -> dict[Split, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Return the training and test people of each split."""
        found: dict[Split, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        for split in range(self.splits):
            order = rng.permutation(self.people)
            found[split] = order[: 6 * self.people // 10], order[8 * self.people // 10 :]
        for repeat in range(self.repeats if self.folds else 0):
            parts = np.array_split(rng.permutation(self.people), self.folds)
            for test in range(self.folds):
                training = [part for n, part in enumerate(parts) if n not in (test, (test + 1) % self.folds)]
                found[Fold(repeat, test + 1, self.folds)] = np.concatenate(training), parts[test]
        return found

    def __str__(self) -> str:
        if self.splits:
            return f"{self.splits} splits"
        return f"{self.folds} folds" + (f" x {self.repeats}" if self.repeats > 1 else "")


DESIGNS = (
    *(Design(people, splits) for people in (10, 47, 200, 4000) for splits in (3, 6, 12, 20)),
    *(Design(people, folds=5, repeats=repeats) for people in (47, 200) for repeats in (1, 2)),
)


def study(
    rng: np.random.Generator, design: Design, claims: int, features: int = FEATURES
) -> tuple[NDArray[np.float64], dict[Split, Partition]]:
    """Return accuracy differences of pairs of equally good methods, [claims, splits], and the partitions."""
    label = np.where(rng.permutation(design.people) % 2, 1.0, -1.0)
    people = rng.normal(size=(2 * claims, design.people, features))
    people[..., 0] += SEPARATION * label
    people *= label[:, None]
    differences, partitions = [], {}
    for split, (training, test) in design.parts(rng).items():
        learned = people[:, training].mean(1)
        margin = np.einsum("mpf,mf->mp", people[:, test], learned) / np.linalg.norm(learned, axis=1)[:, None]
        accuracy = special.ndtr(margin).mean(1)
        differences.append(accuracy[::2] - accuracy[1::2])
        partitions[split] = Partition(f"{split}", test=len(test) / len(training))
    return np.stack(differences, axis=1), partitions


ASKED: tuple[tuple[Outcome, float], ...] = (("holds", 0.0), ("does not hold", MATTERS), ("holds", GAIN))
"""Verdicts with true differences: two wrong verdicts and a right one."""


def shares(
    design: Design, *, studies: int = STUDIES, claims: int = CLAIMS, features: int = FEATURES, seed: int = 0
) -> NDArray[np.float64]:
    """Return how often studies reach the verdicts in `ASKED`.

    Args:
        design: design of the studies.
        studies: number of studies.
        claims: number of claims per study, with Holm's correction.
        features: number of features of each method.
        seed: seed of the simulation.

    Returns:
        [asked, rule, 2]. The rules are the ordinary and the corrected t-test over splits. The last axis has the share
        of studies in which any claim has the verdict, and the share of claims with it.
    """
    rng = np.random.default_rng(seed)
    found = np.zeros((len(ASKED), 2, 2))
    for _ in range(studies):
        differences, partitions = study(rng, design, claims, features)
        replicates = [(split, 0) for split in partitions]
        for asked, (outcome, true_difference) in enumerate(ASKED):
            values = [dict(zip(replicates, row, strict=True)) for row in (differences + true_difference).tolist()]
            for rule, known in enumerate(({}, partitions)):
                tested = [(RUNS, [evidence_of(CLAIM.contrasts[0], "more", MATTERS, of, known)]) for of in values]
                hits = [verdict.outcome == outcome for verdict in decided(tested)]
                found[asked, rule] += any(hits), np.mean(hits)
    return found / studies


def table(studies: int = STUDIES) -> str:
    """Return the table of docs/claims.md in Markdown."""
    lines = [
        "| people | units | false holds | before | false does not hold | before | power | before |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for design in DESIGNS:
        (holds, fails, gains) = shares(design, studies=studies)
        shown = [holds[::-1, 0], fails[::-1, 0], gains[::-1, 1]]
        cells = [f"{design.people:,}", str(design), *(f"{it:.1%}" for of in shown for it in of)]
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def people_in_both(rng: np.random.Generator, people: int, splits: int, measure: str, *, corrected: bool = True) -> bool:
    """Return whether a difference of 0 is found where evaluated people are also trained on.

    Person i adds d_i ~ N(0, 1) to the difference of a split that evaluates it, and chance adds 0.2 N(0, 1). For
    prequential measures, 60 % of the people are in training; else 80 %, and the others are in no task.

    Args:
        rng: random numbers.
        people: number of people.
        splits: number of splits.
        measure: the compared column.
        corrected: whether rho = f / (1 - f); else evaluated / training people = 1.
    """
    prequential = measure.startswith("prequential")
    of_person, n = rng.normal(size=people), round((0.6 if prequential else 0.8) * people)
    values = []
    for _ in range(splits):
        there = rng.permutation(people)[:n]
        values.append(float((of_person[there] + 0.2 * rng.normal(size=n)).mean()))
    known = _partitions(people, n, splits, apart=prequential) if corrected else _one(splits)
    return paired_difference(values, np.zeros(splits), [(it, 0) for it in range(splits)], known, measure).excludes_zero


@cache
def _partitions(people: int, trained: int, splits: int, *, apart: bool) -> dict[Split, Partition]:
    """Return partitions with other people in validation and test if `apart`; else with the same, by time."""
    rest = people - trained
    others = (rest // 2, rest - rest // 2, 0, "people") if apart else (trained, trained, rest, "time")
    names = ("patients_validation", "patients_test", "patients_unseen", "split_within")
    rows = {"split_seed": range(splits), "split_hash": [f"{it}" for it in range(splits)]}
    recorded = {"patients_train": trained, "patients_all": people, **dict(zip(names, others, strict=True))}
    return partitions(pd.DataFrame(rows).assign(**recorded))


def _one(splits: int) -> dict[Split, Partition]:
    return {it: Partition(f"{it}", 1.0, 1.0, 1.0) for it in range(splits)}


Shape = Literal["Gaussian", "uniform", "two-peaked"]
UnitsOfS = Literal["5 seeds, independent s", "5 seeds, lasting s", "5 splits, lasting s"]


def noise(rng: np.random.Generator, shape: Shape, *size: int) -> NDArray[np.float64]:
    """Return independent values of one shape, of standard deviation about 1."""
    if shape == "uniform":
        return rng.uniform(-(3**0.5), 3**0.5, size)
    return rng.normal(size=size) if shape == "Gaussian" else rng.normal(0, 0.4, size) + rng.choice([-0.9, 0.9], size)


def of_s(rng: np.random.Generator, people: int, measure: str, outcome: Outcome, shape: Shape, units: UnitsOfS) -> bool:
    """Return whether a claim of the paper about s has a verdict on six equal tasks.

    Args:
        rng: random numbers.
        people: number of people, each with one instance.
        measure: the measure of the claim.
        outcome: the verdict.
        shape: distribution of s.
        units: five seeds or five splits, of which each trains on 60 % of the people; lasting s are nearly the same in
            every run, others are drawn anew.
    """
    claim = next(it for it in claims_of_paper() if it.contrasts[0].measure == measure)
    task, base, splits = np.arange(people) % 6, noise(rng, shape, people), units.startswith("5 splits")
    found: dict[Replicate, Sampled] = {}
    for run in range(5):
        s = base + 0.05 * rng.normal(size=people) if "lasting" in units else noise(rng, shape, people)
        trained = np.sort(rng.permutation(people)[: 6 * people // 10]) if splits else np.arange(people)
        rows = pd.DataFrame({"task": task[trained], "s": s[trained]}).sort_values("task", kind="stable")
        found[(run, 0) if splits else (0, run)] = Sampled(*np.atleast_1d(MEASURES[measure][1](RunTables({}, rows))))
    sign = 1.0 if claim.contrasts[0].theirs is None else -1.0
    evidence = evidence_of(
        *(claim.contrasts[0], claim.says, claim.matters, {place: sign * it.value for place, it in found.items()}),
        {run: Partition(f"{run}", training=0.6 / 0.4) for run in range(5)},
        float(np.mean([it.variance for it in found.values()])),
    )
    runs = ClaimRuns(claim, "simulated", (ContrastRuns(claim.contrasts[0], {}),))
    return decided([(runs, [evidence])])[0].outcome == outcome


def optimism(rng: np.random.Generator, people: int, splits: int, tuned: int | None) -> bool:
    """Return whether the interval of the optimism misses 0 though nothing is chosen.

    Person i adds d_i ~ N(0, 1) to the scores of the splits in which it is evaluated, 20 % for validation and 20 % for
    test, and the training people of a split add 0.1 N(0, 1).

    Args:
        rng: random numbers.
        people: number of people.
        splits: number of reported splits.
        tuned: number of other splits that are tuned on; None to tune on the reported ones.
    """
    of_person, part, rows = rng.normal(size=people), people // 5, []
    for split in range(splits + (tuned or 0)):
        order, trained = rng.permutation(people), 0.1 * rng.normal()
        scores = {
            name: of_person[order[n * part :][:part]].mean() + trained for n, name in enumerate(("auc", "test_auc"))
        }
        rows.append({"split_seed": split, "seed": 0, "split_hash": f"{split}", **scores})
    runs = pd.DataFrame(rows).assign(patients_train=people - 2 * part, patients_validation=part, patients_test=part)
    reported = runs.iloc[:splits]
    return optimism_of(runs.iloc[splits:] if tuned else reported, reported, "auc", "test_auc", 1).excludes_zero


@dataclass(frozen=True)
class Kind:
    """A kind of verdict or interval that is wrong in at most 5 % of studies: as in the table, and one study of it."""

    what: str
    units: str
    people: Sequence[int]
    wrong: Callable[[np.random.Generator, int], bool]
    studies: int = STUDIES_OF_KIND

    def measured(self, people: int) -> float:
        """Return the share of wrong studies."""
        rng = np.random.default_rng(0)
        return float(np.mean([self.wrong(rng, people) for _ in range(self.studies)]))


def _kinds() -> Iterator[Kind]:
    for what, measure in (("people over time", "test_accuracy"), ("prequential", "prequential_accuracy")):
        for n in SPLITS:
            yield Kind(f"difference, {what}", f"{n} splits", PEOPLE, partial(people_in_both, splits=n, measure=measure))
    for what, tuned in (("one tuning split", 1), ("two tuning splits", 2), ("paired", None)):
        for n in SPLITS:
            yield Kind(f"optimism, {what}", f"{n} splits", PEOPLE, partial(optimism, splits=n, tuned=tuned))
    for what, measure in _OF_S.items():
        of_shape = measure == "distance_from_gaussian"
        for shape in get_args(Shape) if of_shape else ("uniform", "two-peaked"):
            outcome: Outcome = "does not hold" if of_shape and shape == "Gaussian" else "holds"
            wrong = partial(of_s, measure=measure, outcome=outcome, shape=shape)
            for units in get_args(UnitsOfS):
                it = partial(wrong, units=units)
                yield Kind(f"{what}, {shape} s", units, (120, 480), it, STUDIES_OF_S)


PEOPLE, SPLITS = (10, 47, 300), (3, 5, 12)
_OF_S = {
    "tasks differ": "share_of_s_between_tasks",
    "similar tasks follow one another": "similarity_by_curriculum",
    "s is Gaussian": "distance_from_gaussian",
}
KINDS = tuple(_kinds())


def table_of_kinds() -> str:
    """Return the tables of `KINDS` in Markdown, one for each list of numbers of people."""
    lines: list[str] = []
    shown: Sequence[int] = ()
    for kind in KINDS:
        if kind.people != shown:
            shown = kind.people
            lines += [""] * bool(lines)
            lines.append(f"| false verdicts | units | nominal | {' | '.join(f'{it:,} people' for it in shown)} |")
            lines.append("| --- | --- |" + " ---: |" * (1 + len(shown)))
        measured = [f"{kind.measured(people):.1%}" for people in kind.people]
        lines.append(f"| {' | '.join((kind.what, kind.units, '5%', *measured))} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Run the command line."""
    if arguments not in ([], ["kinds"]):
        sys.exit(__doc__)
    tables = [None if arguments else table(), table_of_kinds()]
    above, _, below = DOCUMENT.read_text().partition(HEADING)
    first, _, second = below.partition(OTHER_HEADING)
    if tables[0]:
        first = f"{first.partition(FIRST_ROW)[0]}\n{tables[0]}\n\n"
    second = f"{second.partition(FIRST_ROW_OF_KINDS)[0]}\n{tables[1]}\n"
    DOCUMENT.write_text(f"{above}{HEADING}{first}{OTHER_HEADING}{second}")


if __name__ == "__main__":
    main(sys.argv[1:])
