"""Tables that a publisher ships as CSV files beside the signals, read whole or refused."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from clops_sweep.data.files.folder import one_sentence, shorten
from clops_sweep.errors import UsageError


def read_table(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """The rows of a CSV file by column name.

    Raises:
        UsageError: the file or one of `columns` is missing, it has no rows, or a row lacks a cell, as in a
            file that was cut.
    """
    if not path.is_file():
        raise UsageError(f"{shorten(path)}: the table is missing; download it again")
    try:
        with one_sentence(path), open(path, newline="", encoding="utf-8", errors="replace") as file:
            return _rows(path, file, columns)
    except csv.Error as error:
        raise UsageError(f"{shorten(path)}: not a readable table ({error}); download it again") from None


def _rows(path: Path, file: TextIO, columns: Sequence[str]) -> list[dict[str, str]]:
    reader = csv.reader(file)
    names = next(reader, [])
    for column in columns:
        if column not in names:
            raise UsageError(f"{shorten(path)}: column {column!r} is missing; use the table as published")
        if names.count(column) > 1:
            raise UsageError(f"{shorten(path)}: column {column!r} is there twice; use the table as published")
    rows = []
    for cells in reader:
        if len(cells) not in (0, len(names)):
            raise UsageError(
                f"{shorten(path)}: the row that ends in line {reader.line_num} has {len(cells)} instead of "
                f"{len(names)} cells, as in a truncated or damaged file; download it again"
            )
        if cells:
            rows.append(dict(zip(names, cells, strict=True)))
    if not rows:
        raise UsageError(f"{shorten(path)}: the table has no rows; download it again")
    return rows
