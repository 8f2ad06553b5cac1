"""CSV files, read completely or refused."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from clops_sweep.data.files.folder import one_sentence, shorten
from clops_sweep.data.files.regular_files import open_regular
from clops_sweep.errors import UsageError

_AGAIN = "download it again"
_FORM_BYTES: Final = 2**14
_MOST_FORM_BYTES: Final = 2**23
_FORM_LINES: Final = 20
_MARKS: Final = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_ZEROS: Final = 0.25
"""Share of zero bytes from which text without a mark is UTF-16."""
_EXCEL: Final = "sep="
"""Begin of a first line that tells Excel the separator."""
COMMENTS: Final = ("#", "%", "//")
"""Begins of comment lines."""
SEPARATORS: Final = ("\t", ";", "|", ",", " ")
"""What may stand between cells; " " for any number of spaces and tabs."""
_QUOTED: Final = re.compile(r'"[^"]*"')
_WITH_COMMA: Final = re.compile(r"-?[0-9]*,[0-9]+")
_WITH_POINT: Final = re.compile(r"-?[0-9]*\.[0-9]+")
_THOUSANDS: Final = re.compile(r"[-+]?[1-9][0-9]{0,2}([.,])[0-9]{3}")
_BELOW_THOUSAND: Final = re.compile(r"[-+]?[0-9]{1,3}")
_LEAST_MARKED: Final = 3
"""Least number of cells that may have a mark between thousands."""
_NUMERIC: Final = re.compile(r"[-+]?([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][-+]?[0-9]+)?|nan|NaN|NA")


class TextForm(NamedTuple):
    """How a text table is written: its encoding, separator, decimal point and first lines.

    `sample` has more of its lines than `lines`, those of the table alone.
    """

    encoding: str
    separator: str
    decimal: str
    lines: list[str]
    sample: Sequence[str] = ()


def text_form(path: Path, skip_lines: int = 0, separator: str | None = None, decimal: str | None = None) -> TextForm:
    """Return the form of a text table, from its byte order mark and its first lines after those to skip.

    Comments at the begin have no say in it. A separator of tab, semicolon or bar is as often in the first line as in
    most others. If a comma is so too, it is the separator, unless the other one leaves numbers with decimal commas.
    Numbers between spaces have no other mark. Without a byte order mark, the encoding is UTF-8, or UTF-16 if every
    other byte is zero.
    """
    size = _FORM_BYTES
    form, is_whole = _form_of(path, size, skip_lines, separator, decimal)
    while not is_whole and size < _MOST_FORM_BYTES and comment_lines(form.lines) == len(form.lines):
        size *= 8  # a long header
        form, is_whole = _form_of(path, size, skip_lines, separator, decimal)
    return form


def _form_of(
    path: Path, size: int, skip_lines: int, separator: str | None, decimal: str | None
) -> tuple[TextForm, bool]:
    """Return the form of a text table from its first bytes, and whether they are all."""
    with open_regular(path) as binary:
        start = binary.read(size)
    encoding = next((name for mark, name in _MARKS.items() if start.startswith(mark)), "utf-8-sig")
    if encoding == "utf-8-sig" and (at_odd := start[1::2].count(0)) + start[::2].count(0) > _ZEROS * len(start):
        encoding = "utf-16-le" if at_odd else "utf-16-be"
    whole = start.decode(encoding, errors="replace").splitlines()
    is_whole = len(start) < size
    lines = (whole if is_whole else whole[:-1] or whole)[skip_lines:]
    comments = comment_lines(lines)
    table = lines[comments:] if comments < len(lines) else lines
    first = lines[: max(comments, 0) + _FORM_LINES]
    if separator is None:
        separator, decimal = _guessed(table, decimal)
    elif decimal is None:
        decimal = "," if separator != "," and _has_decimal_commas(table, separator) else "."
    return TextForm(encoding, separator, decimal, first, table), is_whole


def comment_lines(lines: Sequence[str]) -> int:
    """Return the number of lines at the begin that are comments, blank or for Excel."""
    for number, line in enumerate(lines):
        if line.strip() and not line.lstrip().startswith(COMMENTS) and not line.startswith(_EXCEL):
            return number
    return len(lines)


def cells_of(line: str, separator: str) -> list[str]:
    """Return the cells of a line, without spaces around them."""
    if separator == " ":
        return line.split()
    return [cell.strip() for row in csv.reader([line], delimiter=separator) for cell in row]


def _guessed(table: Sequence[str], decimal: str | None) -> tuple[str, str]:
    """Return separator and decimal point of lines."""
    bare = [_QUOTED.sub("", line) for line in table[:_FORM_LINES] if line.strip() and not line.startswith(_EXCEL)]
    regular = [mark for mark in "\t;|," if _is_regular(bare, mark)]
    if decimal == ",":
        regular = [mark for mark in regular if mark != ","]
    separator = regular[0] if regular else ","
    comma = separator != "," and _has_decimal_commas(table, separator)
    if "," in regular and not comma:
        separator = ","
    if separator == "," and _is_spaced(bare, separator):
        separator = " "
        comma = _has_decimal_commas(table, separator)
    if separator == "," and _has_decimal_commas(table, separator):  # in quotes
        comma = True
    elif separator == "," and decimal == ",":
        separator = ";"  # one column
    return separator, decimal or ("," if comma else ".")


def _is_regular(bare: Sequence[str], mark: str) -> bool:
    """Return whether a mark is as often in the first line as in most others."""
    first = bare[0].count(mark) if bare else 0
    return first > 0 and 2 * sum(line.count(mark) == first for line in bare) > len(bare)


def _is_spaced(bare: Sequence[str], separator: str) -> bool:
    """Return whether lines are numbers between spaces, and none between separators."""
    lines = bare[len(bare) // 2 :]
    spaced = [line.split() for line in lines]
    if not lines or len(spaced[0]) < 2 or len({len(cells) for cells in spaced}) > 1:
        return False
    is_numeric = all(_NUMERIC.fullmatch(cell) for cells in spaced for cell in cells)
    by_separator = [cell.strip() for line in lines for cell in line.split(separator)]
    return is_numeric and not all(_NUMERIC.fullmatch(cell) for cell in by_separator)


def _has_decimal_commas(table: Sequence[str], separator: str) -> bool:
    """Return whether cells have decimal commas and none has a point."""
    if separator == " ":
        cells = [cell for line in table for cell in line.split()]
    else:
        cells = [cell.strip() for row in csv.reader(table, delimiter=separator) for cell in row]
    return any(map(_WITH_COMMA.fullmatch, cells)) and not any(map(_WITH_POINT.fullmatch, cells))


def with_thousands(column: Sequence[str]) -> str:
    """Return a cell that may have a mark between thousands, such as 1,019 beside 840; "" without any.

    Numbers from 1,000 on have the mark then, and those below have none. A decimal mark leaves other numbers, too: with
    one or two decimals, or with 0 before the mark.
    """
    cells = _numbers_in(column)
    marked = [cell for cell in cells if "," in cell or "." in cell]
    plain = [cell for cell in cells if cell not in marked]
    is_marked = [match for cell in marked if (match := _THOUSANDS.fullmatch(cell))]
    one_mark = len({match[1] for match in is_marked}) == 1
    if len(marked) < _LEAST_MARKED or len(is_marked) < len(marked) or not one_mark:
        return ""
    return marked[0] if plain and all(map(_BELOW_THOUSAND.fullmatch, plain)) else ""


def _numbers_in(column: Sequence[str]) -> list[str]:
    """Return the cells that are numbers, without spaces around them."""
    stripped = [cell.strip() for cell in column]
    return [cell for cell in stripped if _NUMERIC.fullmatch(cell)]


def with_three_decimals(column: Sequence[str]) -> str:
    """Return a cell of a column whose cells all are such as 1,019; "" if others tell that the comma is decimal."""
    cells = _numbers_in(column)
    are_marked = len(cells) >= _LEAST_MARKED and all("," in cell and _THOUSANDS.fullmatch(cell) for cell in cells)
    return cells[0] if are_marked else ""


def thousands_refused(where: str, cell: str, remedy: str) -> UsageError:
    """Return an error about a cell that may have a mark between thousands; it begins with `where`."""
    mark = "," if "," in cell else "."
    name = "comma" if mark == "," else "point"
    whole, decimals = cell.replace(mark, ""), cell.replace(mark, ".")
    return UsageError(
        f"{where}: {cell!r} may be {whole}, with a {name} between thousands as the whole numbers below 1,000 suggest, "
        f"or {decimals}; write numbers without marks between thousands{remedy}"
    )


def table_lines(path: Path, remedy: str) -> tuple[list[tuple[int, list[str]]], list[str]]:
    """Return the rows of a table below its comments, as `csv_lines` does, and the cells of its last comment.

    Later lines that begin as comments and have fewer cells than the first row are comments too.

    Raises:
        UsageError: the file cannot be read; the message ends in `remedy`.
    """
    with one_sentence(path):
        form = text_form(path)
    comments = comment_lines(form.lines)
    if comments == len(form.lines):  # names of recordings that begin with "#"
        comments = 0
    titles = list[str]()
    written = [line.strip() for line in form.lines[:comments] if line.lstrip().startswith(COMMENTS)]
    if written:
        titles = cells_of(written[-1].lstrip("".join(COMMENTS)), form.separator)
    rows = csv_lines(path, remedy, form, comments)
    if not rows:
        return [], titles
    width = len(rows[0][1])
    return [row for row in rows if len(row[1]) >= width or not row[1][0].lstrip().startswith(COMMENTS)], titles


def csv_lines(path: Path, remedy: str, form: TextForm | None = None, skipped: int = 0) -> list[tuple[int, list[str]]]:
    """Return the rows of a text table, each with its last line's number; blank lines are skipped.

    Text that cannot be decoded becomes U+FFFD.

    Args:
        path: the table.
        remedy: the end of messages.
        form: its form, if known.
        skipped: number of lines before the rows.

    Raises:
        UsageError: the file cannot be read.
    """
    try:
        with one_sentence(path):
            form = form or text_form(path)
            with open_regular(path) as binary:
                whole = io.TextIOWrapper(binary, encoding=form.encoding, errors="replace", newline="")
                text = islice(whole, skipped, None)
                if form.separator == " ":
                    return [(number, line.split()) for number, line in enumerate(text, skipped + 1) if line.strip()]
                reader = csv.reader(text, delimiter=form.separator)
                rows = [(skipped + reader.line_num, cells) for cells in reader if cells]
                return rows[1:] if rows and rows[0][1][0].startswith(_EXCEL) else rows
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
