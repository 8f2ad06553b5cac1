"""The best cell of a sweep so far."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean

from clops_sweep.experiment.metrics import in_words

_SPLIT = re.compile(r"\b(split_seed \d+|split fold:\d+/\d+)(, )?")


class BestCell:
    """The cell with the highest mean of its scenario's first headline metric over its finished runs.

    The mean is over seeds and patient splits. Scenarios with different headline metrics have separate best cells.
    """

    def __init__(self) -> None:
        self._found: defaultdict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)
        self._best: dict[str, str] = {}
        self._columns: dict[str, tuple[str, ...]] = {}

    def add(self, names: Sequence[str], values: Mapping[str, Sequence[float]]) -> None:
        """Add some runs.

        Args:
            names: names of the runs.
            values: their headline metrics by column; the first one ranks them.
        """
        if not values:
            return
        first, *_ = self._columns[next(iter(values))] = tuple(values)
        for run, *of_run in zip(names, *values.values(), strict=False):
            name = _SPLIT.sub("", run).rstrip(", :") or "all runs"
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
        """Return the best cells in words; empty before the first finished run."""
        parts = []
        for first, name in self._best.items():
            means = dict(zip(self._columns[first], self._mean(first, name), strict=True))
            parts.append(f"{in_words(means)} ({name}, n = {len(self._found[first, name])})")
        return "; ".join(parts)
