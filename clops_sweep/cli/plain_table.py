"""Tables without lines on standard output."""

from __future__ import annotations

import sys
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
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in headings:
        justify: JustifyMethod = "right" if heading in numbers else "left"
        table.add_column(heading, no_wrap=heading not in wrapped, justify=justify)
    for row in rows:
        table.add_row(*row)
    needed = 0
    for place, heading in enumerate(headings):
        longest = max(cell_len(text) for text in [heading, *(row[place] for row in rows)])
        needed += 2 + (min(longest, _LEAST_WRAPPED) if heading in wrapped else longest)
    console = Console(width=None if sys.stdout.isatty() else width, markup=False, highlight=False)
    console.width = max(console.width, needed)  # a number that is cut off misleads; the terminal wraps the line
    console.print(table)
