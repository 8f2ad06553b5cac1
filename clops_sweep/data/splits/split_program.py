"""Balanced splits of few patients by an integer programme.

If a class has only a few patients, a random split may leave it without a test patient. Here every patient p gets one
split s (binary x[p, s]) such that every class is in every split if it has enough patients, and frames per class are as
close to 60/20/20 as possible. The seed then picks one of the many near-best assignments.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.frames import SPLIT_NAMES

FRACTIONS: Final = (0.6, 0.2, 0.2)
_PARTS: Final = 3
_SLACK: Final = 0.01
"""Largest loss of balance against the best split found: a share of a class's frames, averaged over classes and
splits."""
_GAP: Final = 0.05
_NODES: Final = 500
"""Maximum number of nodes of the search. Unlike a time limit, it gives the same split on every machine."""


def required_patients(patients: int) -> tuple[int, int, int]:
    """Return the minimum training, validation and test patients of a class with `patients` patients.

    Two training patients if there are four; with fewer than three, training comes before test, test before validation.
    """
    return (2 if patients >= 4 else min(1, patients), int(patients >= 3), int(patients >= 2))


def balanced_split(counts: NDArray[np.int64], seed: int) -> NDArray[np.int8]:
    """Return TRAINING, VALIDATION or TEST for every patient, [patients] int8, from frames per patient and class [p, C].

    First minimises the mean over classes c and splits s of |sum_p n[p, c] x[p, s] / N[c] - f[s]|, f = 0.6, 0.2, 0.2,
    with the coverage of `required_patients`; then, among the assignments at most 0.01 worse than that, takes the one
    with the highest sum of weights drawn from the seed. Both by `scipy.optimize.milp` (HiGHS). Coverage that is
    impossible, because two classes need the same patient in different splits, is missed by as few patients as possible.
    """
    programme = _Programme(counts)
    least = _least_imbalance(np.ascontiguousarray(counts, np.int64).tobytes(), len(counts))
    weights = np.random.default_rng([seed, len(counts)]).uniform(size=(len(counts), _PARTS))
    drawn = programme.solve(programme.preference(weights), bound=least + _SLACK)
    return programme.assignment(drawn)


@lru_cache(maxsize=16)
def _least_imbalance(counts: bytes, patients: int) -> float:
    """Return the imbalance of the best split found of some counts, as bytes of int64 [patients, C].

    It takes nearly all the time of a split, and is the same for every seed.
    """
    programme = _Programme(np.frombuffer(counts, np.int64).reshape(patients, -1))
    best = programme.solve(programme.quality, bound=None)
    return float(programme.quality @ best)


def uncovered_classes(counts: NDArray[np.int64], split: NDArray[np.int8]) -> dict[int, list[str]]:
    """Return classes missing in a non-empty split, with its name, for counts [p, C] and split [p]."""
    missing: dict[int, list[str]] = {}
    for code in np.flatnonzero(counts.sum(0)):
        for part, name in enumerate(SPLIT_NAMES):
            if (split == part).any() and not counts[split == part, code].any():
                missing.setdefault(int(code), []).append(name)
    return missing


class _Programme:
    """The integer programme: binary x [patients, 3], deviations d [C, 3] >= 0 and missing patients m [C, 3] >= 0."""

    def __init__(self, counts: NDArray[np.int64]) -> None:
        self.counts = counts[:, counts.sum(0) > 0]
        self.patients, self.classes = self.counts.shape
        self.assigned = self.patients * _PARTS
        self.pairs = self.classes * _PARTS
        self.variables = self.assigned + 2 * self.pairs
        self.quality = np.zeros(self.variables)
        if self.pairs:
            self.quality[self.assigned : self.assigned + self.pairs] = 1 / self.pairs
        # no deviation exceeds 1, so a missing patient outweighs any gain in balance
        self.quality[self.assigned + self.pairs :] = 10.0
        self.matrix, self.low, self.high = self._constraints()

    def preference(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the cost whose minimum is the assignment of the highest total weight; weights [patients, 3]."""
        return np.concatenate([-weights.ravel(), np.zeros(2 * self.pairs)])

    def solve(self, cost: NDArray[np.float64], bound: float | None) -> NDArray[np.float64]:
        """Return the variables of least cost whose imbalance is at most `bound`, [variables]."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        constraints = [LinearConstraint(self.matrix, self.low, self.high)]
        if bound is not None:
            constraints.append(LinearConstraint(self.quality[None], -np.inf, bound))
        upper = np.ones(self.variables)
        upper[self.assigned + self.pairs :] = 2
        with _solver_silent():
            result = milp(
                cost,
                integrality=np.concatenate([np.ones(self.assigned), np.zeros(2 * self.pairs)]),
                bounds=Bounds(0, upper),
                constraints=constraints,
                options={"mip_rel_gap": _GAP, "node_limit": _NODES},
            )
        # coverage may be missed at a cost, so a feasible assignment always exists
        assert result.x is not None, result.message
        return np.asarray(result.x)

    def assignment(self, solution: NDArray[np.float64]) -> NDArray[np.int8]:
        """Return the split of every patient, [patients]; patients without frames are in training."""
        split: NDArray[np.int8] = solution[: self.assigned].reshape(-1, _PARTS).argmax(1).astype(np.int8)
        split[self.counts.sum(1) == 0] = 0
        return split

    def _constraints(self) -> tuple[Any, NDArray[np.float64], NDArray[np.float64]]:
        from scipy.sparse import coo_array

        entries: list[tuple[int, int, float]] = []
        low: list[float] = []
        high: list[float] = []

        def add(columns: NDArray[np.integer[Any]], values: NDArray[np.float64], least: float, most: float) -> None:
            entries.extend((len(low), int(c), float(v)) for c, v in zip(columns, values, strict=True) if v)
            low.append(least)
            high.append(most)

        parts = np.arange(_PARTS)
        for patient in range(self.patients):
            add(patient * _PARTS + parts, np.ones(_PARTS), 1, 1)
        everyone = np.arange(self.patients) * _PARTS
        for code in range(self.classes):
            share = self.counts[:, code] / self.counts[:, code].sum()
            carries = (self.counts[:, code] > 0).astype(float)
            needed = required_patients(int(carries.sum()))
            for part in range(_PARTS):
                pair = self.assigned + code * _PARTS + part
                columns = np.append(everyone + part, pair)
                add(columns, np.append(share, -1.0), -np.inf, FRACTIONS[part])
                add(columns, np.append(share, 1.0), FRACTIONS[part], np.inf)
                missing = np.append(everyone + part, pair + self.pairs)
                add(missing, np.append(carries, 1.0), needed[part], np.inf)
        rows, positions, values = zip(*entries, strict=True)
        matrix = coo_array((values, (rows, positions)), shape=(len(low), self.variables)).tocsc()
        return matrix, np.array(low), np.array(high)


@contextmanager
def _solver_silent() -> Iterator[None]:
    """Drop what HiGHS prints from C++ to standard output in some releases, even if told not to."""
    sys.stdout.flush()
    saved = os.dup(1)
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
