"""The figures of a report, drawn from a data record as files and as elements of the page."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from markupsafe import Markup
from matplotlib.figure import Figure
from PIL import Image

from .style import PRINT, SCREEN, as_pdf, as_png, lay_out
from .svg import as_svg

INLINE_SVG_LIMIT = 150_000
"""Length of an SVG file in characters above which the page embeds a PNG instead."""

_PIXELS_PER_INCH = 96

Record = TypeVar("Record")


@dataclass(frozen=True)
class Picture:
    """A figure as files, with its title, caption and description. `width` and `height` are in CSS pixels."""

    name: str
    title: str
    caption: str
    alt: str
    png: bytes
    pdf: bytes
    svg: str
    width: int
    height: int

    @property
    def element(self) -> Markup:
        """Return the figure as an HTML element: SVG with tooltips, or PNG if the SVG is too large."""
        if len(self.svg) <= INLINE_SVG_LIMIT:
            return Markup(self.svg)
        stream, whole = io.BytesIO(), Image.open(io.BytesIO(self.png))
        whole.reduce(round(whole.width / self.width * _PIXELS_PER_INCH / SCREEN)).save(stream, "png")
        source = f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"
        return Markup('<img src="{}" alt="{}" width="{}" height="{}">').format(
            source, self.alt, self.width, self.height
        )


@dataclass(frozen=True)
class Sketch:
    """A figure to draw: its data record and the function that draws it."""

    name: str
    title: str
    caption: str
    alt: str
    draw: Callable[[Any], Figure]
    record: object

    def drawn(self) -> Picture:
        """Draw the figure as PNG, PDF and SVG."""
        figure = self.draw(self.record)
        width, height = figure.get_size_inches() * _PIXELS_PER_INCH
        png, pdf, svg = as_png(figure, PRINT), as_pdf(figure), as_svg(figure, self.name, self.alt)
        return Picture(self.name, self.title, self.caption, self.alt, png, pdf, svg, round(width), round(height))

    def on_screen(self) -> Picture:
        """Draw the figure for a page only: as SVG, and as PNG if the SVG is too large for the page."""
        figure = self.draw(self.record)
        width, height = figure.get_size_inches() * _PIXELS_PER_INCH
        lay_out(figure)
        svg = as_svg(figure, self.name, self.alt)
        png = as_png(figure) if len(svg) > INLINE_SVG_LIMIT else b""
        return Picture(self.name, self.title, self.caption, self.alt, png, b"", svg, round(width), round(height))


def sketch(draw: Callable[[Record], Figure], record: Record, name: str, title: str, caption: str, alt: str) -> Sketch:
    """Return a figure to draw from a data record."""
    return Sketch(name, title, caption, alt, draw, record)
