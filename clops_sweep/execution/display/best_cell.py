"""The best cell of a sweep so far."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from statistics import fmean
from typing import NamedTuple

from clops_sweep.errors import several
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.fields import REPLICATES
from clops_sweep.experiment.metrics import metric_named, scores_in_words
from clops_sweep.experiment.spaces.run_names import Label, RunName


@dataclass
class _Cell:
    """Finished runs of one cell: the labels that their names share, and the values of each run."""

    labels: tuple[Label, ...]
    columns: tuple[str, ...]
    values: list[tuple[float, ...]] = field(default_factory=list)

    @property
    def means(self) -> dict[str, float]:
        """The mean of each metric over the runs."""
        by_metric = zip(*self.values, strict=True)
        return {column: fmean(values) for column, values in zip(self.columns, by_metric, strict=True)}

    @property
    def rank(self) -> float:
        """The mean of the first metric; higher is better, whatever the metric. -inf if it is undefined."""
        metric = self.columns[0]
        mean = self.means[metric]
        if not isfinite(mean):
            return -inf
        return -mean if metric_named(metric).better == "lower" else mean


class _Ranked(NamedTuple):
    """What the cells that are ranked together share: data set, scenario, and the metric that ranks them."""

    dataset: str
    scenario: str
    metric: str


class BestCell:
    """The cell with the best mean of its scenario's first headline metric over its finished runs.

    The mean is over seeds and patient splits. Each data set and scenario has a best cell of its own: scores on others
    cannot be compared with its.
    """

    def __init__(self) -> None:
        self._cells: dict[_Ranked, dict[Hashable, _Cell]] = {}
        self._best: dict[_Ranked, _Cell] = {}

    def add(self, name: RunName, config: RunConfig, values: Mapping[str, float]) -> None:
        """Add a run.

        Args:
            name: name of the run. A cell is called by the labels that the names of all its runs share.
            config: its config.
            values: its headline metrics by column; the first one ranks runs.
        """
        if not values:
            return
        columns = tuple(values)
        ranked = _Ranked(config.dataset, config.scenario, columns[0])
        cells = self._cells.setdefault(ranked, {})
        cell = cells.setdefault(_settings(config), _Cell(name.parts, columns))
        cell.labels = tuple(label for label in cell.labels if label in name.parts)
        cell.values.append(tuple(values.values()))
        best = self._best.get(ranked)
        if best is cell:  # its mean may have become worse
            self._best[ranked] = max(cells.values(), key=lambda cell: cell.rank)
        elif best is None or cell.rank > best.rank:
            self._best[ranked] = cell

    def __str__(self) -> str:
        """Return the best cells in words; empty before the first finished run."""
        texts = []
        data = {(ranked.dataset, ranked.scenario) for ranked in self._best}
        for ranked, cell in self._best.items():
            name = ", ".join(map(str, cell.labels)) or "all runs"
            where = f" on {ranked.dataset}, {ranked.scenario}" if len(data) > 1 else ""
            texts.append(f"{scores_in_words(cell.means)}{where} ({name}, {several(len(cell.values), 'run')})")
        return "; ".join(texts)


def _settings(config: RunConfig) -> Hashable:
    """Return what all runs of a cell share."""
    values = vars(config)  # which also hold what a config has computed from its fields, such as its identity
    fields = tuple(values[field] for field in type(config).model_fields if field not in REPLICATES)
    return fields, tuple(config.options.items())
