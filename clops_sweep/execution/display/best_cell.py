"""The best cell of a sweep so far."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Mapping
from statistics import fmean

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.fields import REPLICATES
from clops_sweep.experiment.metrics import in_words


class BestCell:
    """The cell with the highest mean of its scenario's first headline metric over its finished runs.

    The mean is over seeds and patient splits. Scenarios with different headline metrics have separate best cells.
    """

    def __init__(self) -> None:
        self._found: defaultdict[tuple[str, Hashable], list[tuple[float, ...]]] = defaultdict(list)
        self._names: dict[tuple[str, Hashable], list[str]] = {}
        self._best: dict[str, tuple[str, Hashable]] = {}
        self._columns: dict[str, tuple[str, ...]] = {}

    def add(self, name: str, config: RunConfig, values: Mapping[str, float]) -> None:
        """Add a run.

        Args:
            name: name of the run. A cell has the parts of a name that all its runs share.
            config: its config.
            values: its headline metrics by column; the first one ranks runs.
        """
        if not values:
            return
        first, *_ = self._columns[next(iter(values))] = tuple(values)
        fields = (value for field, value in vars(config).items() if field not in REPLICATES)
        cell = first, (*fields, *config.options.items())
        parts = re.split(", |: ", name)
        self._names[cell] = [part for part in self._names.get(cell, parts) if part in parts]
        self._found[cell].append(tuple(values.values()))
        best = self._best.get(first)
        if cell == best:
            of_metric = (it for it in self._found if it[0] == first)
            self._best[first] = max(of_metric, key=lambda it: self._mean(it)[0])
        elif best is None or self._mean(cell)[0] > self._mean(best)[0]:
            self._best[first] = cell

    def _mean(self, cell: tuple[str, Hashable]) -> tuple[float, ...]:
        return tuple(map(fmean, zip(*self._found[cell], strict=True)))

    def __str__(self) -> str:
        """Return the best cells in words; empty before the first finished run."""
        parts = []
        for first, cell in self._best.items():
            means = dict(zip(self._columns[first], self._mean(cell), strict=True))
            name = ", ".join(self._names[cell]) or "all runs"
            parts.append(f"{in_words(means)} ({name}, n = {len(self._found[cell])})")
        return "; ".join(parts)
