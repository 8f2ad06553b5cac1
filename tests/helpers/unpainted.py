"""Reports without figures, whose drawing takes most of their time: for tests of words, rows and files."""

from __future__ import annotations

from html import escape

from clops_sweep.analysis.drawing.pictures import Picture, Sketch


def unpainted(item: Sketch, **_options: object) -> Picture:
    """Return an empty figure with the texts of the drawn one, instead of `Sketch.drawn`."""
    alt = f"{item.title}."
    svg = f'<svg aria-label="{escape(alt)}" />'
    contents = b"\x89PNG\r\n\x1a\n", b"%PDF", svg
    return Picture(item.name, item.title, item.caption, alt, *contents, 1, 1, item.values_in, item.folder)
