"""How lines are told apart: a colour for each label, and a shade and dash for each line that shares it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.colors import to_hex, to_rgb

from ..drawing.style import PALETTE_SIZE, colour
from .chart_parts import OTHER

_DASHES = ("solid", "7px,3px", "2px,2px", "8px,3px,2px,3px")
"""Dashes as Plotly takes them."""

_SYMBOLS = ("circle", "square", "diamond", "triangle-up")

_SHADES = (1.0, 0.8, 0.62)
"""Factors of a colour's brightness. There are as many as share no divisor with the dashes, so both change together."""


@dataclass(frozen=True)
class LineStyle:
    """The look of a line: its colour, its dash, and the symbol of its points, in the words of Plotly."""

    colour: str
    dash: str = "solid"
    symbol: str = "circle"

    @property
    def line(self) -> dict[str, object]:
        """The line of a trace of Plotly."""
        return {"color": self.colour, "width": 2, "dash": self.dash}

    @property
    def dash_array(self) -> str:
        """The dash as an attribute of SVG."""
        return "none" if self.dash == "solid" else self.dash.replace("px", "")


def line_styles(labels: Sequence[str], in_order: Sequence[str]) -> list[LineStyle]:
    """Return the style of each line. Twelve lines of one label all differ.

    Args:
        labels: the label of each line that its colour stands for; without two of them, lines differ by their position.
        in_order: the labels in the order of their colours.
    """
    if len(in_order) < 2:
        return [_ranked(position) for position in range(len(labels))]
    count = dict.fromkeys(in_order, 0)
    styles = []
    for label in labels:
        shade = OTHER if label == "others" else colour(in_order.index(label))
        styles.append(_member(shade, count[label]))
        count[label] += 1
    return styles


def _ranked(position: int) -> LineStyle:
    """Return the style of line number `position`: from the ninth on, colours repeat with another shade and dash."""
    return _member(colour(position % PALETTE_SIZE), position // PALETTE_SIZE)


def _member(shade: str, number: int) -> LineStyle:
    """Return the style of a line of one colour, given the number of lines before it."""
    factor = _SHADES[number % len(_SHADES)]
    at = number % len(_DASHES)
    red, green, blue = to_rgb(shade)
    darkened = to_hex((factor * red, factor * green, factor * blue))
    return LineStyle(darkened, _DASHES[at], _SYMBOLS[at])
