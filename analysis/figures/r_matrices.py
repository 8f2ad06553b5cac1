"""The R matrix, from which all metrics are computed: the score on each task after training on each task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from clops_sweep.errors import UsageError

from ..drawing.cells import add_colour_bar, draw_cells, frame_cell, write_in_cell
from ..drawing.labels import in_lines, inches, name_columns, name_rows, widest_part
from ..drawing.style import SEQUENTIAL, new_figure, panels, styled
from ..drawing.values_in_words import NamedValues
from ..metrics import metric_named

Floats = npt.NDArray[np.float64]
TOGETHER = "all tasks"
"""Label of the row of a run that is trained on all tasks at once."""

_WIDEST, _NARROWEST = 0.46, 0.2
_SMALLEST_FONT = 5.5
_WIDE_ENOUGH = 0.4
"""Least width in inches of a cell that shows a standard deviation."""
_NARROWEST_TITLE, _WIDEST_TITLE = 1.4, 2.4
"""Width in inches that the title of a panel has at least, and that a long part of it may take."""
_ROOM = 5.2
"""Maximum width of a panel in inches, unless its cells would be too narrow."""


@dataclass(frozen=True)
class RMatrix:
    """Means and sample standard deviations of R over `n` units of one configuration: patient splits, or seeds of one.

    Row i has the score on every task after training on task i: `mean` and `sd` have shape (trained, evaluated); `sd` is
    NaN with fewer than two units. A run that is trained on all tasks at once has one row.
    """

    title: str
    metric: str
    trained: tuple[str, ...]
    evaluated: tuple[str, ...]
    mean: Floats
    sd: Floats
    n: int

    @property
    def named_values(self) -> NamedValues:
        """The values at the end of the run: the last row."""
        values = list(zip(self.evaluated, map(float, self.mean[-1]), strict=True))
        what = f"{self.title}, last row" if self.title else "Last row"
        return NamedValues(what, values, "higher")


def split_shown(rows: pd.DataFrame) -> str:
    """Return the default split of figures of R: validation, or test if no run has a validation set."""
    return "validation" if rows.empty or (rows["split"] == "validation").any() else "test"


def rows_of_split(rows: pd.DataFrame, split: str, name: str) -> pd.DataFrame:
    """Return the rows of R on a split.

    Raises:
        UsageError: no rows; `name` says of what.
    """
    chosen = rows[rows["split"] == split]
    if chosen.empty:
        raise UsageError(f"{name}: no finished run with R on the {split} split")
    return chosen


def r_matrix(rows: pd.DataFrame, title: str = "", metric: str = "auc", split: str | None = None) -> RMatrix:
    """Return R of one configuration.

    Args:
        rows: rows of the store's table `r_matrix` for the runs of one configuration; with a column `unit`
            (`Experiment.in_units`), the runs of a unit are averaged first.
        title: name of the configuration.
        metric: a column of the table.
        split: validation or test; by default validation, or test without a validation set.

    Raises:
        UsageError: no rows of the split, or runs with different task orders.
    """
    chosen = rows_of_split(rows, split or split_shown(rows), title or "R")
    names = tasks_in_order(chosen, title)
    by_place = of_units(chosen, metric).pivot_table(
        metric, index="trained_on", columns="evaluated_on", aggfunc=["mean", "std"], dropna=False
    )
    trained = tuple(names[number - 1] for number in by_place.index)
    return RMatrix(
        title,
        metric,
        trained if len(trained) == len(names) else (TOGETHER,),
        names,
        by_place["mean"].to_numpy(dtype=float),
        by_place["std"].to_numpy(dtype=float),
        int(chosen["unit" if "unit" in chosen else "run_id"].nunique()),
    )


def of_units(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return a metric by unit and place in R, the mean over the unit's runs; without a column `unit`, by run."""
    units = rows if "unit" in rows else rows.assign(unit=rows["run_id"])
    return units.groupby(["unit", "trained_on", "evaluated_on"])[metric].mean().reset_index()


def tasks_in_order(rows: pd.DataFrame, title: str = "") -> tuple[str, ...]:
    """Return the tasks of runs in training order, from rows of the table `r_matrix`.

    Raises:
        UsageError: the runs have different task orders.
    """
    tasks = rows.drop_duplicates(["evaluated_on", "task"]).sort_values("evaluated_on")
    if tasks["evaluated_on"].duplicated().any():
        position = int(tasks.loc[tasks["evaluated_on"].duplicated(), "evaluated_on"].iloc[0])
        raise UsageError(f"{title or 'R'}: the runs train different tasks at place {position}")
    return tuple(map(str, tasks["task"]))


@styled
def draw_r_matrices(records: Sequence[RMatrix]) -> Figure:
    """Draw a panel per configuration on one colour scale: trained on (rows, from the top) by evaluated on (columns).

    A frame marks the task just trained. Means and standard deviations are printed in cells that are wide enough.

    Raises:
        UsageError: no record.
    """
    if not records:
        raise UsageError("R: nothing to draw")
    most = max(len(record.evaluated) for record in records)
    cell = min(_WIDEST, max(_NARROWEST, _ROOM / most))
    alike = len({(record.trained, record.evaluated) for record in records}) == 1
    below, beside = _room_for_names(records, cell)
    width = max(cell * most, _room_for_titles(records))
    columns = min(len(records), max(1, int(10 // (width + 0.15 + beside * (not alike)))))
    lines = math.ceil(len(records) / columns)
    titles = [in_lines(_title(record), width, 9, bold=True) for record in records]
    above = 0.17 * max(title.count("\n") + 1 for title in titles) + 0.2
    height = cell * max(len(record.trained) for record in records) + above
    figure = new_figure(
        columns * (width + 0.15) + beside * (1 if alike else columns) + 1.3,
        lines * height + below * (1 if alike else lines) + 0.5,
    )
    grid = panels(figure, lines, columns, len(records), sharex=alike, sharey=alike)
    finite = np.concatenate([record.mean[np.isfinite(record.mean)] for record in records])
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    scale = Normalize(low, max(high, low + 0.01))
    for index, axes in enumerate(grid.flat[: len(records)]):
        _draw(axes, records[index], cell, scale)
        axes.set_title(titles[index], fontsize=9, loc="left")
        if alike:
            axes.xaxis.set_visible(index + columns >= len(records))
            axes.yaxis.set_visible(index % columns == 0)
    figure.supxlabel("evaluated on", fontsize=9)
    figure.supylabel("trained on, one after another", fontsize=9)
    label = metric_named(records[0].metric).plain.removeprefix("Average ")
    add_colour_bar(figure, grid.ravel().tolist(), scale, SEQUENTIAL, label, fraction=0.05, aspect=18, pad=0.015)
    return figure


def _title(record: RMatrix) -> str:
    return f"{record.title} (n = {record.n})" if record.title else f"n = {record.n}"


def _room_for_titles(records: Sequence[RMatrix]) -> float:
    """Return the width in inches of the longest part of a title that is never split, such as "b = 0.001"."""
    titles = [_title(record) for record in records]
    longest = max(widest_part(title, 9, bold=True) for title in titles)
    return min(_WIDEST_TITLE, max(_NARROWEST_TITLE, longest))


def _in_words(record: RMatrix, row: int, column: int) -> str:
    spread = record.sd[row, column]
    sd = f" ± {spread:.3f}" if np.isfinite(spread) else ""
    names = f"trained on {record.trained[row]}, evaluated on {record.evaluated[column]}"
    return f"{names}: {record.mean[row, column]:.3f}{sd}, n = {record.n}"


def _room_for_names(records: Sequence[RMatrix], cell: float) -> tuple[float, float]:
    """Return the space in inches for names below columns (vertical if wider than a column) and beside rows."""
    widest = max(inches(task, 8.5) for record in records for task in record.evaluated)
    return (0.2 if widest < cell else min(2.0, widest + 0.1)), min(2.2, widest + 0.1)


def _draw(axes: Axes, record: RMatrix, cell: float, scale: Normalize) -> None:
    rows, columns = record.mean.shape
    known = np.argwhere(np.isfinite(record.mean)).tolist()
    texts: dict[tuple[int, ...], str] = {(r, c): _in_words(record, r, c) for r, c in known}
    painted = draw_cells(axes, record.mean, texts, scale, SEQUENTIAL, 0.8)
    name_columns(axes, record.evaluated, (np.arange(columns) + 0.5).tolist(), cell)
    name_rows(axes, record.trained, (np.arange(rows) + 0.5).tolist(), cell)
    font = min(8.0, 26 * cell)  # "0.79" is 2.2 times as wide as the font size
    if font >= _SMALLEST_FONT:
        for at in texts:
            spread = f"± {record.sd[at]:.2f}" if cell >= _WIDE_ENOUGH and np.isfinite(record.sd[at]) else ""
            write_in_cell(axes, at, f"{record.mean[at]:.2f}", painted[at], 0.37 if spread else 0.5, fontsize=font)
            if spread:
                write_in_cell(axes, at, spread, painted[at], 0.74, fontsize=6)
    for task in range(rows if rows > 1 else 0):
        frame_cell(axes, (task, task), 2.6)
