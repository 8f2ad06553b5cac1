"""Tables without lines on standard output."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence

WIDE = 10_000
"""Width of a table that is never wrapped, in characters."""

TERMINAL = 100
"""Width of a table that is wrapped where standard output is no terminal, in characters."""

_LEAST_WRAPPED = 20
"""Least width of a column that may be wrapped, if its texts are longer."""


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    wrapped: Collection[str] = (),
    numbers: Collection[str] = (),
    width: int = WIDE,
) -> None:
    """Print a table.

    Args:
        headings: the names of the columns.
        rows: the texts of each row.
        wrapped: the columns that may be wrapped; others never are.
        numbers: the columns that are aligned on the right.
        width: width in characters where standard output is no terminal.
    """
    from rich.cells import cell_len
    from rich.console import Console, JustifyMethod
    from rich.table import Table

    rows = list(rows)
    widest = width if not sys.stdout.isatty() else Console().width
    longest = [max((cell_len(row[place]) for row in rows), default=0) for place in range(len(headings))]
    needed = _needed(headings, longest, wrapped)
    shown = list(headings)
    if needed > widest:
        shown = [_in_lines(heading, room) for heading, room in zip(headings, longest, strict=True)]
        needed = _needed(shown, longest, wrapped)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading, text in zip(headings, shown, strict=True):
        justify: JustifyMethod = "right" if heading in numbers else "left"
        table.add_column(text, no_wrap=heading not in wrapped, justify=justify)
    for row in rows:
        table.add_row(*row)
    console = Console(width=None if sys.stdout.isatty() else width, markup=False, highlight=False)
    console.width = max(console.width, needed)  # a number that is cut off misleads; the terminal wraps the line
    console.print(table)


def _in_lines(heading: str, room: int) -> str:
    """Return a heading in lines that are as narrow as the texts below it, if its words allow it."""
    longest_word = max(map(len, heading.split()), default=1)
    return "\n".join(textwrap.wrap(heading, max(room, longest_word)))


def _needed(headings: Sequence[str], longest: Sequence[int], wrapped: Collection[str]) -> int:
    """Return the width that a table needs if columns that may be wrapped are as narrow as they may be."""
    from rich.cells import cell_len

    needed = 0
    for heading, of_texts in zip(headings, longest, strict=True):
        of_column = max(of_texts, *(cell_len(line) for line in heading.split("\n")))
        needed += 2 + (min(of_column, _LEAST_WRAPPED) if heading in wrapped else of_column)
    return needed
