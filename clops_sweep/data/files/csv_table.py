"""CSV files, read completely or refused."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from clops_sweep.data.files.folder import one_sentence, shorten
from clops_sweep.errors import UsageError
from clops_sweep.regular_files import open_regular

_AGAIN = "download it again"


def csv_lines(path: Path, remedy: str) -> list[tuple[int, list[str]]]:
    """Return the rows of a CSV file (or .tsv, with tabs), each with its last line's number; blank lines are skipped.

    Invalid UTF-8 becomes U+FFFD.

    Raises:
        UsageError: the file cannot be read; the message ends in `remedy`.
    """
    try:
        with one_sentence(path), open_regular(path) as binary:
            text = io.TextIOWrapper(binary, encoding="utf-8-sig", errors="replace", newline="")
            reader = csv.reader(text, delimiter="\t" if path.suffix == ".tsv" else ",")
            return [(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as error:
        raise UsageError(f"{shorten(path)}: not a readable table ({error}); {remedy}") from None


def read_table(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """Return the rows of a publisher's CSV file by column name.

    Raises:
        UsageError: the file or one of `columns` is missing, it has no rows, or a row lacks a cell, as in a truncated
            file.
    """
    if not path.is_file():
        raise UsageError(f"{shorten(path)}: the table is missing; {_AGAIN}")
    (_, names), *rows = csv_lines(path, _AGAIN) or [(1, [])]
    for column in columns:
        if names.count(column) != 1:
            fault = "there twice" if column in names else "missing"
            raise UsageError(f"{shorten(path)}: column {column!r} is {fault}; use the table as published")
    for number, cells in rows:
        if len(cells) != len(names):
            raise UsageError(
                f"{shorten(path)}: the row that ends in line {number} has {len(cells)} instead of {len(names)} cells, "
                f"as in a truncated or damaged file; {_AGAIN}"
            )
    if not rows:
        raise UsageError(f"{shorten(path)}: the table has no rows; {_AGAIN}")
    return [dict(zip(names, cells, strict=True)) for _, cells in rows]
