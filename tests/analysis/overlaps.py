"""Finds texts of a figure that lie over one another or are cut off, by where the renderer puts them."""

from __future__ import annotations

import math
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

_TOUCH = 1.0
"""Pixels that boxes may share: they are larger than their letters."""


def texts_in_each_other(figure: Figure) -> list[str]:
    """Pairs of texts that overlap, and texts that leave the figure, in words; empty where all can be read."""
    canvas = FigureCanvasAgg(figure)
    renderer = canvas.get_renderer()
    drawn: dict[int, Text] = {}
    draw = Text.draw

    def recorded(text: Text, *arguments: Any, **options: Any) -> None:
        if text.get_visible() and text.get_text().strip():
            drawn[id(text)] = text
        draw(text, *arguments, **options)

    with mock.patch.object(Text, "draw", recorded):  # what is there and not drawn, such as ticks outside, is not seen
        canvas.draw()
    boxes = [(text.get_text(), _corners(text, renderer)) for text in drawn.values()]
    size = np.array([figure.bbox.width, figure.bbox.height])
    found = []
    for name, corners in boxes:
        if (corners < -_TOUCH).any() or (corners > size + _TOUCH).any():
            found.append(f"{name!r} is cut off")
    low = np.array([corners.min(axis=0) for _, corners in boxes])
    high = np.array([corners.max(axis=0) for _, corners in boxes])
    near = (low[:, None] < high[None]).all(axis=2) & (low[None] < high[:, None]).all(axis=2)
    for first, second in zip(*np.nonzero(np.triu(near, 1)), strict=True):
        (a, ours), (b, theirs) = boxes[first], boxes[second]
        if not _apart(ours, theirs):
            found.append(f"{a!r} over {b!r}")
    return found


def _corners(text: Text, renderer: Any) -> npt.NDArray[np.float64]:
    """The corners [4, 2] of a text's own rectangle, turned as the text is."""
    angle = math.radians(text.get_rotation())
    turned = text.get_window_extent(renderer)
    centre = np.array([(turned.x0 + turned.x1) / 2, (turned.y0 + turned.y1) / 2])
    rotation = text.get_rotation()
    text.set_rotation(0)
    level = text.get_window_extent(renderer)
    text.set_rotation(rotation)
    x, y = level.width / 2, level.height / 2
    half = np.array([[-x, -y], [x, -y], [x, y], [-x, y]])
    turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    return centre + half @ turn


def _apart(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> bool:
    """Whether a line parallel to a side of one of two rectangles lies between them."""
    for sides in (a, b):
        for direction in (sides[1] - sides[0], sides[2] - sides[1]):
            length = np.linalg.norm(direction)
            if length == 0:
                return True
            first, second = a @ direction / length, b @ direction / length
            if first.max() <= second.min() + _TOUCH or second.max() <= first.min() + _TOUCH:
                return True
    return False
