"""A heatmap of so many cells that there is no room for their values: small, all panels in one, by colour alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..axis_names import axis_title
from ..collect import label_text
from ..drawing.cells import add_colour_bar, draw_cells, write_in_cell
from ..drawing.labels import in_lines, inches, shortened
from ..drawing.style import new_figure, styled
from .heatmaps import Heatmap

_CELL = 0.11
"""Inches of a cell, either way."""

_WIDTH, _HIGHEST = 12.0, 320.0
"""Inches of the panels side by side, as far as the highest that a figure may be allows."""

_ABOVE, _BESIDE = 4, 1
"""Cells left free above a panel, for its title, and beside it."""

_ROOM_FOR_TITLE = 8
"""Cells that a panel is wide, at least."""

_TITLE_SIZE, _NAME_SIZE = 6.0, 6.5
_BAR = 6.0
"""Inches that the bar of colours is high, at most."""


@styled
def draw_mosaic(record: Heatmap) -> Figure:
    """All panels in one field of small cells, on one colour scale; hatched where no run is finished.

    A frame marks the best cell of a panel, a star the best of all, and a dot each cell that is `marked`. The SVG file
    says a cell's value where a pointer rests on it.
    """
    n_rows, n_columns = len(record.rows), len(record.columns)
    high, wide = n_rows + _ABOVE, max(n_columns, _ROOM_FOR_TITLE) + _BESIDE
    most = max(1, int(_HIGHEST / (_CELL * high)))
    across = max(int(_WIDTH / (_CELL * wide)), math.ceil(len(record.panels) / most), 1)
    across = min(across, len(record.panels))
    down = math.ceil(len(record.panels) / across)
    figure = new_figure(across * wide * _CELL + 1.9, down * high * _CELL + 0.8)
    axes = figure.subplots()
    field = np.full((down * high, across * wide), np.nan)
    scale, best, marked = Normalize(*record.limits), None, []
    texts: dict[tuple[int, ...], str] = {}
    for index, panel in enumerate(record.panels):
        top, left = index // across * high + _ABOVE, index % across * wide
        field[top : top + n_rows, left : left + n_columns] = panel.mean
        texts |= {(top + row, left + column): text for (row, column), text in panel.texts(record).items()}
        if panel.marked is not None:
            marked += (np.argwhere(panel.marked & np.isfinite(panel.mean)) + np.array([top, left])).tolist()
        title = in_lines(panel.title, (wide - _BESIDE) * _CELL, _TITLE_SIZE)
        axes.text(left, top - 0.3, title, fontsize=_TITLE_SIZE, va="bottom", linespacing=1.1).set_in_layout(False)
        if panel.best is not None:
            row, column = top + panel.best[0], left + panel.best[1]
            frame = Rectangle((column, row), 1, 1, fill=False, edgecolor="black", lw=1, zorder=2)
            axes.add_patch(frame).set_in_layout(False)
            best = (row, column) if index == record.best_panel else best
    painted = draw_cells(axes, field, texts, scale, record.colours, line=0)
    if best is not None:
        write_in_cell(axes, best, "★", painted[best], fontsize=5)
    if marked:
        rows, columns = (np.array(marked) + 0.5).T
        axes.plot(columns, rows, ".", ms=2.2, mew=0, color="black")
    columns, rows = ([label_text(label) for label in labels] for labels in (record.columns, record.rows))
    across_names = (inches(columns[0], _NAME_SIZE) + inches(columns[-1], _NAME_SIZE)) / 2 + 0.05
    _name_ends(axes.set_xticks, columns, [i * wide for i in range(across)], across_names)
    _name_ends(axes.set_yticks, rows, [i * high + _ABOVE for i in range(down)], 1.5 * _NAME_SIZE / 72)
    figure.supxlabel(axis_title(record.column_axis), fontsize=9)
    figure.supylabel(axis_title(record.row_axis), fontsize=9)
    long = min(1.0, _BAR / figure.get_figheight())
    add_colour_bar(
        figure, axes, scale, record.colours, record.metric.figure, shrink=long, anchor=(0.0, 1.0),
        fraction=0.4 / figure.get_figwidth(), aspect=5 * long * figure.get_figheight(), pad=0.02,
    )  # fmt: skip
    return figure


def _name_ends(set_ticks: Callable[..., object], names: Sequence[str], begins: Sequence[int], apart: float) -> None:
    """Names the first and the last row, or column, of each panel, in one text if they are not so many inches apart."""
    ends = len(names) - 1
    if ends * _CELL >= apart:
        texts, places = [names[0], names[-1]], [0.5, ends + 0.5]
    else:
        texts, places = [" … ".join(dict.fromkeys([names[0], names[-1]]))], [len(names) / 2]
    shown = [shortened(text, _ROOM_FOR_TITLE * _CELL, _NAME_SIZE) for text in texts]
    set_ticks([begin + place for begin in begins for place in places], shown * len(begins), fontsize=_NAME_SIZE)
