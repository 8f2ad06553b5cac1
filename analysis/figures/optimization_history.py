"""Optimisation history: the value of each trial of a search, and the best value so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from clops_sweep.errors import UsageError
from clops_sweep.experiment.spaces.optuna_search import Direction
from clops_sweep.search.records import StudyRecord

from ..drawing.labels import in_lines
from ..drawing.style import GRID, MUTED, colour, new_figure, panels, styled
from ..drawing.svg import tell_points
from ..drawing.values_in_words import NamedValues
from ..metrics import metric_named

Floats = npt.NDArray[np.float64]
_COLUMNS, _PANEL = 3, 2.6
"""Most panels side by side, and the width of one in inches."""


@dataclass(frozen=True)
class OptimizationHistory:
    """One objective over the trials of a search.

    `numbers` and `values` are those of the complete trials, by number; `best` is the best value up to each of them.
    `pruned_numbers` and `pruned_values` are those of pruned trials: the average objective over the tasks trained.
    """

    objective: str
    direction: Direction
    numbers: npt.NDArray[np.int64]
    values: Floats
    best: Floats
    pruned_numbers: npt.NDArray[np.int64]
    pruned_values: Floats

    @property
    def named_values(self) -> NamedValues:
        """The value of each complete trial."""
        names = [f"trial {number}" for number in self.numbers.tolist()]
        better = "higher" if self.direction == "maximize" else "lower"
        return NamedValues(
            metric_named(self.objective).plain, list(zip(names, self.values.tolist(), strict=True)), better
        )


@dataclass(frozen=True)
class MethodHistory:
    """The history of the first objective of one method of a tuned space."""

    title: str
    history: OptimizationHistory

    @property
    def named_values(self) -> NamedValues:
        """The best value of the method."""
        values = self.history.named_values
        best = [(f"{self.title}, best", float(self.history.best[-1]))]
        return NamedValues(values.what, best, values.better)


def optimization_history(record: StudyRecord) -> list[OptimizationHistory]:
    """Return the history of each objective.

    Raises:
        UsageError: the search has no complete trial.
    """
    complete = record.of("complete")
    if not complete:
        raise UsageError(f"search {record.name!r} has no complete trial yet")
    numbers = np.array([trial.number for trial in complete], dtype=np.int64)
    pruned = [trial for trial in record.of("pruned") if trial.intermediate]
    last = np.array([trial.intermediate[max(trial.intermediate)] for trial in pruned], dtype=float)
    histories = []
    for position, (name, direction) in enumerate(record.objectives.items()):
        values = np.array([(trial.values or ())[position] for trial in complete], dtype=float)
        best = np.maximum.accumulate(values) if direction == "maximize" else np.minimum.accumulate(values)
        pruned_numbers = np.array([trial.number for trial in pruned], dtype=np.int64)
        histories.append(OptimizationHistory(name, direction, numbers, values, best, pruned_numbers, last))
    return histories


# Not optuna.visualization.matplotlib: it draws with pyplot, whose state is global, and leaves out pruned trials.
@styled
def draw_optimization_history(histories: Sequence[OptimizationHistory]) -> Figure:
    """Draw a panel per objective, a dot per trial and the best so far as steps; pruned trials have a panel below."""
    pruned = histories[0].pruned_numbers.size > 0
    figure = new_figure(6.8, 2.4 * len(histories) + 0.6 + 1.4 * pruned)
    ratios = [1.0] * len(histories) + [0.6] * pruned
    column = figure.subplots(len(ratios), 1, squeeze=False, sharex=True, height_ratios=ratios)[:, 0]
    for axes, history in zip(column, histories, strict=False):
        _draw(axes, history)
    if pruned:
        axes = column[-1]
        axes.grid(axis="y", color=GRID, lw=0.6)
        axes.plot(histories[0].pruned_numbers, histories[0].pruned_values, "x", ms=4, color=MUTED)
        axes.set_ylabel("pruned, mean of\nits tasks so far")
    column[-1].set_xlabel("trial")
    handles, names = column[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper left", ncols=len(names))
    return figure


@styled
def draw_histories(methods: Sequence[MethodHistory]) -> Figure:
    """Draw a panel per method on one scale, as `draw_optimization_history` does, without pruned trials."""
    columns = min(len(methods), _COLUMNS)
    lines = math.ceil(len(methods) / columns)
    figure = new_figure(_PANEL * columns + 0.6, 2.1 * lines + 0.6)
    grid = panels(figure, lines, columns, len(methods), sharey=True)
    for position, (axes, method) in enumerate(zip(grid.flat, methods, strict=False)):
        _draw(axes, method.history)
        axes.set_title(in_lines(method.title, _PANEL - 0.3, 9), fontsize=9, fontweight="normal", loc="left")
        axes.label_outer(remove_inner_ticks=False)
        if position + columns >= len(methods):
            axes.set_xlabel("trial")
    handles, names = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper left", ncols=len(names))
    return figure


def _draw(axes: Axes, history: OptimizationHistory) -> None:
    axes.grid(axis="y", color=GRID, lw=0.6)
    axes.plot(history.numbers, history.values, "o", ms=4, mew=0, alpha=0.75, color=colour(0), label="trial")
    names = [f"trial {number}: {value:.4g}" for number, value in zip(history.numbers, history.values, strict=True)]
    tell_points(axes, history.numbers, history.values, names)
    axes.step(history.numbers, history.best, where="post", color="black", lw=1.2, label="best so far")
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
    axes.set_ylabel(metric_named(history.objective).plain)
