"""Matrices of coloured cells: heatmaps, R, similarities. Cell (row, column), from 0, is one unit wide and high."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .style import readable_on

Floats = npt.NDArray[np.float64]
Place = tuple[float, ...]
"""Row and column."""

_SHADES = 256
_SQUARE = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], dtype=float)
_FRAME = (("white", 1.0), ("black", 0.5))
"""A black line on a wider white one, visible on every colour."""


def draw_cells(
    axes: Axes,
    values: Floats,
    texts: Mapping[tuple[int, ...], str],
    scale: Normalize,
    colours: str,
    line: float = 1.0,
    corner: Place = (0, 0),
) -> Floats:
    """Draw a cell with a tooltip for each entry of `texts`; cells with NaN are hatched.

    Args:
        axes: the axes; their limits are set to the matrix.
        values: array (rows, columns).
        texts: tooltip by (row, column).
        scale: normalisation of the colours.
        colours: name of a colour map.
        line: space between cells in points.
        corner: position of the first cell.

    Returns:
        The colour of each value, shape (rows, columns, 4).
    """
    painted: Floats = mpl.colormaps[colours](scale(values))
    with_value = [position for position in texts if np.isfinite(values[position])]
    without_value = [position for position in texts if not np.isfinite(values[position])]

    def draw(positions: Sequence[tuple[int, ...]], **look: Any) -> None:
        if not positions:
            return
        corners = np.array(positions, dtype=float) + corner
        squares = corners[:, None, ::-1] + _SQUARE
        tooltips = [texts[position] for position in positions]
        cells = PolyCollection(list(squares), urls=tooltips, antialiased=line > 0, **look)
        cells.set_in_layout(False)
        axes.add_collection(cells, autolim=False)

    shades = [painted[position] for position in with_value]
    draw(with_value, facecolors=shades, edgecolors="white", linewidths=line)
    draw(without_value, facecolors="#f4f4f4", edgecolors="#a8a8a8", linewidths=0, hatch="////")
    axes.set(xlim=(0, values.shape[1]), ylim=(values.shape[0], 0))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return painted


def write_in_cell(
    axes: Axes, at: Place, text: str, background: object, down: float = 0.5, right: float = 0.5, **look: Any
) -> None:
    """Write a text into a cell, in black or white, whichever is readable."""
    row, column = at
    placed = axes.text(column + right, row + down, text, ha="center", va="center", **look)
    placed.set(color=readable_on(background), in_layout=False)


def frame_cell(axes: Axes, at: Place, width: float) -> None:
    """Draw a frame just inside a cell, at most `width` points wide."""
    row, column = at
    for colour_name, share in _FRAME:
        corner = column + 0.04, row + 0.04
        frame = Rectangle(corner, 0.92, 0.92, fill=False, edgecolor=colour_name, lw=width * share)
        frame.set(zorder=3, in_layout=False)
        axes.add_patch(frame)


def add_colour_bar(
    figure: Figure, axes: Axes | Sequence[Axes], scale: Normalize, colours: str, label: str, **placement: Any
) -> None:
    """Draw a colour bar beside axes."""
    bar = figure.colorbar(mpl.cm.ScalarMappable(scale, mpl.colormaps[colours]), ax=axes, label=label, **placement)
    bar.outline.set_visible(False)
    assert bar.solids is not None
    bar.solids.remove()  # as many shades as it is pixels high
    ends = bar.ax.get_ylim()
    bar.ax.imshow(
        np.linspace(*ends, _SHADES)[:, None], colours, norm=scale, extent=(0, 1, *ends), origin="lower",
        aspect="auto", interpolation="none",
    )  # fmt: skip
    bar.ax.ticklabel_format(useOffset=False, style="plain")
