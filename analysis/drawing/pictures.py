"""The figures of a report, drawn from a data record as files and as elements of the page."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from markupsafe import Markup
from matplotlib.figure import Figure
from PIL import Image

from .journal import JournalWidth, journal_font, letter_panels
from .style import PRINT, SCREEN, as_pdf, as_png, lay_out
from .svg import as_svg
from .values_in_words import record_in_words

INLINE_SVG_LIMIT = 150_000
"""Length of an SVG file in characters above which the page embeds a PNG instead."""

_PIXELS_PER_INCH = 96

Record = TypeVar("Record")


@dataclass(frozen=True)
class Picture:
    """A figure as files, with its title, caption and description.

    `width` and `height` are in CSS pixels; `values_in` is the name of the table with the figure's values, if any;
    `folder` is the folder of its files inside that of all figures; `is_wide` is whether they are wider than one column
    of a journal.
    """

    name: str
    title: str
    caption: str
    alt: str
    png: bytes
    pdf: bytes
    svg: str
    width: int
    height: int
    values_in: str = ""
    folder: str = ""
    is_wide: bool = False

    @property
    def path(self) -> str:
        """Path of its files inside the folder of figures, without their ending."""
        return f"{self.folder}/{self.name}" if self.folder else self.name

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
    """A figure to draw: its data record and the function that draws it.

    `states_split` is whether the caption itself says on whose data the metrics are computed, and `values_in` the name
    of the table with the figure's values. `folder` is that of its files, as in `Picture`.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[Any], Figure]
    record: object
    states_split: bool = False
    values_in: str = ""
    folder: str = ""

    def alt(self, figure: Figure) -> str:
        """Return the figure in words, beside its caption: title, panels, legends, ranges of labelled axes, values."""
        parts = [f"{self.title}."]
        for axes in figure.axes:
            legend = axes.get_legend()
            names = [axes.get_title(), *(entry.get_text() for entry in (legend.get_texts() if legend else ()))]
            for axis in (axes.xaxis, axes.yaxis):
                low, high = sorted(axis.get_view_interval())
                ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=False)
                shown = [tick.get_text() for at, tick in ticks if low <= at <= high and tick.get_text()]
                if shown:
                    names.append(f"{axis.get_label_text()} {shown[0]} to {shown[-1]}".strip())
            parts.append("; ".join(" ".join(name.split()) for name in names if name) + ".")
        parts.append(record_in_words(self.record))
        return " ".join(dict.fromkeys(part for part in parts if part not in ("", ".")))

    def undrawn(self) -> Picture:
        """Return name, title and caption of a figure that is drawn later."""
        return Picture(self.name, self.title, self.caption, "", b"", b"", "", 0, 0, self.values_in, self.folder)

    def for_journals(self) -> Picture:
        """Draw the figure as PNG, PDF and SVG in the format of journals; see `journal`."""
        with journal_font():
            figure = self.draw(self.record)
            letter_panels(figure)
            columns = JournalWidth.of(figure)
            plain = replace(self, draw=lambda _: figure).drawn(dpi=PRINT * columns.scale)
        return replace(
            plain,
            png=columns.png(plain.png),
            pdf=columns.pdf(plain.pdf),
            svg=columns.svg(plain.svg),
            is_wide=columns.is_wide,
        )

    def drawn(self, *, files: bool = True, dpi: float = PRINT) -> Picture:
        """Draw the figure as PNG, PDF and SVG; without `files` as SVG, and PNG only if it is too large for a page."""
        figure = self.draw(self.record)
        width, height = figure.get_size_inches() * _PIXELS_PER_INCH
        png, pdf = (as_png(figure, dpi), as_pdf(figure)) if files else (b"", b"")
        if not files:
            lay_out(figure)
        alt = self.alt(figure)
        svg = as_svg(figure, self.name, alt)
        if not files and len(svg) > INLINE_SVG_LIMIT:
            png = as_png(figure)
        size = round(width), round(height)
        return Picture(self.name, self.title, self.caption, alt, png, pdf, svg, *size, self.values_in, self.folder)


def sketch(
    draw: Callable[[Record], Figure],
    record: Record,
    name: str,
    title: str,
    caption: str,
    *,
    states_split: bool = False,
    values_in: str = "",
) -> Sketch:
    """Return a figure to draw from a data record; see `Sketch`."""
    return Sketch(name, title, caption, draw, record, states_split, values_in)
