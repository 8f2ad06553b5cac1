"""Text in the middle of a cell, of which a figure may have thousands: the same few hundred values again and again."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import to_rgba
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text

_MARGIN = 2
"""Pixels around a text, as letters may reach beyond their box."""


class CellText(Text):
    """A line of text about a place, that takes no part in the layout; on pixels each distinct one is drawn once."""

    def draw(self, renderer: RendererBase) -> None:
        """Draws it as any text; on pixels as a stamp, as setting a text takes ten times as long as copying it."""
        if not isinstance(renderer, RendererAgg):
            super().draw(renderer)
            return
        x, y = self.get_transform().transform(self.get_position())
        weight = str(self.get_fontweight())
        stamp, left, below = _stamp(
            self.get_text(), self.get_fontsize(), weight, to_rgba(self.get_color()), renderer.dpi
        )
        gc = renderer.new_gc()
        renderer.draw_image(gc, round(x - left), round(y - below), stamp)
        gc.restore()
        self.stale = False


def write_cell(axes: Axes, x: float, y: float, text: str, size: float, ink: str, weight: str = "normal") -> None:
    """Writes a text about a place, in the units of the axes."""
    written = CellText(x, y, text, ha="center", va="center", color=ink, fontsize=size, fontweight=weight)
    axes.add_artist(written)
    written.set_clip_on(False)
    written.set_in_layout(False)


@lru_cache(maxsize=4096)
def _stamp(
    text: str, size: float, weight: str, ink: tuple[float, float, float, float], dpi: float
) -> tuple[npt.NDArray[np.uint8], float, float]:
    """A text as pixels, from the lowest row up, and how far its middle is from their left and lower edge."""
    font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
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
