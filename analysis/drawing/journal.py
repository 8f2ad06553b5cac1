"""Figures in the format of journals: 89, 120 or 183 mm wide, text of 6 to 7 points in Arial or Helvetica, letters.

A figure is laid out as for the page, with text of 9 points, and its files are scaled: the layout stays as it is, and
files of the width of a column are not scaled again in a manuscript.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont
from matplotlib.text import Text
from PIL import Image

from clops_sweep.errors import UsageError

from .style import FONT, PRINT, styled

_COLUMNS = (89 / 25.4 * 72, 120 / 25.4 * 72, 183 / 25.4 * 72)
"""Widths of one column, of one and a half and of two, in points."""

_SCALE, _SMALLER = 7 / 9, 6 / 9
"""Scales that make 9 points 7, and 6 if a figure so fits into fewer columns."""

FONTS = ("Arial", "Helvetica", "Liberation Sans")
"""The last one has the widths of the first."""

_SHIPPED = "DejaVu Sans"
"""A free font that matplotlib ships and that has all glyphs."""


def check_journal() -> None:
    """Raise UsageError if a package for the format of journals is not installed."""
    try:
        import pypdf  # noqa: F401
    except ImportError:
        raise UsageError("the style of journals needs pypdf: pip install 'clops-sweep[journal]'") from None


def _font() -> str:
    """Return the first font of journals that is installed, else the one that matplotlib ships."""
    for family in FONTS:
        with suppress(ValueError):
            findfont(FontProperties(family=[family]), fallback_to_default=False)
            return family
    return _SHIPPED


def font_notice() -> str:
    """Return a sentence if no font of journals is installed, and how to install one; else an empty text."""
    if _font() != _SHIPPED:
        return ""
    return (
        f"figures use {_SHIPPED}, since none of the fonts {', '.join(FONTS)} is installed (in Debian: "
        f"fonts-liberation); if one is, delete {mpl.get_cachedir()}/fontlist-*.json, matplotlib's list of fonts"
    )


@contextmanager
def journal_font() -> Iterator[None]:
    """Draw the figures of the block in the font of journals."""
    token = FONT.set({"font.family": (_font(), _SHIPPED), "axes.titlesize": 9})
    try:
        yield
    finally:
        FONT.reset(token)


@styled
def letter_panels(figure: Figure) -> None:
    """Write a, b, c, ... beside the panels of a figure that has several, on the line of their titles."""
    panels = [axes for axes in figure.axes if axes.axison and axes.get_label() != "<colorbar>"]
    for letter, axes in zip(ascii_lowercase, panels if len(panels) > 1 else (), strict=False):
        look: dict[str, Any] = {"ha": "right", "fontsize": 9, "fontweight": "bold"}
        title = _left_title(axes)
        if title is None:
            axes.annotate(letter, (0, 1), (-6, 4), "axes fraction", "offset points", va="bottom", **look)
        else:
            place, line = title.get_position(), title.get_transform()
            axes.annotate(letter, place, (-6, 0), line, "offset points", va=title.get_verticalalignment(), **look)


def _left_title(axes: Axes) -> Text | None:
    """Return the title at the left of a panel, which strips may separate from it; None without one."""
    text = axes.get_title(loc="left")
    titles = [child for child in axes.get_children() if isinstance(child, Text) and child.get_text() == text]
    return titles[0] if text and titles else None


@dataclass(frozen=True)
class JournalWidth:
    """The width of a figure's files.

    Attributes:
        natural: width of the figure, in points.
        width: that of its files: one column, one and a half, or two.
        scale: factor from the figure to its files: 7/9; less, down to 6/9, if it so fits into fewer columns; and less
            than that only for figures that are wider than two columns.
    """

    natural: float
    width: float
    scale: float

    @classmethod
    def of(cls, figure: Figure) -> JournalWidth:
        """Return the fewest columns in which a figure fits."""
        natural = figure.get_figwidth() * 72
        width = next((width for width in _COLUMNS if width >= natural * _SMALLER), _COLUMNS[-1])
        return cls(natural, width, min(_SCALE, width / natural))

    @property
    def is_wide(self) -> bool:
        """Whether the files are wider than one column."""
        return self.width > _COLUMNS[0]

    @property
    def margin(self) -> float:
        """Width of the white space on each side, in points of the files."""
        return (self.width - self.natural * self.scale) / 2

    def png(self, drawn: bytes) -> bytes:
        """Return a PNG that was drawn at `PRINT * scale` dots per inch in the width of the files."""
        figure, stream = Image.open(io.BytesIO(drawn)), io.BytesIO()
        page = Image.new("RGB", (round(self.width / 72 * PRINT), figure.height), "white")
        page.paste(figure, ((page.width - figure.width) // 2, 0))
        page.save(stream, "png", dpi=(PRINT, PRINT))
        return stream.getvalue()

    def pdf(self, drawn: bytes) -> bytes:
        """Return a PDF in the width of the files."""
        import pypdf

        writer, stream = pypdf.PdfWriter(clone_from=io.BytesIO(drawn)), io.BytesIO()
        page = writer.pages[0]
        page.scale_by(self.scale)
        height = float(page.mediabox.height)
        for box in (page.mediabox, page.cropbox, page.trimbox, page.bleedbox, page.artbox):
            box.lower_left, box.upper_right = (-self.margin, 0), (self.width - self.margin, height)
        writer.write(stream)
        return stream.getvalue()

    def svg(self, drawn: str) -> str:
        """Return an SVG in the width of the files."""
        root = ElementTree.fromstring(drawn)
        margin, (*_, height) = self.margin / self.scale, map(float, root.attrib["viewBox"].split())
        root.attrib |= {
            "class": f"{root.attrib['class']} journal",
            "width": f"{self.width:.2f}pt",
            "height": f"{height * self.scale:.2f}pt",
            "viewBox": f"{-margin:.2f} 0 {self.natural + 2 * margin:.2f} {height:.2f}",
        }
        return ElementTree.tostring(root, encoding="unicode")
