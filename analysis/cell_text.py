"""Text in the middle of a cell, of which a figure may have thousands: the same few hundred values again and again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import to_rgba
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

_AS_TEXT = 3
"""Where among other artists: as matplotlib has texts."""

_MARGIN = 2
"""Pixels around a text, as letters may reach beyond their box."""


class CellText(NamedTuple):
    """A line of text about a place, in the units of the axes; `size` is in points."""

    x: float
    y: float
    text: str
    size: float
    ink: str
    weight: str = "normal"


class CellTexts(Artist):
    """Lines of text that take no part in the layout: one artist for all cells of a panel, each text set once."""

    def __init__(self, cells: Sequence[CellText]) -> None:
        super().__init__()
        self.cells = tuple(cells)
        self.set_zorder(_AS_TEXT)
        self.set_in_layout(False)

    def draw(self, renderer: RendererBase) -> None:
        """Draws each text; on pixels as a stamp, as setting a text takes ten times as long as copying it."""
        if not self.cells:
            return
        places = self.get_transform().transform([(cell.x, cell.y) for cell in self.cells]).tolist()
        gc = renderer.new_gc()
        for cell, (x, y) in zip(self.cells, places, strict=True):
            if isinstance(renderer, RendererAgg):
                stamp, left, below = _stamp(cell.text, cell.size, cell.weight, to_rgba(cell.ink), renderer.dpi)
                renderer.draw_image(gc, round(x - left), round(y - below), stamp)
                continue
            width, height, descent = _extent(cell.text, cell.size, cell.weight)
            base = y - height / 2 + descent
            gc.set_foreground(cell.ink)
            font = _font(cell.size, cell.weight)
            renderer.draw_text(
                gc, x - width / 2, renderer.get_canvas_width_height()[1] - base if renderer.flipy() else base,
                cell.text, font, 0,
            )  # fmt: skip
        gc.restore()
        self.stale = False


def write_cells(axes: Axes, cells: Sequence[CellText]) -> None:
    """Writes texts about places."""
    written = CellTexts(cells)
    written.set_transform(axes.transData)
    axes.add_artist(written)
    written.set_clip_on(False)


def texts_in(axes: Axes) -> list[str]:
    """All that is written in axes, but for their names and ticks."""
    cells = [cell.text for it in axes.artists if isinstance(it, CellTexts) for cell in it.cells]
    return [*(text.get_text() for text in axes.texts), *cells]


@cache
def _font(size: float, weight: str) -> FontProperties:
    return FontProperties(family="DejaVu Sans", size=size, weight=weight)


@lru_cache(maxsize=4096)
def _extent(text: str, size: float, weight: str) -> tuple[float, float, float]:
    """Width, height and descent of a line in points; no text is less high than these letters, as matplotlib has it."""
    (width, height, descent), (_, least, least_descent) = (
        TextToPath().get_text_width_height_descent(it, _font(size, weight), ismath=False) for it in (text, "lp")
    )
    return float(width), float(max(height, least)), float(max(descent, least_descent))


@lru_cache(maxsize=4096)
def _stamp(
    text: str, size: float, weight: str, ink: tuple[float, float, float, float], dpi: float
) -> tuple[npt.NDArray[np.uint8], float, float]:
    """A text as pixels, from the lowest row up, and how far its middle is from their left and lower edge."""
    font = _font(size, weight)
    measure = RendererAgg(1, 1, dpi)
    width, height, descent = measure.get_text_width_height_descent(text, font, ismath=False)
    _, least, least_descent = measure.get_text_width_height_descent("lp", font, ismath=False)  # as matplotlib has it
    height, descent = max(height, least), max(descent, least_descent)
    rows = math.ceil(height) + 2 * _MARGIN
    canvas = RendererAgg(math.ceil(width) + 2 * _MARGIN, rows, dpi)
    gc = canvas.new_gc()
    gc.set_foreground(ink, isRGBA=True)
    canvas.draw_text(gc, _MARGIN, rows - _MARGIN - descent, text, font, 0)
    return np.asarray(canvas.buffer_rgba())[::-1].copy(), _MARGIN + width / 2, _MARGIN + height / 2
