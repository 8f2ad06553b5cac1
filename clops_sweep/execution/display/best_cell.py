"""The best cell of a sweep so far."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean

from clops_sweep.errors import several
from clops_sweep.experiment.metrics import in_words


class BestCell:
    """The name with the highest mean of its scenario's first headline metric over the finished runs of that name.

    Of scenarios with different headline metrics, the best of each, since two metrics cannot be compared.
    """

    def __init__(self) -> None:
        self._found: defaultdict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)
        self._best: dict[str, str] = {}
        self._columns: dict[str, tuple[str, ...]] = {}

    def add(self, names: Sequence[str], values: Mapping[str, Sequence[float]]) -> None:
        """Takes in some runs.

        Args:
            names: the name of the cell of each.
            values: their headline metrics by column, the one that ranks them first.
        """
        if not values:
            return
        first, *_ = self._columns[next(iter(values))] = tuple(values)
        for name, *of_run in zip(names, *values.values(), strict=False):
            self._found[first, name].append(tuple(of_run))
            best = self._best.get(first)
            if name == best:
                names_of_metric = (it for metric, it in self._found if metric == first)
                self._best[first] = max(names_of_metric, key=lambda it: self._mean(first, it)[0])
            elif best is None or self._mean(first, name)[0] > self._mean(first, best)[0]:
                self._best[first] = name

    def _mean(self, first: str, name: str) -> tuple[float, ...]:
        return tuple(map(fmean, zip(*self._found[first, name], strict=True)))

    def __str__(self) -> str:
        """In words; empty before the first finished run."""
        parts = []
        for first, name in self._best.items():
            means = dict(zip(self._columns[first], self._mean(first, name), strict=True))
            parts.append(f"{in_words(means)} ({name}, {several(len(self._found[first, name]), 'seed')})")
        return "; ".join(parts)
