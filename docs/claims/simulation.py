"""Error rates of verdicts on claims, from simulated studies: the table at the end of docs/claims.md.

python docs/claims/simulation.py          writes the table (some minutes)

A study compares methods that are equally good: each is the same learner on its own features, drawn from the same
distribution. Person i has a label y_i = ±1 and, for each method, a mean x_i ~ N(y_i mu, I) of D features. The learner
computes the mean w of y_i x_i over the training people. The frames of person i have mean x_i and standard deviation 1,
so the accuracy on them is Phi(y_i w.x_i / |w|). People thus affect both training and evaluation.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import special

from clops_sweep.analysis.claims.catalogue import CLOPS, FINETUNE
from clops_sweep.analysis.claims.claim_runs import ClaimRuns, ContrastRuns
from clops_sweep.analysis.claims.verdicts import Outcome, decided, evidence_of
from clops_sweep.analysis.statistics import Fold, Partition, Split
from clops_sweep.experiment.spaces.claims import Claim, Contrast

DOCUMENT, HEADING = Path(__file__).parents[1] / "claims.md", "## Simulated error rates\n"
FEATURES, SEPARATION, CLAIMS, MATTERS, GAIN = 5, 1.0, 10, 0.02, 0.1
STUDIES = 1000
CLAIM = Claim("simulated", "x", (Contrast(CLOPS, FINETUNE, "test_accuracy"),), "more", MATTERS)
RUNS = ClaimRuns(CLAIM, "simulated", (ContrastRuns(CLAIM.contrasts[0], {}),), "", {})


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
    *(Design(people, splits) for people in (47, 200, 4000) for splits in (3, 6, 12, 20)),
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


def main(arguments: Sequence[str]) -> None:
    """Run the command line."""
    if arguments:
        sys.exit(__doc__)
    above, _, below = DOCUMENT.read_text().partition(HEADING)
    intro = below.partition("\n| people")[0]
    DOCUMENT.write_text(f"{above}{HEADING}{intro}\n{table()}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
