"""The best cell of a sweep so far."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean

from clops_sweep.errors import several


class BestCell:
    """The name with the highest mean AUC over the runs of that name that are finished."""

    def __init__(self) -> None:
        self._found: defaultdict[str, list[float]] = defaultdict(list)
        self._best: str | None = None
        self._of_test = False

    def add(self, runs: Iterable[tuple[str, float]], *, of_test: bool = False) -> None:
        """Takes in some runs, each with the name of its cell and its AUC, of the test set if there is no validation."""
        self._of_test |= of_test
        for name, auc in runs:
            self._found[name].append(auc)
            if name == self._best:
                self._best = max(self._found, key=self._mean)
            elif self._best is None or self._mean(name) > self._mean(self._best):
                self._best = name

    def _mean(self, name: str) -> float:
        return fmean(self._found[name])

    def __str__(self) -> str:
        """In words; empty where there is none yet."""
        if self._best is None:
            return ""
        of = "test " * self._of_test
        return f"{of}AUC {self._mean(self._best):.3f} ({self._best}, {several(len(self._found[self._best]), 'seed')})"
