"""A metric over two axes of a search space: one panel per remaining variant, all on one colour scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from clops_sweep.errors import UsageError

from ..axis_names import axis_symbol, axis_title
from ..collect import Experiment, label_text
from ..drawing.cells import add_colour_bar, draw_cells, frame_cell, write_in_cell
from ..drawing.labels import corners, in_lines, inches, name_columns, name_panel, name_rows
from ..drawing.style import DIVERGING, SEQUENTIAL, new_figure, styled
from ..metrics import Metric, known_metric
from ..statistics import Estimate, estimates

Floats = npt.NDArray[np.float64]
CELL_HEIGHT = 0.48
"""Inches that a cell is high."""

MOST_WRITTEN = 1_000
"""Cells up to which a figure has their values."""

_MOST_NAMED = 5
"""Runs that a cell names when a pointer rests on it."""

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Panel:
    """One variant's cells. All arrays have shape (rows, columns).

    `mean` and `sd` over replicates are NaN where no run is finished; `n` counts the runs behind them, `asked` those
    asked for, `failed` those that failed. `best` is (row, column) of the best mean, None where there is none.
    `cells` are positions in the experiment, -1 where nothing was asked for. `marked` cells get an asterisk.
    """

    title: str
    mean: Floats
    sd: Floats
    n: Counts
    asked: Counts
    failed: Counts
    best: tuple[int, int] | None
    cells: npt.NDArray[np.int64]
    marked: npt.NDArray[np.bool_] | None = None

    def texts(self, record: Heatmap) -> dict[tuple[int, ...], str]:
        """Tooltip by (row, column) of the cells that were asked for."""
        return {(r, c): place_in_words(record, self, (r, c)) for r, c in np.argwhere(self.asked > 0).tolist()}


@dataclass(frozen=True)
class Heatmap:
    """What a heatmap figure shows. `limits` are those of the colour scale; a signed metric's are symmetric.

    `runs` are the finished runs of the experiment's cells.
    """

    name: str
    metric: Metric
    row_axis: str
    column_axis: str
    rows: tuple[Any, ...]
    columns: tuple[Any, ...]
    panels: tuple[Panel, ...]
    limits: tuple[float, float]
    references: Mapping[str, Estimate] = field(default_factory=dict, hash=False)
    runs: Mapping[int, tuple[str, ...]] = field(default_factory=dict, hash=False)

    @property
    def colours(self) -> str:
        """The name of the colour map."""
        return DIVERGING if self.metric.signed else SEQUENTIAL

    @property
    def is_large(self) -> bool:
        """Whether it has so many cells that `mosaic.draw_mosaic` shows them without their values."""
        return len(self.panels) * len(self.rows) * len(self.columns) > MOST_WRITTEN

    @property
    def best_panel(self) -> int | None:
        """The panel with the best mean of all, the first of equals."""
        sign = -1 if self.metric.better == "lower" else 1
        best = [(sign * panel.mean[panel.best], -i) for i, panel in enumerate(self.panels) if panel.best]
        return -max(best)[1] if best else None


def heatmap(
    experiment: Experiment,
    metric: str = "auc",
    axes: tuple[str, str] | None = None,
    references: Mapping[str, Estimate] | None = None,
) -> Heatmap:
    """Means over replicates of one metric, over two axes.

    Args:
        experiment: what was asked for and what there is.
        metric: a numeric column of `runs`, such as auc, bwt, accuracy or seconds.
        axes: the axes of rows and columns; default: the first two whose labels are numbers.
        references: values of other strategies, for the caption.

    Raises:
        UsageError: an unknown metric or axis, or fewer than two axes of numbers and none named.
    """
    shown = known_metric(metric, experiment.numeric_columns)
    row_axis, column_axis = chosen_axes(experiment, axes)
    rows, columns = experiment.axes[row_axis], experiment.axes[column_axis]
    others = [axis for axis in experiment.axes if axis not in (row_axis, column_axis)]
    position = {
        tuple(repr(cell.labels[axis]) for axis in (*others, row_axis, column_axis)): index
        for index, cell in enumerate(experiment.cells)
    }
    of_cells = estimates(experiment.by_replicate(metric))
    asked, failed = experiment.counts(), experiment.counts("failed")
    panels = []
    for variant in _variants(experiment, others):
        cells = np.array(
            [[position.get((*map(repr, variant), repr(r), repr(c)), -1) for c in columns] for r in rows],
            dtype=np.int64,
        )
        if (cells >= 0).any():
            panels.append(_panel(_title(others, variant), cells, of_cells, asked, failed, shown))
    return Heatmap(
        experiment.name,
        shown,
        row_axis,
        column_axis,
        rows,
        columns,
        tuple(panels),
        _limits(panels, shown),
        dict(references or {}),
        {cell: experiment.run_ids(cell) for cell in range(len(experiment.cells))},
    )


def chosen_axes(experiment: Experiment, axes: tuple[str, str] | None) -> tuple[str, str]:
    """The two axes asked for, or the first two that are scales.

    Raises:
        UsageError: an axis that the search space does not have, the same twice, or fewer than two scales.
    """
    if axes is None:
        scales = experiment.number_axes
        if len(scales) < 2:
            raise UsageError(f"search space {experiment.name!r} has fewer than two axes of numbers; name two axes")
        return scales[0], scales[1]
    for axis in axes:
        if axis not in experiment.axes:
            known = ", ".join(experiment.axes) or "none"
            raise UsageError(f"search space {experiment.name!r} has no axis {axis!r}; it has {known}")
    if axes[0] == axes[1]:
        raise UsageError(f"axis {axes[0]!r} is named twice; a heatmap needs two different axes")
    return axes


@styled
def draw_heatmap(record: Heatmap) -> Figure:
    """One row or several of panels, a common colour bar, the value in every cell.

    Missing cells are hatched, incomplete ones say how many runs they rest on, the best of each panel has a frame
    and the best of all a star.
    """
    n_rows, n_columns = len(record.rows), len(record.columns)
    panels_per_row = min(len(record.panels), max(1, 20 // max(n_columns, 4)))
    panel_rows = math.ceil(len(record.panels) / panels_per_row)
    cell_width = max(0.6, 1.8 / n_columns)
    names = [label_text(label) for label in (*record.rows, *record.columns)]
    beside, below = (max(inches(name, 8.5) for name in part) for part in (names[:n_rows], names[n_rows:]))
    titles = [in_lines(panel.title, n_columns * cell_width, 9.5, 4, bold=True) for panel in record.panels]
    lines = max(title.count("\n") + 1 for title in titles)
    figure = new_figure(
        max(panels_per_row * (n_columns * cell_width + 0.35) + 1.6 + max(0, min(beside, 2.2) - 0.4), 3.6),
        panel_rows * (n_rows * CELL_HEIGHT + 0.25 + 0.17 * lines) + 0.75 + (min(below, 2) if below > cell_width else 0),
    )
    grid = figure.subplots(panel_rows, panels_per_row, squeeze=False)
    scale = Normalize(*record.limits)
    for index, axes in enumerate(grid.flat):
        if index >= len(record.panels):
            axes.set_axis_off()
            continue
        _draw_panel(axes, record, record.panels[index], index == record.best_panel, scale)
        name_panel(axes, titles[index] or record.metric.figure, pad=5)
        # names stand at the edge alone; ticks that only say nothing would take most of the time
        is_lowest, is_first = index + panels_per_row >= len(record.panels), index % panels_per_row == 0
        name_columns(axes, names[n_rows:] if is_lowest else [], _middles(n_columns if is_lowest else 0), cell_width)
        name_rows(axes, names[:n_rows] if is_first else [], _middles(n_rows if is_first else 0), CELL_HEIGHT)
    figure.supxlabel(axis_title(record.column_axis), fontsize=9)
    figure.supylabel(axis_title(record.row_axis), fontsize=9)
    add_colour_bar(
        figure, corners(grid), scale, record.colours, record.metric.figure, fraction=0.05, aspect=18, pad=0.015
    )
    return figure


def describe_heatmap(record: Heatmap) -> str:
    """The figure in words, for those who do not see it."""
    text = (
        f"Heatmaps of {record.metric.plain} over {axis_title(record.row_axis)} (rows) and "
        f"{axis_title(record.column_axis)} (columns), {len(record.panels)} panel{'s' * (len(record.panels) != 1)}."
    )
    for panel in record.panels:
        name = panel.title or "All cells"
        if not np.isfinite(panel.mean).any():
            text += f" {name}: nothing finished yet."
            continue
        low, high = (record.metric.text(float(value)) for value in (np.nanmin(panel.mean), np.nanmax(panel.mean)))
        text += f" {name}: from {low} to {high}"
        if panel.best is not None:
            row, column = panel.best
            text += f", best at {label_text(record.rows[row])}, {label_text(record.columns[column])}"
        if panel.marked is not None:
            text += f", {int(panel.marked.sum())} of {panel.mean.size} cells marked"
        text += "."
    return text


def place_in_words(record: Heatmap, panel: Panel, at: tuple[int, int]) -> str:
    """A cell of a panel in words: where it lies, mean, standard deviation, how many runs, and which."""
    place = (
        f"{axis_symbol(record.row_axis)} = {label_text(record.rows[at[0]])}, "
        f"{axis_symbol(record.column_axis)} = {label_text(record.columns[at[1]])}"
    )
    mean, sd, n, asked = float(panel.mean[at]), float(panel.sd[at]), int(panel.n[at]), int(panel.asked[at])
    if not math.isfinite(mean):
        return f"{place}: {f'{panel.failed[at]} of {asked} failed' if panel.failed[at] else 'no finished run yet'}"
    value = record.metric.with_spread(mean, sd)
    ids = record.runs.get(int(panel.cells[at]), ())
    some = f"{' '.join(ids[:_MOST_NAMED])}{' …' if len(ids) > _MOST_NAMED else ''}"
    return f"{place}: {record.metric.plain} {value}, n = {n} of {asked}" + (f"; runs {some}" if ids else "")


def _panel(
    title: str,
    cells: npt.NDArray[np.int64],
    of_cells: Sequence[Estimate],
    asked: Counts,
    failed: Counts,
    metric: Metric,
) -> Panel:
    shape = cells.shape
    mean, sd = np.full(shape, np.nan), np.full(shape, np.nan)
    n, wanted, lost = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    for at, cell in np.ndenumerate(cells):
        if cell < 0:
            continue
        summary = of_cells[int(cell)]
        mean[at], sd[at], n[at] = summary.mean, summary.sd, summary.n
        wanted[at], lost[at] = asked[cell], failed[cell]
    best = None
    if metric.better is not None and np.isfinite(mean).any():
        first = np.nanargmax(mean) if metric.better == "higher" else np.nanargmin(mean)
        row, column = np.unravel_index(first, shape)
        best = (int(row), int(column))
    return Panel(title, mean, sd, n, wanted, lost, best, cells)


def _variants(experiment: Experiment, others: Sequence[str]) -> list[tuple[Any, ...]]:
    """The places on all other axes that have a cell, in the order of the axes; all of them may be far too many."""
    order = {axis: {repr(label): at for at, label in enumerate(experiment.axes[axis])} for axis in others}
    found = {tuple(order[axis][repr(cell.labels[axis])] for axis in others) for cell in experiment.cells}
    return [tuple(experiment.axes[axis][at] for axis, at in zip(others, place, strict=True)) for place in sorted(found)]


def _title(others: Sequence[str], variant: Sequence[Any]) -> str:
    parts = [
        label_text(label) if isinstance(label, str) else f"{axis_title(axis)} = {label_text(label)}"
        for axis, label in zip(others, variant, strict=True)
    ]
    return ", ".join(parts)


def _limits(panels: Sequence[Panel], metric: Metric) -> tuple[float, float]:
    means = np.concatenate([panel.mean[np.isfinite(panel.mean)] for panel in panels]) if panels else np.array([])
    if metric.signed:
        reach = max(float(np.abs(means).max(initial=0.0)), 0.01)
        return -reach, reach
    if not means.size:
        return (0.5, 1.0) if metric.column == "auc" else (0.0, 1.0)
    low, high = float(means.min()), float(means.max())
    return (low, high) if high - low > 1e-3 else (low - 0.005, high + 0.005)


def _draw_panel(axes: Axes, record: Heatmap, panel: Panel, holds_best: bool, scale: Normalize) -> None:
    painted = draw_cells(axes, panel.mean, panel.texts(record), scale, record.colours)
    for at in np.argwhere(panel.asked > 0).tolist():
        _write(axes, record.metric, panel, tuple(at), painted, holds_best)
    if panel.best is not None:
        frame_cell(axes, panel.best, 3.6)


def _middles(count: int) -> list[float]:
    return [place + 0.5 for place in range(count)]


def _write(axes: Axes, metric: Metric, panel: Panel, at: tuple[int, ...], painted: Floats, holds_best: bool) -> None:
    """The value, with an asterisk or star where due, and the number of runs where some are missing."""
    if not np.isfinite(panel.mean[at]):
        if panel.failed[at]:
            box = {"fc": "white", "ec": "none", "pad": 1}
            write_in_cell(axes, at, "failed", "white", fontsize=7, bbox=box)
        return
    background, best, incomplete = painted[at], panel.best == at, panel.n[at] < panel.asked[at]
    text = metric.text(float(panel.mean[at])) + "*" * (panel.marked is not None and bool(panel.marked[at]))
    weight = "bold" if best else "normal"
    write_in_cell(axes, at, text, background, 0.37 if incomplete else 0.5, fontsize=8.5, fontweight=weight)
    if holds_best and best:
        write_in_cell(axes, at, "★", background, 0.24, 0.84, fontsize=7.5)
    if incomplete:
        write_in_cell(axes, at, f"n = {panel.n[at]} of {panel.asked[at]}", background, 0.73, fontsize=6.6)
