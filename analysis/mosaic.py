"""A heatmap of so many cells that there is no room for their values: small, all panels in one, by colour alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from clops_sweep.analysis.axis_names import axis_title
from clops_sweep.analysis.collect import label_text
from clops_sweep.analysis.heatmaps import Heatmap, hatch_cells, place_in_words
from clops_sweep.analysis.labels import in_lines, inches, shortened
from clops_sweep.analysis.style import DIVERGING, SEQUENTIAL, new_figure, readable_on, styled
from clops_sweep.analysis.svg import tell_cells

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
    colours = mpl.colormaps[DIVERGING if record.metric.signed else SEQUENTIAL]
    scale = Normalize(*record.limits)
    asked, said, empty, marked = [], [], [], []
    for index, panel in enumerate(record.panels):
        top, left = index // across * high + _ABOVE, index % across * wide
        field[top : top + n_rows, left : left + n_columns] = panel.mean
        for row, column in np.argwhere(panel.asked > 0).tolist():
            asked.append((top + row, left + column))
            said.append(place_in_words(record, panel, (row, column)))
        there = np.isfinite(panel.mean)
        empty += [(top + row, left + column) for row, column in np.argwhere((panel.asked > 0) & ~there).tolist()]
        if panel.marked is not None:
            marked += [(top + row, left + column) for row, column in np.argwhere(panel.marked & there).tolist()]
        title = in_lines(panel.title, (wide - _BESIDE) * _CELL, _TITLE_SIZE)
        axes.text(left, top - 0.3, title, fontsize=_TITLE_SIZE, va="bottom", linespacing=1.1).set_in_layout(False)
        if panel.best is not None:
            row, column = top + panel.best[0], left + panel.best[1]
            axes.add_patch(Rectangle((column, row), 1, 1, fill=False, edgecolor="black", lw=1)).set_in_layout(False)
            if index == record.best_panel:
                ink = readable_on(colours(scale(panel.mean[panel.best])))
                axes.text(column + 0.5, row + 0.5, "★", fontsize=5, color=ink, ha="center", va="center")
    axes.imshow(
        np.ma.masked_invalid(field), cmap=colours, norm=scale, interpolation="none", aspect="auto",
        extent=(0, field.shape[1], field.shape[0], 0),
    )  # fmt: skip
    hatch_cells(axes, empty)
    if marked:
        rows, columns = (np.array(marked) + 0.5).T
        axes.plot(columns, rows, ".", ms=2.2, mew=0, color="black")
    tell_cells(axes, asked, said)
    axes.set(xlim=(0, field.shape[1]), ylim=(field.shape[0], 0))
    columns, rows = ([label_text(label) for label in labels] for labels in (record.columns, record.rows))
    across_names = (inches(columns[0], _NAME_SIZE) + inches(columns[-1], _NAME_SIZE)) / 2 + 0.05
    _name_ends(axes.set_xticks, columns, [i * wide for i in range(across)], across_names)
    _name_ends(axes.set_yticks, rows, [i * high + _ABOVE for i in range(down)], 1.5 * _NAME_SIZE / 72)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure.supxlabel(axis_title(record.column_axis), fontsize=9)
    figure.supylabel(axis_title(record.row_axis), fontsize=9)
    long = min(1.0, _BAR / figure.get_figheight())
    bar = figure.colorbar(
        mpl.cm.ScalarMappable(scale, colours), ax=axes, label=record.metric.figure, shrink=long, anchor=(0.0, 1.0),
        fraction=0.4 / figure.get_figwidth(), aspect=5 * long * figure.get_figheight(), pad=0.02,
    )  # fmt: skip
    bar.outline.set_visible(False)
    bar.ax.ticklabel_format(useOffset=False, style="plain")
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
