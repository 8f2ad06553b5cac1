"""Tables that notebooks show."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def html_table(caption: str, rows: Iterable[Iterable[object]]) -> str:
    """Return a table as HTML: the first cell of each row names it; text is escaped."""
    lines = []
    for name, *cells in rows:
        values = "".join(f'<td style="text-align: left">{escape(str(cell))}</td>' for cell in cells)
        lines.append(f'<tr><th style="text-align: left">{escape(str(name))}</th>{values}</tr>')
    return f"<table><caption>{escape(caption)}</caption>{''.join(lines)}</table>"
