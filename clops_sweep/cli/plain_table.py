"""Tables without lines on standard output."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence

WIDE = 10_000
"""Width of a table that is never wrapped, in characters."""


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
    from rich.console import Console, JustifyMethod
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in headings:
        justify: JustifyMethod = "right" if heading in numbers else "left"
        table.add_column(heading, no_wrap=heading not in wrapped, justify=justify)
    for row in rows:
        table.add_row(*row)
    console = Console(width=None if sys.stdout.isatty() else width, markup=False, highlight=False)
    console.print(table)
