"""Forgetting by task: the score on a task right after learning it, and at the end of the run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from clops_sweep.errors import UsageError

from ..drawing.labels import TO_THE_LEFT, in_lines, inches, name_rows
from ..drawing.style import GRID, MUTED, colour, new_figure, panels, styled
from ..drawing.values_in_words import NamedValues
from ..metrics import metric_named
from ..statistics import Estimate, estimate
from .r_matrices import of_units, rows_of_split, split_shown, tasks_in_order

Floats = npt.NDArray[np.float64]
_FELL, _ROSE = colour(1), colour(0)
_ROW, _ROW_OF_TWO_LINES = 0.27, 0.34
_PANEL = 2.9


@dataclass(frozen=True)
class Forgetting:
    """R[j][j] and R[N][j] for every task j of one configuration, in training order.

    `learned` and `final` [tasks] are means over `n` units: patient splits, or the seeds of one. `change` estimates
    their difference per task. The change of the last task is 0 by definition.
    """

    title: str
    metric: str
    tasks: tuple[str, ...]
    learned: Floats
    final: Floats
    change: tuple[Estimate, ...]
    n: int
    split: str = "validation"

    @property
    def named_values(self) -> NamedValues:
        """The change of each task from right after learning it to the end of the run; the last task has none."""
        values = [(task, change.mean) for task, change in zip(self.tasks[:-1], self.change[:-1], strict=True)]
        what = f"{self.title}, change to the end of the run" if self.title else "Change to the end of the run"
        return NamedValues(what, values, "higher")


def forgetting(rows: pd.DataFrame, title: str = "", metric: str = "auc", split: str | None = None) -> Forgetting:
    """Return the forgetting of every task of one configuration.

    Args:
        rows: rows of the store's table `r_matrix` for the runs of one configuration; with a column `unit`
            (`Experiment.in_units`), the runs of a unit are averaged first.
        title: name of the configuration.
        metric: a column of the table.
        split: validation or test; by default validation, or test without a validation set.

    Raises:
        UsageError: no rows of the split, runs with different task orders, runs with a single task, or runs trained on
            all tasks at once.
    """
    split = split or split_shown(rows)
    chosen = rows_of_split(rows, split, title or "forgetting")
    tasks = tasks_in_order(chosen, title)
    if len(tasks) < 2 or chosen["trained_on"].nunique() < len(tasks):
        raise UsageError(f"{title or 'forgetting'}: one task, or all at once, leave nothing to forget")
    by_run = of_units(chosen, metric).pivot_table(
        metric, index="unit", columns=["trained_on", "evaluated_on"], dropna=False
    )
    numbers = range(1, len(tasks) + 1)
    learned = np.stack([by_run[number, number].to_numpy(dtype=float) for number in numbers])
    final = np.stack([by_run[len(tasks), number].to_numpy(dtype=float) for number in numbers])
    mean_learned = np.array([estimate(values).mean for values in learned])
    mean_final = np.array([estimate(values).mean for values in final])
    change = tuple(estimate(values) for values in final - learned)
    return Forgetting(title, metric, tasks, mean_learned, mean_final, change, len(by_run), split)


@styled
def draw_forgetting(records: Sequence[Forgetting]) -> Figure:
    """Draw a panel per configuration on one scale, with a row per task: a ring (just learned) and a dot (at the end).

    The change is written at the right of each row. A task has the same row in all panels.

    Raises:
        UsageError: no record.
    """
    if not records:
        raise UsageError("forgetting: nothing to draw")
    tasks = tuple(dict.fromkeys(task for record in records for task in record.tasks))
    row = _ROW if max(inches(task, 8.5) for task in tasks) <= TO_THE_LEFT else _ROW_OF_TWO_LINES
    columns = min(len(records), 3)
    lines = math.ceil(len(records) / columns)
    titles = [in_lines(f"{r.title} (n = {r.n})" if r.title else f"n = {r.n}", _PANEL - 0.3, 9) for r in records]
    room = 0.17 * max(title.count("\n") + 1 for title in titles) + 0.3
    figure = new_figure(_PANEL * columns + 2.2, lines * (max(row * len(tasks), 0.5) + room) + 0.75)
    grid = panels(figure, lines, columns, len(records), sharex=True, sharey=True)
    for index, axes in enumerate(grid.flat[: len(records)]):
        _draw(axes, records[index], tasks)
        axes.set_title(titles[index], fontsize=9, fontweight="normal", loc="left")
        axes.tick_params(labelbottom=index + columns >= len(records))
    name_rows(grid[0][0], tasks, list(range(len(tasks))), row)
    grid[0][0].set_ylim(len(tasks) - 0.5, -0.5)
    splits = " and ".join(dict.fromkeys(record.split for record in records))
    figure.supxlabel(f"{splits} {metric_named(records[0].metric).plain.removeprefix('Average ')}", fontsize=9)
    keys = [
        Line2D([], [], ls="none", marker="o", ms=5, color="#333333", mfc=inside, label=label)
        for inside, label in (("white", "just learned, R[j][j]"), ("#333333", "in the end, R[N][j]"))
    ]
    figure.legend(handles=keys, loc="outside upper left", ncols=2)
    return figure


def _draw(axes: Axes, record: Forgetting, tasks: Sequence[str]) -> None:
    axes.grid(axis="x", color=GRID, lw=0.6)
    for task, learned, final, change in zip(record.tasks, record.learned, record.final, record.change, strict=True):
        row = tasks.index(task)
        tint = _FELL if final < learned else _ROSE
        axes.plot([learned, final], [row, row], color=tint, lw=1.8, zorder=2)
        axes.plot([learned], [row], "o", ms=5.5, mfc="white", mec=tint, mew=1.3, zorder=3)
        axes.plot([final], [row], "o", ms=5.5, color=tint, mew=0, zorder=4)
        if task == record.tasks[-1]:
            continue
        text = f"{change.mean:+.3f}" + (f" ± {change.sd:.3f}" if np.isfinite(change.sd) else "")
        axes.text(
            1.02, row, text, transform=axes.get_yaxis_transform(), ha="left", va="center", fontsize=7, color=MUTED
        )  # fmt: skip
    axes.tick_params(axis="y", length=0)
