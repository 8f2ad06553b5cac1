"""Heatmaps of a metric over two axes of a search space: one panel per remaining variant, on one colour scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from clops_sweep.errors import UsageError
from clops_sweep.experiment.axis_names import axis_symbol, axis_title

from ..collect import Experiment, label_text
from ..drawing.cells import add_colour_bar, draw_cells, frame_cell, write_in_cell
from ..drawing.labels import in_lines, inches, name_columns, name_rows, shortened
from ..drawing.style import DIVERGING, SEQUENTIAL, new_figure, styled
from ..drawing.values_in_words import NamedValues
from ..formats import plural
from ..metrics import Metric, known_metric
from ..selection import competing_cells, data_of
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
    and `failed` count the finished, requested and failed runs. `best` is (row, column) of the best mean among the cells
    that compete (`competing_cells`) or, if none does, among all; None without one, and over several data sets or
    scenarios. `data` are the data set and scenario, if `best` competes with those of other panels.
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
    data: tuple[str, str] | None = None

    def texts(self, record: Heatmap) -> dict[tuple[int, ...], str]:
        """Return the tooltips of the requested cells by (row, column)."""
        texts: dict[tuple[int, ...], str] = {}
        for row, column in np.argwhere(self.asked > 0).tolist():
            texts[row, column] = cell_in_words(record, self, (row, column))
        return texts


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
    def best_panels(self) -> tuple[int, ...]:
        """The panel with the best mean of each data set and scenario; the first if several are equal."""
        sign = -1 if self.metric.better == "lower" else 1
        best_panels: dict[tuple[str, str], int] = {}
        highest: dict[tuple[str, str], float] = {}
        for index, panel in enumerate(self.panels):
            if panel.best is None or panel.data is None:
                continue
            mean = sign * float(panel.mean[panel.best])
            if mean > highest.get(panel.data, -np.inf):
                best_panels[panel.data] = index
                highest[panel.data] = mean
        return tuple(best_panels.values())

    @property
    def named_values(self) -> NamedValues:
        """The mean of each cell with a finished run."""
        values = []
        for panel in self.panels:
            for row, column in np.argwhere(np.isfinite(panel.mean)).tolist():
                labels = self.labels_in_words((row, column))
                name = f"{panel.title}, {labels}" if panel.title else labels
                values.append((name, float(panel.mean[row, column])))
        is_ranked = len({panel.data for panel in self.panels if panel.data is not None}) == 1
        return NamedValues(self.metric.plain, values, self.metric.better if is_ranked else None)

    def labels_in_words(self, cell: tuple[int, int]) -> str:
        """Return the labels of a cell (row, column), such as "a = 0.5, b = 0.1"."""
        row, column = cell
        of_row = f"{axis_symbol(self.row_axis)} = {label_text(self.rows[row])}"
        of_column = f"{axis_symbol(self.column_axis)} = {label_text(self.columns[column])}"
        return f"{of_row}, {of_column}"


def heatmap(
    experiment: Experiment,
    metric: str = "auc",
    axes: tuple[str, str] | None = None,
    references: Mapping[str, Estimate] | None = None,
) -> Heatmap:
    """Return means of one metric over two axes, each over patient splits or, with one split, over its seeds.

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
    positions: dict[tuple[str, ...], int] = {}
    for index, cell in enumerate(experiment.cells):
        labels = tuple(repr(cell.labels[axis]) for axis in (*others, row_axis, column_axis))
        positions[labels] = index
    of_cells = estimates(experiment.by_split(metric))
    counts = [experiment.counts(status) for status in ("finished", None, "failed")]
    competing = set(competing_cells(experiment, shown.column))
    panels = []
    for variant in _variants(experiment, others):
        of_variant = tuple(map(repr, variant))
        cells = np.full((len(rows), len(columns)), -1, dtype=np.int64)
        for row, row_label in enumerate(rows):
            for column, column_label in enumerate(columns):
                labels = (*of_variant, repr(row_label), repr(column_label))
                cells[row, column] = positions.get(labels, -1)
        if (cells >= 0).any():
            panel = _panel(_title(others, variant), cells, of_cells, counts)
            panels.append(_with_best(panel, experiment, competing, shown))
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
    the best of each data set and scenario a star. If `is_large`, cells are small and have no values: a frame marks the
    best cell of a panel, and a dot each `marked` cell. The SVG file has values as tooltips.
    """
    small = record.is_large
    layout = _Layout.of(record)
    row_names = [label_text(label) for label in record.rows]
    column_names = [label_text(label) for label in record.columns]
    figure = new_figure(*layout.figure_size(row_names, column_names))
    axes = figure.subplots()
    scale = Normalize(*record.limits)
    best_panels = record.best_panels
    for index, panel in enumerate(record.panels):
        top, left = layout.corner(index)
        gap = 0 if small else 1
        painted = draw_cells(axes, panel.mean, panel.texts(record), scale, record.colours, gap, (top, left))
        _write_title(axes, layout, index, len(record.columns))
        is_best = index in best_panels
        if small:
            _mark_small(axes, panel, top, left, painted, is_best)
            continue
        for cell in np.argwhere(panel.asked > 0).tolist():
            _write(axes, record.metric, panel, tuple(cell), top, left, painted, is_best)
        if panel.best is not None:
            row, column = panel.best
            frame_cell(axes, (top + row, left + column), 3.6)
    right = (layout.across - 1) * layout.panel_width + layout.room / layout.width
    axes.set(xlim=(0, right), ylim=(layout.down * layout.panel_height, 0))
    begins_across = [column * layout.panel_width for column in range(layout.across)]
    begins_down = [row * layout.panel_height + layout.above for row in range(layout.down)]
    if small:
        apart = (inches(column_names[0], _NAME_SIZE) + inches(column_names[-1], _NAME_SIZE)) / 2 + 0.05
        _name_ends(axes.set_xticks, column_names, begins_across, apart)
        _name_ends(axes.set_yticks, row_names, begins_down, 1.5 * _NAME_SIZE / 72)
    else:
        name_columns(axes, column_names * layout.across, _middles(begins_across, len(column_names)), layout.width)
        name_rows(axes, row_names * layout.down, _middles(begins_down, len(row_names)), layout.height)
    figure.supxlabel(axis_title(record.column_axis), fontsize=9)
    figure.supylabel(axis_title(record.row_axis), fontsize=9)
    high = layout.down * layout.panel_height * layout.height
    share = min(_BAR, high - layout.above * layout.height) / high  # beside the cells, not the titles
    add_colour_bar(
        figure, axes, scale, record.colours, record.metric.plain, shrink=share, anchor=(0.0, 0.0),
        fraction=0.4 / figure.get_figwidth(), aspect=max(share * high / 0.14, 5), pad=0.015,
    )  # fmt: skip
    return figure


@dataclass(frozen=True)
class _Layout:
    """Sizes of the panels and their cells. Those of a panel and `above` count cells, the others are in inches.

    Attributes:
        small: whether cells have no values.
        width: width of a cell.
        height: height of a cell.
        room: width of a panel's title.
        size: font size of the titles, in points.
        titles: the title of each panel, in lines.
        above: height of the titles.
        panel_width: width of a panel with the gap to the next one.
        panel_height: height of a panel with its title.
        across: number of panels side by side.
        down: number of panels one below another.
    """

    small: bool
    width: float
    height: float
    room: float
    size: float
    titles: tuple[str, ...]
    above: float
    panel_width: float
    panel_height: float
    across: int
    down: int

    @classmethod
    def of(cls, record: Heatmap) -> _Layout:
        """Return as many panels side by side as fit, or more if the figure would become too high."""
        small = record.is_large
        n_panels = len(record.panels)
        n_columns = len(record.columns)
        width, height, size, lines, gap = max(0.6, 1.8 / n_columns), CELL_HEIGHT, 9.5, 4, 0.15
        if small:
            width, height, size, lines, gap = _SMALL, _SMALL, 6.0, 3, _SMALL
        room = max(n_columns * width, _LEAST_ROOM)
        titles = []
        for panel in record.panels:
            titles.append(in_lines(panel.title or record.metric.plain, room, size, lines, not small))
        most_lines = max(title.count("\n") + 1 for title in titles)
        above = (0.14 + 1.35 * size / 72 * most_lines) / height
        panel_height = len(record.rows) + above
        panel_width = (room + gap) / width
        most_down = max(1, int(_HIGHEST / (height * panel_height)))
        across = max(int(_WIDTH / (width * panel_width)), math.ceil(n_panels / most_down), 1)
        across = min(across, n_panels)
        down = math.ceil(n_panels / across)
        return cls(small, width, height, room, size, tuple(titles), above, panel_width, panel_height, across, down)

    def figure_size(self, row_names: Sequence[str], column_names: Sequence[str]) -> tuple[float, float]:
        """Return width and height of the figure in inches."""
        beside = max(inches(name, 8.5) for name in row_names)
        below = max(inches(name, 8.5) for name in column_names)
        width = self.across * self.panel_width * self.width + 1.6 + max(0, min(beside, 2.2) - 0.4)
        height = self.down * self.panel_height * self.height + 0.75
        if below > self.width and not self.small:
            height += min(below, 2)
        return max(width, 3.6), height

    def corner(self, index: int) -> tuple[float, float]:
        """Return top and left of the cells of a panel, counted in cells."""
        row, column = divmod(index, self.across)
        return row * self.panel_height + self.above, column * self.panel_width


def _middles(begins: Sequence[float], count: int) -> list[float]:
    """Return the middles of `count` cells from each begin on."""
    middles = []
    for begin in begins:
        middles += [begin + index + 0.5 for index in range(count)]
    return middles


def _write_title(axes: Axes, layout: _Layout, index: int, n_columns: int) -> None:
    """Write a panel's title above its cells: at the left above small cells, else in the middle."""
    top, left = layout.corner(index)
    bottom = top - 0.07 / layout.height
    x, alignment, weight = left + n_columns / 2, "center", "bold"
    if layout.small:
        x, alignment, weight = left, "left", "normal"
    axes.text(
        x, bottom, layout.titles[index], ha=alignment, va="bottom", linespacing=1.1, fontsize=layout.size,
        fontweight=weight,
    ).set_in_layout(False)  # fmt: skip


def cell_in_words(record: Heatmap, panel: Panel, cell: tuple[int, int]) -> str:
    """Describe a cell (row, column) of a panel: its labels, mean, standard deviation and runs."""
    labels = record.labels_in_words(cell)
    mean = float(panel.mean[cell])
    asked = int(panel.asked[cell])
    if not math.isfinite(mean):
        failed = panel.failed[cell]
        return f"{labels}: {failed} of {asked} failed" if failed else f"{labels}: no finished run yet"
    value = record.metric.with_spread(mean, float(panel.sd[cell]))
    runs = f"{panel.finished[cell]} of {plural(asked, 'run')} finished"
    text = f"{labels}: {record.metric.plain} {value}, n = {int(panel.n[cell])}, {runs}"
    ids = record.runs.get(int(panel.cells[cell]), ())
    if not ids:
        return text
    text += f": {' '.join(ids[:_MOST_NAMED])}"
    return f"{text} …" if len(ids) > _MOST_NAMED else text


def _panel(
    title: str,
    cells: npt.NDArray[np.int64],
    of_cells: Sequence[Estimate],
    counts: Sequence[Counts],
) -> Panel:
    """Return a panel without its best cell.

    `counts` are the finished, requested and failed runs of every cell of the experiment.
    """
    shape = cells.shape
    mean, sd = np.full(shape, np.nan), np.full(shape, np.nan)
    n = np.zeros(shape, dtype=np.int64)
    of_runs = [np.zeros(shape, dtype=np.int64) for _ in counts]
    for at, cell in np.ndenumerate(cells):
        if cell < 0:
            continue
        summary = of_cells[int(cell)]
        mean[at] = summary.mean
        sd[at] = summary.sd
        n[at] = summary.n
        for of_panel, of_experiment in zip(of_runs, counts, strict=True):
            of_panel[at] = of_experiment[cell]
    finished, asked, failed = of_runs
    return Panel(title, mean, sd, n, finished, asked, failed, None, cells)


def _with_best(panel: Panel, experiment: Experiment, competing: Collection[int], metric: Metric) -> Panel:
    """Return a panel with its best cell.

    Args:
        panel: the panel.
        experiment: its experiment.
        competing: the cells that can be ranked.
        metric: the metric.
    """
    data = {data_of(experiment.cells[cell]) for cell in panel.cells[panel.cells >= 0].tolist()}
    if metric.better is None or len(data) > 1 or not np.isfinite(panel.mean).any():
        return panel
    competes = np.isin(panel.cells, list(competing))
    ranked = np.where(competes, panel.mean, np.nan) if competes.any() else panel.mean
    first = np.nanargmax(ranked) if metric.better == "higher" else np.nanargmin(ranked)
    row, column = np.unravel_index(first, panel.mean.shape)
    return replace(panel, best=(int(row), int(column)), data=data.pop() if competes.any() else None)


def _variants(experiment: Experiment, others: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the combinations of the other axes that have a cell; the full product may be far too large."""
    order = {}
    for axis in others:
        order[axis] = {repr(label): position for position, label in enumerate(experiment.axes[axis])}
    combinations = set()
    for cell in experiment.cells:
        combinations.add(tuple(order[axis][repr(cell.labels[axis])] for axis in others))
    variants = []
    for positions in sorted(combinations):
        labels = [experiment.axes[axis][position] for axis, position in zip(others, positions, strict=True)]
        variants.append(tuple(labels))
    return variants


def _title(others: Sequence[str], variant: Sequence[Any]) -> str:
    labels = []
    for axis, label in zip(others, variant, strict=True):
        text = label_text(label)
        labels.append(text if isinstance(label, str) else f"{axis_title(axis)} = {text}")
    return ", ".join(labels)


def _limits(panels: Sequence[Panel], metric: Metric) -> tuple[float, float]:
    finite = [panel.mean[np.isfinite(panel.mean)] for panel in panels]
    means = np.concatenate([np.array([]), *finite])
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
        y = top + panel.best[0]
        x = left + panel.best[1]
        frame = Rectangle((x, y), 1, 1, fill=False, edgecolor="black", lw=1, zorder=2)
        axes.add_patch(frame).set_in_layout(False)
        if holds_best:
            write_in_cell(axes, (y, x), "★", painted[panel.best], fontsize=5)
    if panel.marked is None:
        return
    marked = np.argwhere(panel.marked & np.isfinite(panel.mean))
    if len(marked):
        down, right = marked.T + 0.5
        axes.plot(left + right, top + down, ".", ms=2.2, mew=0, color="black")


def _name_ends(set_ticks: Callable[..., object], names: Sequence[str], begins: Sequence[float], apart: float) -> None:
    """Name the first and last row or column of each panel; in one text if they are closer than a distance in inches."""
    ends = len(names) - 1
    if ends * _SMALL >= apart:
        texts = [names[0], names[-1]]
        offsets = [0.5, ends + 0.5]
    else:
        texts = [" … ".join(dict.fromkeys([names[0], names[-1]]))]
        offsets = [len(names) / 2]
    shown = [shortened(text, _LEAST_ROOM, _NAME_SIZE) for text in texts]
    ticks = []
    for begin in begins:
        ticks += [begin + offset for offset in offsets]
    set_ticks(ticks, shown * len(begins), fontsize=_NAME_SIZE)


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
    corner = (top + at[0], left + at[1])
    if not np.isfinite(panel.mean[at]):
        if panel.failed[at]:
            box = {"fc": "white", "ec": "none", "pad": 1}
            write_in_cell(axes, corner, "failed", "white", fontsize=7, bbox=box)
        return
    background = painted[at]
    is_best = panel.best == at
    is_marked = panel.marked is not None and panel.marked[at]
    mean = metric.text(float(panel.mean[at]))
    lines = [f"{mean}*" if is_marked else mean]
    if np.isfinite(panel.sd[at]):
        lines.append(f"± {metric.text(float(panel.sd[at]))}")
    if panel.finished[at] < panel.asked[at]:
        lines.append(f"{panel.finished[at]} of {panel.asked[at]} runs")
    for line, (text, down) in enumerate(zip(lines, _DOWN[len(lines)], strict=True)):
        size = 6.6 if line else 8.5
        weight = "bold" if is_best and not line else "normal"
        write_in_cell(axes, corner, text, background, down, fontsize=size, fontweight=weight)
    if holds_best and is_best:
        write_in_cell(axes, corner, "★", background, 0.24, 0.88, fontsize=7.5)
