"""The figures of a report: drawn from a record of what they show, or taken from the report that was there before."""

from __future__ import annotations

import base64
import hashlib
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from markupsafe import Markup
from matplotlib.figure import Figure

from clops_sweep.analysis.drawings import inline
from clops_sweep.analysis.style import as_png
from clops_sweep.analysis.svg import as_svgs
from clops_sweep.regular_files import read_json

INLINE_SVG_LIMIT = 150_000
"""Bytes of a drawing above which a figure stands in the page as PNG."""

KEPT = ".kept.json"
"""Beside the figures of a report: what each of them shows, as a hash, by which the next report may keep it."""

_MOST_BYTES = 2**28
"""More than the drawings of any report take together."""

_MOST_TEXTS = INLINE_SVG_LIMIT // 120
"""Texts of a figure that may fit in the page: a number takes some 150 bytes there."""

_AT_MOST_SHORTER = 4
"""How many times shorter an SVG file may become in the page."""

_PIXELS_PER_INCH = 96
_LIBRARIES = ("matplotlib", "numpy", "pillow")

Record = TypeVar("Record")


@dataclass(frozen=True)
class Picture:
    """A figure as files, with the words that go with it. `width` and `height` are in CSS pixels.

    `drawing` is the figure as an element of the page, which answers to a pointer; empty where that would be too large.
    """

    name: str
    title: str
    caption: str
    alt: str
    png: bytes
    svg: bytes
    width: int
    height: int
    drawing: str = ""

    @property
    def element(self) -> Markup:
        """The figure in the page."""
        if self.drawing:
            return Markup(self.drawing)
        source = f"data:image/png;base64,{base64.b64encode(self.png).decode()}"
        return Markup('<img src="{}" alt="{}" width="{}" height="{}">').format(
            source, self.alt, self.width, self.height
        )


@dataclass(frozen=True)
class Sketch:
    """A figure that is still to be drawn: by which function, and from what record, which is all that it looks at."""

    name: str
    title: str
    caption: str
    alt: str
    draw: Callable[[Any], Figure]
    record: object

    @property
    def key(self) -> str:
        """A hash of everything that the figure's files depend on: record, code and libraries.

        Records that are equal may have different keys, as where two texts in one are the same object and in the other
        are not. Then a figure is drawn that might have been kept. Records that differ have different keys.
        """
        shown = pickle.dumps((self.name, self.alt, self.draw.__module__, self.draw.__qualname__, self.record), 5)
        return hashlib.sha256(_code().encode() + shown).hexdigest()

    def drawn(self) -> Picture:
        """Draws it: as PNG, as SVG, and as a part of the page."""
        figure = self.draw(self.record)
        width, height = figure.get_size_inches() * _PIXELS_PER_INCH
        png = as_png(figure)
        figure.set_layout_engine("none")  # the parts have found their places; looking again would take long
        svg, with_text = as_svgs(figure, most_texts=_MOST_TEXTS)
        drawing = ""
        if 0 < len(with_text) <= _AT_MOST_SHORTER * INLINE_SVG_LIMIT:
            drawing = inline(with_text, self.name, self.alt)
        small = drawing if len(drawing) <= INLINE_SVG_LIMIT else ""
        return Picture(self.name, self.title, self.caption, self.alt, png, svg, round(width), round(height), small)


def sketch(draw: Callable[[Record], Figure], record: Record, name: str, title: str, caption: str, alt: str) -> Sketch:
    """A figure to be drawn from a record."""
    return Sketch(name, title, caption, alt, draw, record)


class KeptPictures:
    """The figures of the report that is in a folder, as long as they show what they are to show now.

    A figure is kept where its key is the same and its files are still as they were written. Where anything cannot be
    read, it is drawn.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries: dict[str, dict[str, Any]] = {}
        try:
            self._earlier = read_json(folder / KEPT, _MOST_BYTES)
        except (OSError, ValueError):
            self._earlier = {}

    def drawn(self, item: Sketch) -> Picture:
        """The figure, taken from there or drawn."""
        key = item.key
        found = self._found(item, key) or item.drawn()
        self._entries[item.name] = {
            "key": key,
            "files": _digest(found.png, found.svg, found.drawing),
            "size": [found.width, found.height],
            "drawing": found.drawing,
        }
        return found

    def as_json(self) -> bytes:
        """What the next report has to know of the figures that were asked for."""
        return json.dumps(self._entries, indent=1).encode()

    def _found(self, item: Sketch, key: str) -> Picture | None:
        try:
            entry = self._earlier[item.name]
            if entry["key"] != key:
                return None
            png, svg = ((self._folder / f"{item.name}.{ending}").read_bytes() for ending in ("png", "svg"))
            (width, height), drawing = entry["size"], entry["drawing"]
            if entry["files"] != _digest(png, svg, drawing):
                return None
            return Picture(item.name, item.title, item.caption, item.alt, png, svg, width, height, drawing)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None


def _digest(png: bytes, svg: bytes, drawing: str) -> str:
    parts = (hashlib.sha256(part).digest() for part in (png, svg, drawing.encode()))
    return hashlib.sha256(b"".join(parts)).hexdigest()


@cache
def _code() -> str:
    """The code that draws: versions of the libraries, and the sources of this package."""
    folder = resources.files("clops_sweep.analysis")
    sources = sorted((it.name, it.read_bytes()) for it in folder.iterdir() if it.name.endswith(".py"))
    digest = hashlib.sha256(repr(sources).encode()).hexdigest()
    return " ".join([*(f"{name} {version(name)}" for name in _LIBRARIES), digest])
