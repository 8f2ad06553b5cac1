"""Comparison of strategies across the experiments of a report, paired by patient split and seed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clops_sweep.experiment.fields import equally_trained, training_of

from ..collect import Experiment
from ..drawing.labels import name_rows
from ..drawing.style import GRID, MUTED, colour, new_figure, styled
from ..drawing.values_in_words import NamedValues
from ..metrics import metric_named
from ..selection import cell_name, fields_unlike_paper, shown_metrics
from ..statistics import PairedDifference, Split
from .comparisons import Comparisons, ContrastKind, paired
from .editions_of_cells import editions_of, same_editions

_BASELINES = ("finetune", "multitask")


@dataclass(frozen=True)
class StrategyComparison:
    """Strategies with equal training on the same data, one configuration of each.

    `configurations` names the configuration of each strategy. `differences` holds every pair of strategies; fine-tuning
    is always subtracted from the other one.
    """

    dataset: str
    scenario: str
    strategies: tuple[str, ...]
    configurations: tuple[str, ...]
    metrics: tuple[str, ...]
    differences: Comparisons

    @property
    def named_values(self) -> NamedValues:
        """The mean difference of each pair in the first metric."""
        metric = self.metrics[0]
        values = []
        for row in self.differences.rows:
            values.append((f"{row.name} minus {row.baseline}", row.differences[metric].mean))
        return NamedValues(f"Difference in {metric_named(metric).plain}", values, metric_named(metric).better)


def compare_strategies(experiments: Sequence[Experiment]) -> list[StrategyComparison]:
    """Return one comparison for each training setting with finished runs of several strategies.

    A strategy is represented by the configuration closest to the paper's, then by the one with most finished runs;
    never by the best, since the best of many is partly best by luck. Comparisons within one search space are left out.

    Args:
        experiments: the experiments, without searches.
    """
    groups: dict[tuple[object, ...], list[tuple[Experiment, int]]] = {}
    for experiment in experiments:
        for index, cell in enumerate(experiment.cells):
            if experiment.run_ids(index):
                groups.setdefault(training_of(cell.config), []).append((experiment, index))
    return [table for sources in groups.values() for table in _comparison(sources)]


def _comparison(sources: Sequence[tuple[Experiment, int]]) -> Iterator[StrategyComparison]:
    chosen: dict[str, tuple[Experiment, int]] = {}
    editions: dict[Split, tuple[str, int]] = {}
    if len({experiment.cells[index].config.strategy for experiment, index in sources}) < 2:
        return
    for experiment, index in sorted(sources, key=_preference):
        config = experiment.cells[index].config
        of_this = editions_of(experiment, index)
        # Other data or another semantics version cannot be compared.
        same = same_editions(of_this, editions)
        alike = all(equally_trained(config, other.cells[cell].config) for other, cell in chosen.values())
        if config.strategy not in chosen and same and alike:
            chosen[config.strategy] = experiment, index
            editions |= of_this
    if len(chosen) < 2 or len({id(experiment) for experiment, _ in chosen.values()}) < 2:
        return
    names = sorted(chosen, key=lambda name: (_BASELINES.index(name) if name in _BASELINES else len(_BASELINES), name))
    ordered = [chosen[name] for name in names]
    pairs: list[tuple[int, int, ContrastKind]] = [
        (more, less, "variant") for less, more in itertools.combinations(range(len(names)), 2)
    ]
    config = ordered[0][0].cells[ordered[0][1]].config
    title = f"{config.dataset}, {config.scenario}"
    differences = paired(title, ordered, names, pairs)
    if differences.rows:
        yield StrategyComparison(
            config.dataset,
            config.scenario,
            tuple(names),
            tuple(cell_name(experiment.cells[index]) or experiment.name for experiment, index in ordered),
            shown_metrics([experiment for experiment, _ in ordered]),
            differences,
        )


def _preference(source: tuple[Experiment, int]) -> tuple[int, int]:
    experiment, index = source
    return len(fields_unlike_paper(experiment.cells[index].config)), -len(experiment.run_ids(index))


@styled
def draw_strategies(record: StrategyComparison) -> Figure:
    """Draw a panel per metric with a row per pair of strategies: mean difference and interval, filled if it excludes 0.

    Without an interval, every difference is drawn as a point.
    """
    rows = record.differences.rows
    metrics = [metric_named(metric) for metric in record.metrics]
    figure = new_figure(2.6 + 2.1 * len(metrics), 0.3 * len(rows) + 0.85)
    grid = figure.subplots(1, len(metrics), squeeze=False, sharey=True)[0]
    for axes, metric in zip(grid, metrics, strict=True):
        axes.grid(axis="x", color=GRID, lw=0.6)
        axes.axvline(0, color=MUTED, lw=0.9)
        for height, row in enumerate(rows):
            difference = row.differences[metric.column]
            if not difference.n:
                continue
            draw_difference(axes, difference, height, difference.excludes_zero)
        axes.set_title(metric.plain, fontweight="normal")
        axes.tick_params(axis="y", length=0)
        axes.locator_params(axis="x", nbins=4)
    name_rows(grid[0], [f"{row.name} minus {row.baseline}" for row in rows], range(len(rows)), 0.3)
    grid[0].set_ylim(len(rows) - 0.5, -0.5)
    figure.supxlabel("mean paired difference, with the interval of its test", fontsize=9)
    return figure


def draw_difference(axes: Axes, difference: PairedDifference, height: float, filled: bool) -> None:
    """Draw a difference with its interval at a height; without one, the difference of every unit as a point."""
    if np.isfinite(difference.low):
        axes.plot([difference.low, difference.high], [height, height], color=colour(0), lw=1.8)
        axes.plot(difference.mean, height, "o", ms=5.5, color=colour(0), mfc=colour(0) if filled else "white")
    else:
        axes.plot(difference.of_units, [height] * len(difference.of_units), "o", ms=3.5, color=colour(0), mfc="white")
