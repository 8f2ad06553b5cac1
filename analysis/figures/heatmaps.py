"""Heatmaps of a metric over two axes of a search space: one panel per remaining variant, on one colour scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from clops_sweep.errors import UsageError

from ..axis_names import axis_symbol, axis_title
from ..collect import Experiment, label_text
from ..drawing.cells import add_colour_bar, draw_cells, frame_cell, write_in_cell
from ..drawing.labels import in_lines, inches, name_columns, name_rows, shortened
from ..drawing.style import DIVERGING, SEQUENTIAL, new_figure, styled
from ..drawing.values_in_words import NamedValues
from ..formats import plural
from ..metrics import Metric, known_metric
from ..statistics import Estimate, estimates

Floats = npt.NDArray[np.float64]
CELL_HEIGHT = 0.48
"""Height of a cell in inches."""

MOST_WRITTEN = 1_000
"""Most cells of a figure that prints their values."""

_SMALL = 0.11
"""Width and height of a cell in inches, in a figure without values."""

_WIDTH, _HIGHEST = 13.8, 320.0
"""Width of the panels side by side in inches, unless the figure would become too high."""

_LEAST_ROOM = 0.88
"""Minimum width of a title in inches."""

_DOWN = {1: (0.5,), 2: (0.37, 0.74), 3: (0.25, 0.56, 0.83)}
"""Vertical positions of the lines of a cell by their number, as fractions of its height."""

_NAME_SIZE = 6.5
_BAR = 6.0
"""Maximum height of the colour bar in inches."""

_MOST_NAMED = 5
"""Most runs named in a cell's tooltip."""

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Panel:
    """One variant's cells. All arrays have shape (rows, columns).

    `mean` and `sd` over `n` patient splits, or seeds of one split, are NaN without a finished run; `finished`, `asked`
    and `failed` count the finished, requested and failed runs. `best` is (row, column) of the best mean, or None.
    `cells` are indices in the experiment, -1 if not requested. `marked` cells get an asterisk.
    """

    title: str
    mean: Floats
    sd: Floats
    n: Counts
    finished: Counts
    asked: Counts
    failed: Counts
    best: tuple[int, int] | None
    cells: npt.NDArray[np.int64]
    marked: npt.NDArray[np.bool_] | None = None

    def texts(self, record: Heatmap) -> dict[tuple[int, ...], str]:
        """Return the tooltips of the requested cells by (row, column)."""
        return {(r, c): place_in_words(record, self, (r, c)) for r, c in np.argwhere(self.asked > 0).tolist()}


@dataclass(frozen=True)
class Heatmap:
    """The data of a heatmap. `limits` are those of the colour scale, symmetric for a signed metric.

    `runs` has the ids of the finished runs of the experiment's cells.
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
        """Name of the colour map."""
        return DIVERGING if self.metric.signed else SEQUENTIAL

    @property
    def is_large(self) -> bool:
        """Whether there are too many cells to print their values."""
        return len(self.panels) * len(self.rows) * len(self.columns) > MOST_WRITTEN

    @property
    def best_panel(self) -> int | None:
        """The panel with the best mean of all; the first if several are equal."""
        sign = -1 if self.metric.better == "lower" else 1
        best = [(sign * panel.mean[panel.best], -i) for i, panel in enumerate(self.panels) if panel.best]
        return -max(best)[1] if best else None

    @property
    def named_values(self) -> NamedValues:
        """The mean of each cell with a finished run."""
        values = []
        for panel in self.panels:
            for row, column in np.argwhere(np.isfinite(panel.mean)).tolist():
                at = f"{axis_symbol(self.row_axis)} = {label_text(self.rows[row])}"
                at += f", {axis_symbol(self.column_axis)} = {label_text(self.columns[column])}"
                name = f"{panel.title}, {at}" if panel.title else at
                values.append((name, float(panel.mean[row, column])))
        return NamedValues(self.metric.plain, values, self.metric.better)


def heatmap(
    experiment: Experiment,
    metric: str = "auc",
    axes: tuple[str, str] | None = None,
    references: Mapping[str, Estimate] | None = None,
) -> Heatmap:
    """Return means (over patient splits, if several) of one metric over two axes.

    Args:
        experiment: the experiment.
        metric: a numeric column of `runs`, such as auc, bwt, accuracy or seconds.
        axes: the axes of rows and columns; by default the first two numeric axes.
        references: values of other strategies, for the caption.

    Raises:
        UsageError: an unknown metric or axis, or fewer than two numeric axes and none given.
    """
    shown = known_metric(metric, experiment.numeric_columns)
    row_axis, column_axis = chosen_axes(experiment, axes)
    rows, columns = experiment.axes[row_axis], experiment.axes[column_axis]
    others = [axis for axis in experiment.axes if axis not in (row_axis, column_axis)]
    position = {
        tuple(repr(cell.labels[axis]) for axis in (*others, row_axis, column_axis)): index
        for index, cell in enumerate(experiment.cells)
    }
    of_cells = estimates(experiment.by_split(metric))
    counts = [experiment.counts(status) for status in ("finished", None, "failed")]
    panels = []
    for variant in _variants(experiment, others):
        cells = np.array(
            [[position.get((*map(repr, variant), repr(r), repr(c)), -1) for c in columns] for r in rows],
            dtype=np.int64,
        )
        if (cells >= 0).any():
            panels.append(_panel(_title(others, variant), cells, of_cells, counts, shown))
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
    """Return the two requested axes, or the first two numeric ones.

    Raises:
        UsageError: an unknown axis, the same axis twice, or fewer than two numeric axes.
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
    """Draw all panels with a common colour bar, and mean and standard deviation in every cell.

    Missing cells are hatched, incomplete cells show their number of runs, the best cell of each panel has a frame and
    the best of all a star. If `is_large`, cells are small and have no values: a frame marks the best cell of a panel,
    and a dot each `marked` cell. The SVG file has values as tooltips.
    """
    small, n_rows, n_columns = record.is_large, len(record.rows), len(record.columns)
    width, height = (_SMALL, _SMALL) if small else (max(0.6, 1.8 / n_columns), CELL_HEIGHT)
    room = max(n_columns * width, _LEAST_ROOM)
    size = 6.0 if small else 9.5
    titles = [
        in_lines(panel.title or record.metric.plain, room, size, 3 if small else 4, not small)
        for panel in record.panels
    ]
    above = (0.14 + 1.35 * size / 72 * max(title.count("\n") + 1 for title in titles)) / height
    high, wide = n_rows + above, (room + (width if small else 0.15)) / width
    most = max(1, int(_HIGHEST / (height * high)))
    across = max(int(_WIDTH / (width * wide)), math.ceil(len(record.panels) / most), 1)
    across = min(across, len(record.panels))
    down = math.ceil(len(record.panels) / across)
    rows, columns = ([label_text(label) for label in labels] for labels in (record.rows, record.columns))
    beside, below = (max(inches(name, 8.5) for name in names) for names in (rows, columns))
    figure = new_figure(
        max(across * wide * width + 1.6 + max(0, min(beside, 2.2) - 0.4), 3.6),
        down * high * height + 0.75 + (min(below, 2) if below > width and not small else 0),
    )
    axes, scale = figure.subplots(), Normalize(*record.limits)
    places = [(index // across * high + above, index % across * wide) for index in range(len(record.panels))]
    for index, (panel, (top, left)) in enumerate(zip(record.panels, places, strict=True)):
        painted = draw_cells(
            axes, panel.mean, panel.texts(record), scale, record.colours, 0 if small else 1, (top, left)
        )
        middle = 0 if small else n_columns / 2
        axes.text(
            left + middle, top - 0.07 / height, titles[index], ha="left" if small else "center", va="bottom",
            linespacing=1.1, fontsize=size, fontweight="normal" if small else "bold",
        ).set_in_layout(False)  # fmt: skip
        is_best = index == record.best_panel
        if small:
            _mark_small(axes, panel, top, left, painted, is_best)
            continue
        for at in np.argwhere(panel.asked > 0).tolist():
            _write(axes, record.metric, panel, tuple(at), top, left, painted, is_best)
        if panel.best is not None:
            frame_cell(axes, (top + panel.best[0], left + panel.best[1]), 3.6)
    axes.set(xlim=(0, (across - 1) * wide + room / width), ylim=(down * high, 0))
    begins_across, begins_down = [i * wide for i in range(across)], [i * high + above for i in range(down)]
    if small:
        across_names = (inches(columns[0], _NAME_SIZE) + inches(columns[-1], _NAME_SIZE)) / 2 + 0.05
        _name_ends(axes.set_xticks, columns, begins_across, across_names)
        _name_ends(axes.set_yticks, rows, begins_down, 1.5 * _NAME_SIZE / 72)
    else:
        name_columns(axes, columns * across, [it + i + 0.5 for it in begins_across for i in range(n_columns)], width)
        name_rows(axes, rows * down, [it + i + 0.5 for it in begins_down for i in range(n_rows)], height)
    figure.supxlabel(axis_title(record.column_axis), fontsize=9)
    figure.supylabel(axis_title(record.row_axis), fontsize=9)
    tall = down * high * height
    share = min(_BAR, tall - above * height) / tall  # beside the cells, not the titles
    add_colour_bar(
        figure, axes, scale, record.colours, record.metric.plain, shrink=share, anchor=(0.0, 0.0),
        fraction=0.4 / figure.get_figwidth(), aspect=max(share * tall / 0.14, 5), pad=0.015,
    )  # fmt: skip
    return figure


def place_in_words(record: Heatmap, panel: Panel, at: tuple[int, int]) -> str:
    """Describe a cell of a panel: its labels, mean, standard deviation and runs."""
    place = (
        f"{axis_symbol(record.row_axis)} = {label_text(record.rows[at[0]])}, "
        f"{axis_symbol(record.column_axis)} = {label_text(record.columns[at[1]])}"
    )
    mean, sd, n, asked = float(panel.mean[at]), float(panel.sd[at]), int(panel.n[at]), int(panel.asked[at])
    runs = f"{panel.finished[at]} of {plural(asked, 'run')}"
    if not math.isfinite(mean):
        return f"{place}: {f'{panel.failed[at]} of {asked} failed' if panel.failed[at] else 'no finished run yet'}"
    value = record.metric.with_spread(mean, sd)
    ids = record.runs.get(int(panel.cells[at]), ())
    some = f"{' '.join(ids[:_MOST_NAMED])}{' …' if len(ids) > _MOST_NAMED else ''}"
    return f"{place}: {record.metric.plain} {value}, n = {n}, {runs} finished" + (f": {some}" if ids else "")


def _panel(
    title: str,
    cells: npt.NDArray[np.int64],
    of_cells: Sequence[Estimate],
    counts: Sequence[Counts],
    metric: Metric,
) -> Panel:
    """Return a panel; `counts` are the finished, requested and failed runs of every cell of the experiment."""
    shape = cells.shape
    mean, sd = np.full(shape, np.nan), np.full(shape, np.nan)
    n = np.zeros(shape, dtype=np.int64)
    of_runs = [np.zeros(shape, dtype=np.int64) for _ in counts]
    for at, cell in np.ndenumerate(cells):
        if cell < 0:
            continue
        summary = of_cells[int(cell)]
        mean[at], sd[at], n[at] = summary.mean, summary.sd, summary.n
        for here, everywhere in zip(of_runs, counts, strict=True):
            here[at] = everywhere[cell]
    best = None
    if metric.better is not None and np.isfinite(mean).any():
        first = np.nanargmax(mean) if metric.better == "higher" else np.nanargmin(mean)
        row, column = np.unravel_index(first, shape)
        best = (int(row), int(column))
    finished, asked, failed = of_runs
    return Panel(title, mean, sd, n, finished, asked, failed, best, cells)


def _variants(experiment: Experiment, others: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the combinations of the other axes that have a cell; the full product may be far too large."""
    order = {axis: {repr(label): at for at, label in enumerate(experiment.axes[axis])} for axis in others}
    found = {tuple(order[axis][repr(cell.labels[axis])] for axis in others) for cell in experiment.cells}
    ordered = []
    for positions in sorted(found):
        labels = [experiment.axes[axis][position] for axis, position in zip(others, positions, strict=True)]
        ordered.append(tuple(labels))
    return ordered


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


def _mark_small(axes: Axes, panel: Panel, top: float, left: float, painted: Floats, holds_best: bool) -> None:
    """Draw a frame around the best cell, a star if it is the best of all, and a dot in each marked cell."""
    if panel.best is not None:
        place = top + panel.best[0], left + panel.best[1]
        frame = Rectangle((place[1], place[0]), 1, 1, fill=False, edgecolor="black", lw=1, zorder=2)
        axes.add_patch(frame).set_in_layout(False)
        if holds_best:
            write_in_cell(axes, place, "★", painted[panel.best], fontsize=5)
    if panel.marked is not None and (panel.marked & np.isfinite(panel.mean)).any():
        down, right = np.argwhere(panel.marked & np.isfinite(panel.mean)).T + 0.5
        axes.plot(left + right, top + down, ".", ms=2.2, mew=0, color="black")


def _name_ends(set_ticks: Callable[..., object], names: Sequence[str], begins: Sequence[float], apart: float) -> None:
    """Name the first and last row or column of each panel; in one text if they are closer than a distance in inches."""
    ends = len(names) - 1
    if ends * _SMALL >= apart:
        texts, places = [names[0], names[-1]], [0.5, ends + 0.5]
    else:
        texts, places = [" … ".join(dict.fromkeys([names[0], names[-1]]))], [len(names) / 2]
    shown = [shortened(text, _LEAST_ROOM, _NAME_SIZE) for text in texts]
    set_ticks([begin + place for begin in begins for place in places], shown * len(begins), fontsize=_NAME_SIZE)


def _write(
    axes: Axes,
    metric: Metric,
    panel: Panel,
    at: tuple[int, ...],
    top: float,
    left: float,
    painted: Floats,
    holds_best: bool,
) -> None:
    """Write the mean with its asterisk or star, the standard deviation, and the number of runs if some are missing."""
    place = top + at[0], left + at[1]
    if not np.isfinite(panel.mean[at]):
        if panel.failed[at]:
            box = {"fc": "white", "ec": "none", "pad": 1}
            write_in_cell(axes, place, "failed", "white", fontsize=7, bbox=box)
        return
    background, best = painted[at], panel.best == at
    lines = [metric.text(float(panel.mean[at])) + "*" * (panel.marked is not None and bool(panel.marked[at]))]
    lines += [f"± {metric.text(float(panel.sd[at]))}"] if np.isfinite(panel.sd[at]) else []
    if panel.finished[at] < panel.asked[at]:
        lines.append(f"{panel.finished[at]} of {panel.asked[at]} runs")
    for line, (text, down) in enumerate(zip(lines, _DOWN[len(lines)], strict=True)):
        size, weight = (6.6, "normal") if line else (8.5, "bold" if best else "normal")
        write_in_cell(axes, place, text, background, down, fontsize=size, fontweight=weight)
    if holds_best and best:
        write_in_cell(axes, place, "★", background, 0.24, 0.88, fontsize=7.5)
