"""Figures as SVG that answers to a pointer: drawn once, both with text as outlines and with text as text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from typing import Any
from xml.sax.saxutils import escape

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import GraphicsContextBase, RendererBase
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text

from clops_sweep.analysis.cell_text import texts_in
from clops_sweep.analysis.style import styled

_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""Text of a figure stands in its SVG file as a comment, and no XML may hold these."""

_TELLS = "tells:"
_TOLD = re.compile(r'<g id="tells:([^"]*)">')
"""What says something when a pointer rests on it.

matplotlib writes the id of a part as an attribute, escaped as text inside an element is, too.
"""

_ON_TOP = 10
_POINTS_PER_INCH = 72
_REACH = 4.5
"""Points around a place within which a pointer is at it."""

_SQUARE = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], dtype=float)

_LETTERS = re.compile(r"\s*<defs>.*?</defs>", re.DOTALL)
"""What a text adds to the letters that are known by then; it may be there more than once."""


@styled
def as_svgs(figure: Figure, *, most_texts: int | None = None) -> tuple[bytes, bytes]:
    """The figure as an SVG file whose text is outlines, so that no font has to be there, and as one whose text is text.

    It is drawn once; the two files differ in nothing else. Of a figure with more than `most_texts` texts in its axes
    the second is empty.
    """
    kinds = ("path", "none")[: 1 if most_texts is not None and _texts(figure) > most_texts else 2]
    stream, dpi = io.StringIO(), figure.dpi
    width, height = figure.get_size_inches() * _POINTS_PER_INCH
    figure.dpi = _POINTS_PER_INCH  # in which an SVG file counts
    try:
        renderer = _WithTexts(width, height, stream, kinds, image_dpi=dpi, metadata={"Date": None, "Creator": None})
        figure.draw(renderer)
        renderer.finalize()  # type: ignore[no-untyped-call]
    finally:
        figure.dpi = dpi
    outlines, text = renderer.with_texts("path"), renderer.with_texts("none") if "none" in kinds else ""
    return _with_titles(outlines), _with_titles(text)


def _texts(figure: Figure) -> int:
    return sum(len(texts_in(axes)) for axes in figure.axes)


class _WithTexts(RendererSVG):
    """Writes every text in some ways, "path" as outlines and "none" as text, and keeps in mind where each stands."""

    def __init__(self, width: float, height: float, stream: io.StringIO, kinds: Sequence[str], **options: Any) -> None:
        self._stream = stream
        self._texts: dict[str, list[tuple[int, int]]] = {kind: [] for kind in kinds}
        self._copies: dict[object, dict[str, tuple[str, str]]] = {}
        super().__init__(width, height, stream, **options)  # type: ignore[no-untyped-call]

    def draw_text(
        self, gc: GraphicsContextBase, x: float, y: float, s: str, prop: FontProperties, angle: float,
        ismath: Any = False, mtext: Text | None = None,
    ) -> None:  # fmt: skip
        """Writes a text; one of no artist that stands level is a copy of the first that is the same."""
        self.writer.comment("")  # ends the tag before it
        key = (s, hash(prop), tuple(gc.get_rgb())) if mtext is None and not angle else None
        if key in self._copies:
            for kind, (before, after) in self._copies[key].items():
                self._texts[kind].append(self._write(f"{before}{_place(x, y)}{after}"))
            return
        for kind, places in self._texts.items():
            begin = self._stream.tell()
            mpl.rcParams["svg.fonttype"] = kind
            super().draw_text(gc, x, y, s, prop, angle, ismath, mtext)  # type: ignore[no-untyped-call]
            places.append((begin, self._stream.tell()))
        if key is not None:
            self._copies[key] = {kind: self._around(places[-1], _place(x, y)) for kind, places in self._texts.items()}

    def tell(self, places: Iterable[str], texts: Iterable[str]) -> None:
        """Writes elements that are not seen and say a text when a pointer rests on them."""
        self.writer.comment("")
        for place, text in zip(places, texts, strict=True):
            self._write(f'<g pointer-events="all"><title>{escape(text)}</title>{place}</g>\n')

    def _write(self, text: str) -> tuple[int, int]:
        begin = self._stream.tell()
        return begin, begin + self._stream.write(text)

    def _around(self, place: tuple[int, int], translated: str) -> tuple[str, str]:
        """What stands before and behind the place of a text that has been written, but for the letters that it adds."""
        begin, after = place
        self._stream.seek(begin)
        written = _LETTERS.sub("", self._stream.read(after - begin))
        self._stream.seek(0, io.SEEK_END)
        before, _, behind = written.partition(translated)
        return before, behind

    def with_texts(self, kind: str) -> str:
        """What has been written, with texts in one of the ways."""
        whole, kept, end = self._stream.getvalue(), [], 0
        for begin, after in sorted(place for other, places in self._texts.items() if other != kind for place in places):
            kept.append(whole[end:begin])
            end = after
        return "".join([*kept, whole[end:]])


def _with_titles(svg: str) -> bytes:
    return _TOLD.sub(r'<g pointer-events="all"><title>\1</title>', _NOT_IN_XML.sub("?", svg)).encode()


class Told(Artist):
    """What a drawing says when a pointer rests on one of some places; nothing that is seen.

    Args:
        places: corners of a rectangle each, or one point, in the units of the axes; shape (places, corners, 2).
        texts: what is said of each.
    """

    def __init__(self, places: npt.NDArray[np.float64], texts: Sequence[str]) -> None:
        super().__init__()
        self.places, self.texts = places, tuple(texts)
        self.set_zorder(_ON_TOP)
        self.set_in_layout(False)

    def draw(self, renderer: RendererBase) -> None:
        """Draws each place in a group of its own, in the SVG files of `as_svgs` alone."""
        if not isinstance(renderer, _WithTexts) or not self.texts:
            return
        count, corners, _ = self.places.shape
        found = self.get_transform().transform(self.places.reshape(-1, 2)).reshape(count, corners, 2)
        there = np.isfinite(found).all(axis=(1, 2))
        found[..., 1] = renderer.height - found[..., 1]
        shapes = (_circle(*place[0]) if corners == 1 else _polygon(place) for place in found[there].tolist())
        renderer.tell(shapes, (text for text, is_there in zip(self.texts, there.tolist(), strict=True) if is_there))


def _circle(x: float, y: float) -> str:
    return f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{_REACH}" style="fill: none"/>'


def _polygon(corners: Sequence[Sequence[float]]) -> str:
    return f'<path d="M {" L ".join(f"{x:.2f} {y:.2f}" for x, y in corners)} z" style="fill: none"/>'


def _place(x: float, y: float) -> str:
    """A place as matplotlib writes it."""
    return f"translate({' '.join(f'{value:f}'.rstrip('0').rstrip('.') for value in (x, y))})"


def tell_cells(axes: Axes, cells: Sequence[tuple[int, int]], texts: Sequence[str]) -> Told:
    """What a drawing says when a pointer rests on a cell, (row, column), one unit wide and high."""
    corners = np.array(cells, dtype=float).reshape(-1, 1, 2)[..., ::-1] + _SQUARE
    return _added(axes, Told(corners, texts))


def tell_points(axes: Axes, x: npt.ArrayLike, y: npt.ArrayLike, texts: Sequence[str]) -> Told:
    """What a drawing says when a pointer rests on each of some points."""
    return _added(axes, Told(np.column_stack([x, y]).astype(float).reshape(-1, 1, 2), texts))


def tell_line(line: Artist, text: str) -> None:
    """What a drawing says when a pointer rests on a line."""
    line.set_gid(f"{_TELLS}{text}")


def _added(axes: Axes, told: Told) -> Told:
    told.set_transform(axes.transData)
    axes.add_artist(told)
    told.set_clip_on(False)
    return told
