"""Pareto front of the trials of a search with several objectives."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clops_sweep.errors import UsageError
from clops_sweep.experiment.spaces.optuna_search import Direction
from clops_sweep.search.records import StudyRecord

from ..drawing.style import GRID, colour, new_figure, panels, styled
from ..drawing.values_in_words import NamedValues
from ..metrics import metric_named

Floats = npt.NDArray[np.float64]
MOST_NAMED = 12


@dataclass(frozen=True)
class ParetoFront:
    """Complete trials by their values, shape (trials, objectives).

    `on_front`: no other trial is at least as good in every objective and better in one.
    """

    objectives: tuple[str, ...]
    directions: tuple[Direction, ...]
    numbers: npt.NDArray[np.int64]
    values: Floats
    on_front: npt.NDArray[np.bool_]

    @property
    def named_values(self) -> NamedValues:
        """The value of each trial on the front in the first objective."""
        names = [f"trial {number}" for number in self.numbers[self.on_front].tolist()]
        better = "higher" if self.directions[0] == "maximize" else "lower"
        values = list(zip(names, self.values[self.on_front, 0].tolist(), strict=True))
        return NamedValues(f"{metric_named(self.objectives[0]).plain} on the front", values, better)


def pareto_front(record: StudyRecord) -> ParetoFront:
    """Return the Pareto front of a search.

    Raises:
        UsageError: the search has a single objective, or no complete trial.
    """
    if len(record.objectives) < 2:
        raise UsageError(f"search {record.name!r} has one objective; a Pareto front needs two")
    complete = record.of("complete")
    if not complete:
        raise UsageError(f"search {record.name!r} has no complete trial yet")
    values = np.array([trial.values for trial in complete], dtype=float)
    directions = tuple(record.objectives.values())
    numbers = np.array([trial.number for trial in complete], dtype=np.int64)
    return ParetoFront(tuple(record.objectives), directions, numbers, values, np.isin(numbers, record.best_numbers))


@styled
def draw_pareto_front(record: ParetoFront) -> Figure:
    """Draw a panel per pair of objectives; trials on the front are filled and labelled with their number."""
    pairs = list(itertools.combinations(range(len(record.objectives)), 2))
    columns = min(len(pairs), 2)
    rows = -(-len(pairs) // columns)
    figure = new_figure(4.6 * columns + (1.2 if columns == 1 else 0), 3.4 * rows + 0.4)
    grid = panels(figure, rows, columns, len(pairs))
    for axes, pair in zip(grid.flat, pairs, strict=False):
        _draw(axes, record, *pair)
    handles, names = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper left", ncols=len(names))
    return figure


def _draw(axes: Axes, record: ParetoFront, x: int, y: int) -> None:
    axes.grid(color=GRID, lw=0.6)
    front = record.on_front
    first, second = record.values[:, x], record.values[:, y]
    (others,) = axes.plot(
        first[~front], second[~front], "o", ms=4, mfc="none", color=colour(0), alpha=0.6, label="trial", clip_on=False
    )
    others.set_in_layout(not front.all())  # the box of an empty plot is at the figure's corner
    axes.plot(
        first[front], second[front], "o", ms=5.5, mew=0, color=colour(1), label="on the Pareto front", clip_on=False
    )
    if len(record.objectives) == 2:
        # Between neighbours on the front, only values that both of them dominate are known to be attainable.
        order = np.flatnonzero(front)[np.argsort(first[front], kind="stable")]
        where: Literal["post", "pre"] = "post" if record.directions[x] == "minimize" else "pre"
        axes.step(first[order], second[order], where=where, color=colour(1), lw=1.0, zorder=1)
    for index in np.flatnonzero(front)[:MOST_NAMED]:
        axes.annotate(
            str(record.numbers[index]), (float(first[index]), float(second[index])), xytext=(4, 3),
            textcoords="offset points", fontsize=7.5,
        )  # fmt: skip
    if first.min() >= 0:  # axes of objectives that are never negative start at 0 or above
        axes.set_xlim(left=max(axes.get_xlim()[0], 0.0))
    if second.min() >= 0:
        axes.set_ylim(bottom=max(axes.get_ylim()[0], 0.0))
    axes.set_xlabel(_label(record, x))
    axes.set_ylabel(_label(record, y))


def _label(record: ParetoFront, position: int) -> str:
    better = "higher" if record.directions[position] == "maximize" else "lower"
    return f"{metric_named(record.objectives[position]).plain} ({better} is better)"
