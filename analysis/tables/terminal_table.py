"""Tables for a terminal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TerminalTable:
    """A table as texts for a terminal.

    Attributes:
        title: what its rows are, and what the columns of scores hold.
        header: names of the columns.
        rows: the texts of each row.
        numbers: the columns that are aligned on the right.
        notes: sentences for below the table.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[str, ...]
    notes: tuple[str, ...]
