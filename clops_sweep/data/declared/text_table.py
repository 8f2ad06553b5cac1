"""Text files of one recording: columns of numbers below names, units, comments or the JSON header of a recorder."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.files.csv_table import (
    COMMENTS,
    SEPARATORS,
    TextForm,
    cells_of,
    comment_lines,
    csv_lines,
    text_form,
    thousands_refused,
    with_thousands,
    with_three_decimals,
)
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.files.regular_files import open_regular
from clops_sweep.errors import UsageError, shown

ENDINGS: Final = (".csv", ".txt", ".tsv", ".dat")
"""Endings of text files."""
_IN_BRACKETS: Final = re.compile(r"[\[(]\s*([^\[\]()]+?)\s*[\])]\s*$")
"""The unit in a column's name."""
_AT_END: Final = re.compile(
    r"[ _/.-](?:in )?([nu\u00b5\u03bcm]V|(?:milli|micro|nano)volts?|m/s\^?2)\s*$", re.IGNORECASE
)
"""A unit at the end of a column's name that is nothing else."""
_UNITS: Final = re.compile(r"(?:(?:signal|sample|channel)s? )?units?\s*[:=]\s*(.+?)\s*$", re.IGNORECASE)
"""The units of the columns in a comment."""
_LABELS: Final = re.compile(r"(labels?|columns?|channels?|names?|signals?|sensors?)\s*[:=]+\s*", re.IGNORECASE)
"""Begin of a comment with the names of the columns."""
_RATE: Final = re.compile(
    r"((?:sampling|sample)[ _-]?(?:rate|frequency)|fs|sfreq|srate)\b[^:=]*[:=]+\s*([0-9]+(?:\.[0-9]*)?)\s*(hz|khz)?\b",
    re.IGNORECASE,
)
"""A sampling rate in a comment."""
_INTERVAL: Final = re.compile(
    r"(?:sampling|sample)[ _-]?(?:interval|period)\b([^:=]*)[:=]+\s*([0-9]*\.?[0-9]+(?:e-?[0-9]+)?)\s*"
    r"([a-z\u00b5\u03bc]*)\W*$",
    re.IGNORECASE,
)
"""The time between two samples in a comment, with its unit in the name or behind the number."""
_SECONDS: Final = {
    "s": 1.0,
    "sec": 1.0,
    "seconds": 1.0,
    "ms": 1e-3,
    "msec": 1e-3,
    "us": 1e-6,
    "\u00b5s": 1e-6,
    "\u03bcs": 1e-6,
}
"""Seconds of the units of time."""
_MARKED: Final = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas", " ": "spaces"}
_LEAST_WHOLE: Final = 10
"""Least number of whole lines above a last line that is left out because it has too few cells."""
_BINARY: Final = 0.1
"""Share of characters that cannot be decoded from which a file is no text."""
_LEAST_ALIKE: Final = 3
"""Least number of lines from which decimals of one length are recognised."""


@dataclass(frozen=True)
class TextOptions:
    """What the user says about text files: lines to skip, mark between cells and decimal mark; None to guess."""

    skip_lines: int | None = None
    delimiter: str | None = None
    decimal: str | None = None

    def __post_init__(self) -> None:
        lines = self.skip_lines
        if lines is not None and (isinstance(lines, bool) or not isinstance(lines, int) or lines < 0):
            raise checks.refused("skip_lines", "a whole number of lines", lines)
        if self.delimiter is not None and self.delimiter not in SEPARATORS:
            raise checks.refused("delimiter", r'"\t", ";", "|", "," or " "', self.delimiter)
        if self.decimal not in (None, ".", ","):
            raise checks.refused("decimal", '"." or ","', self.decimal)
        if self.decimal == "," == self.delimiter:
            raise UsageError("delimiter: is the decimal comma, too; expected another mark between columns")

    @property
    def skipped(self) -> int:
        """The lines to skip."""
        return self.skip_lines or 0


GUESSED: Final = TextOptions()
"""Everything is guessed."""


class Layout(NamedTuple):
    """Columns of a table with their units ("" if not given), and how its text is written.

    `unclear` tells that its first line may have names or samples; `unused` is 1 if lines end in a separator, else 0.
    `rate` is the sampling rate in Hz that comments or a JSON header give.
    """

    titles: list[str]
    units: list[str]
    form: TextForm | None = None
    skipped: int = 0
    unclear: bool = False
    unused: int = 0
    rate: float | None = None


def numbered(many: int) -> list[str]:
    """Return the names of channels that have none."""
    return [f"channel {number + 1}" for number in range(many)]


def is_text(path: Path) -> bool:
    """Return whether the ending of a file is that of text."""
    return path.suffix.lower() in ENDINGS


def unit_of(title: str) -> str:
    """Return the unit in brackets, or at the end, of a column's name, "" without."""
    match = _IN_BRACKETS.search(title) or _AT_END.search(title)
    return match[1] if match else ""


def text_layout(path: Path, options: TextOptions) -> Layout:
    """Return the columns of a text file; numbered if its first line has numbers.

    Comments at the begin are skipped, but a JSON header or the last comment may have the names. A line below the names
    has units if it has no number where the next one has some. Names 0, 1, ..., as pandas gives them to an array, are
    only sure above several columns of numbers that have all a point.

    Raises:
        UsageError: the file is binary, or commas may be decimal or between columns.
    """
    form = text_form(path, options.skipped, options.delimiter, options.decimal)
    start = "".join(form.lines)
    if "\x00" in start or start.count("\ufffd") > _BINARY * len(start):
        raise UsageError(
            f"{shorten(path)}: is no text; expected lines of numbers, or give read=function for its format"
        )
    comments = comment_lines(form.lines)
    cells = [cells_of(line, form.separator) for line in form.lines[comments:] if line.strip()]
    unused = int(bool(cells) and all(len(row) > 1 and not row[-1] for row in cells))
    cells = [row[: len(row) - unused] for row in cells]
    numeric = []
    for row in cells:
        numeric.append([_number_of(cell, form.decimal) is not None for cell in row])
    first, titles, units, unclear = 0, list[str](), list[str](), False
    given, rate = _header_names(form.lines[:comments], form.separator, cells)
    if options.skip_lines is None:
        _require_no_rate(path, cells)
    if cells and not all(numeric[0]):
        titles, first = cells[0], 1
    elif given:
        titles = given
    elif cells:
        counted = cells[0] == [str(number) for number in range(len(cells[0]))]
        whole = any(cell.lstrip("-").isdigit() for row in cells[1:] for cell in row)
        unclear = counted and (len(cells[0]) < 2 or whole)
        if counted and not unclear:
            titles, first = cells[0], 1
        else:
            titles = numbered(len(cells[0]))
    has_units = (
        len(cells) > first + 1
        and len(cells[first]) == len(titles)
        and titles != numbered(len(titles))
        and not any(numeric[first])
    )
    if has_units and any(cell and number for cell, number in zip(cells[first], numeric[first + 1], strict=False)):
        units, first = cells[first], first + 1
    if options.decimal is None and options.delimiter is None:
        names = titles if titles != numbered(len(titles)) else _one_name(form.lines[:comments])
        _require_one_reading(path, form, names, cells[first:])
    named = [unit_of(title) for title in titles]
    named = [one or other.strip("[]() ") for one, other in zip_longest(named, units, fillvalue="")]
    if not any(named):
        named = _units_in(form.lines[:comments], form.separator, len(titles)) or named
    skipped = options.skipped + comments + _lines_of(form.lines[comments:], first)
    return Layout(titles, named, form, skipped, unclear, unused, rate)


def _units_in(comments: Sequence[str], separator: str, many: int) -> list[str]:
    """Return the units that a comment gives, one for each column, or one for all; none without."""
    for line in comments:
        units = _UNITS.match(line.strip().lstrip("".join(COMMENTS)).strip())
        if units is None:
            continue
        for mark in dict.fromkeys([separator, ",", " "]):
            listed = [cell.strip("[]() ") for cell in cells_of(units[1], mark)]
            if len(listed) == many:
                return listed
            if len(listed) == 1 and " " not in listed[0]:
                return listed * many
    return []


def _require_no_rate(path: Path, cells: Sequence[Sequence[str]]) -> None:
    """Raise a UsageError if the first line has the name and the value of a sampling rate, not names of columns."""
    first = [cell for cell in cells[0] if cell.strip()] if cells else []
    rate = _rate_in(f"{first[0]}: {first[1]}") if len(first) == 2 else None
    if rate is not None:
        raise UsageError(
            f"{shorten(path)}: its first line says {rate:g} samples a second and names no columns; give skip_lines "
            f"with the lines to skip, and sampling_rate={rate:g}"
        )


def _lines_of(lines: Sequence[str], rows: int) -> int:
    """Return the number of lines, blank ones included, that hold the first rows."""
    for number, line in enumerate(lines):
        if rows == 0:
            return number
        rows -= bool(line.strip())
    return len(lines)


def _header_names(
    comments: Sequence[str], separator: str, cells: Sequence[Sequence[str]]
) -> tuple[list[str], float | None]:
    """Return the names of the columns and the sampling rate that comments give; none without."""
    width = len(cells[0]) if cells else 0
    plain = [line.strip().lstrip("".join(COMMENTS)).strip() for line in comments]
    plain = [line.removeprefix("sep=" + separator) for line in plain if line]
    rate: float | None = None
    for line in plain:
        rate = _rate_in(line) or rate
        if line.startswith("{"):
            devices = list(_devices(line))
            names = [str(name) for device in devices for name in device["column"]]
            rates = {device.get("sampling rate") for device in devices}
            only = rates.pop() if len(rates) == 1 else None
            rate = float(only) if isinstance(only, int | float) and not isinstance(only, bool) else None
            if len(names) == width:
                return names, rate
    for line in reversed(plain):
        labelled = _LABELS.match(line)
        if labelled:
            for mark in dict.fromkeys([separator, ",", "\t", ";", " "]):
                names = cells_of(line[labelled.end() :], mark)
                if len(names) == width and all(names):
                    return names, rate
    names = cells_of(plain[-1], separator) if plain else []
    if len(names) == width > 1 or (len(names) == width == 1 and " " not in _IN_BRACKETS.sub("", names[0]).strip()):
        return names, rate
    return [], rate


def _rate_in(comment: str) -> float | None:
    """Return the sampling rate in Hz that a comment gives, as a rate or as an interval with a unit; None without."""
    frequency = _RATE.match(comment)
    if frequency is not None:
        return float(frequency[2]) * (1000 if (frequency[3] or "").lower() == "khz" else 1)
    interval = _INTERVAL.match(comment)
    if interval is None:
        return None
    unit = interval[3] or interval[1].strip(" ()[]_")
    seconds = float(interval[2]) * _SECONDS.get(unit.lower(), 0.0)
    return 1 / seconds if seconds else None


def _one_name(comments: Sequence[str]) -> list[str]:
    """Return the only word of the last comment, which may be the name of one column; none without."""
    last = comments[-1].strip().lstrip("".join(COMMENTS)).strip() if comments else ""
    word = _LABELS.sub("", last).strip()
    return [word] if word.isalnum() and not word.lower().startswith("end") else []


def _devices(line: str) -> Iterator[dict[str, Any]]:
    """Yield the objects with names of columns in a JSON header, as OpenSignals writes one per device."""
    try:
        waiting = [json.loads(line)]
    except ValueError:
        return
    while waiting:
        entry = waiting.pop(0)
        if isinstance(entry, dict):
            if isinstance(entry.get("column"), list):
                yield entry
            else:
                waiting += entry.values()


def _require_one_reading(path: Path, form: TextForm, titles: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """Raise a UsageError if each two cells between commas may be one number with a decimal comma."""
    if form.separator != "," or not cells:
        return
    widths = {len(row) for row in cells}
    names = len(titles)
    several = all(_is_whole(cell) for row in cells for cell in row)
    if not several or max(widths) < 2:
        return
    if names:
        doubled = widths == {2 * names} or (names == 1 and widths <= {1, 2})
    else:
        doubled = len(widths) == 1 and max(widths) % 2 == 0 and _looks_decimal(cells)
    if doubled:
        text = ",".join(next(row for row in cells if len(row) > 1))
        one_column = max(widths) == 2
        columns = "1 column" if one_column else f"{max(widths) // 2} columns"
        remedy = 'give decimal=","' if one_column else "put another mark between columns"
        raise UsageError(
            f"{shorten(path)}: {shown(text)} may be {columns} with decimal commas, or {max(widths)} with commas "
            f'between; {remedy} for the first, delimiter="," for the second'
        )


def _is_whole(cell: str) -> bool:
    return cell.lstrip("+-").isdigit() or cell == "" or cell in checks.NULLS


def _looks_decimal(cells: Sequence[Sequence[str]]) -> bool:
    """Return whether every second cell may be the decimals of the cell before it."""
    decimals = [cell for row in cells for cell in row[1::2]]
    before = [cell for row in cells for cell in row[::2]]
    if not all(map(str.isdigit, decimals)):
        return False
    has_zeros = any(len(cell) > 1 and cell.startswith("0") for cell in decimals) or "-0" in before
    of_one_length = len(cells) >= _LEAST_ALIKE and len({len(cell) for cell in decimals}) == 1
    return has_zeros or of_one_length


def require_no_thousands(path: Path, layout: Layout, places: Sequence[int]) -> list[str]:
    """Return notes on columns at `places` whose commas are read as decimal without a sign of it.

    Raises:
        UsageError: the numbers of a column may have marks between thousands.
    """
    form = layout.form
    assert form is not None
    rows = [cells_of(line, form.separator) for line in form.sample if line.strip()]
    notes = list[str]()
    for position in places:
        column = [row[position] for row in rows if position < len(row)]
        cell = with_thousands(column)
        if cell:
            mark = "," if "," in cell else "."
            where = f"{shorten(path)}: column {shown(layout.titles[position])}"
            raise thousands_refused(where, cell, f', or give decimal="{mark}" if it is a decimal mark')
        if form.decimal == "," and with_three_decimals(column):
            notes.append(
                f"column {shown(layout.titles[position])}: the comma is read as decimal, though every number may have "
                "it between thousands: check its range"
            )
    return notes


def text_columns(path: Path, layout: Layout, places: Sequence[int]) -> tuple[list[NDArray[Any]], list[str]]:
    """Return columns of a text table, and notes: a last line with too few cells is left out.

    A file that was cut within its last number cannot be told from a whole one without a line break at its end.

    Raises:
        UsageError: a line has another number of cells, or a cell is no number.
    """
    import pyarrow as pa

    notes: list[str] = []
    try:
        source: Any = path
        skipped = layout.skipped
        if layout.form is not None and layout.form.separator == " ":
            source, skipped = _of_spaces(path, layout), 0
        return _parsed(source, layout, places, skipped), notes
    except (pa.ArrowException, UnicodeError):
        shortened = _without_ragged_end(path, layout)
        if shortened is None:
            raise UsageError(f"{shorten(path)}: {_fault(path, layout, places)}") from None
        source, note = shortened
    try:
        return _parsed(source, layout, places, 0), [note]
    except (pa.ArrowException, UnicodeError):
        raise UsageError(f"{shorten(path)}: {_fault(path, layout, places)}") from None


def text_times(path: Path, layout: Layout, position: int) -> NDArray[Any] | None:
    """Return a column of times, numbers or dates; None if it has others."""
    import pyarrow as pa

    source: Any = path
    skipped = layout.skipped
    if layout.form is not None and layout.form.separator == " ":
        source, skipped = _of_spaces(path, layout), 0
    for dated in (False, True):
        with suppress(pa.ArrowException, UnicodeError):
            return _parsed(source, layout, [position], skipped, dated=dated)[0]
    return None


def _parsed(
    source: Any, layout: Layout, places: Sequence[int], skipped: int, *, dated: bool = False
) -> list[NDArray[Any]]:
    """Return the columns of a file, or of bytes in UTF-8: numbers, or dates."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    form, columns = layout.form, [str(position) for position in range(len(layout.titles) + layout.unused)]
    assert form is not None
    wanted, unused = [columns[position] for position in places], columns[len(layout.titles) :]
    # An empty line of one column is a missing sample, unless every other line is empty.
    ignored = len(columns) > 1 or not any(one.strip() and other.strip() for one, other in pairwise(form.lines))
    is_file = isinstance(source, Path)
    kind = pa.timestamp("ns") if dated else pa.float64()
    table = arrow_csv.read_csv(
        source if is_file else pa.BufferReader(source),
        read_options=arrow_csv.ReadOptions(
            use_threads=False,
            column_names=columns,
            skip_rows=skipped,
            encoding=form.encoding.removesuffix("-sig") if is_file else "utf-8",
        ),
        parse_options=arrow_csv.ParseOptions(
            delimiter="\t" if form.separator == " " else form.separator, ignore_empty_lines=ignored
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, kind) | dict.fromkeys(unused, pa.null()),
            include_columns=[*wanted, *unused],
            decimal_point=form.decimal,
        ),
    )
    signals = [table[name].to_numpy() for name in wanted]
    if ignored or dated:
        return signals
    shortened = []
    for signal in signals:
        present = np.flatnonzero(~np.isnan(signal))
        shortened.append(signal[: present.max(initial=-1) + 1])
    return shortened


def _text_lines(path: Path, layout: Layout) -> list[str]:
    """Return the lines of a file below its names."""
    assert layout.form is not None
    with open_regular(path) as binary:
        text = io.TextIOWrapper(binary, encoding=layout.form.encoding, errors="replace")
        return text.read().splitlines()[layout.skipped :]


def _of_spaces(path: Path, layout: Layout) -> bytes:
    """Return the lines of a file with one tab for spaces and tabs between cells."""
    return "".join("\t".join(line.split()) + "\n" for line in _text_lines(path, layout)).encode()


def _without_ragged_end(path: Path, layout: Layout) -> tuple[bytes, str] | None:
    """Return the lines of a file but the last one, if only that has too few cells, and a note; None otherwise."""
    assert layout.form is not None
    separator, expected = layout.form.separator, len(layout.titles) + layout.unused
    lines = _text_lines(path, layout)
    while lines and not lines[-1].strip():
        lines.pop()
    if len(lines) <= _LEAST_WHOLE:
        return None
    last = len(cells_of(lines[-1], separator))
    if last >= expected:
        return None
    kept = lines[:-1]
    if separator == " ":
        kept = ["\t".join(line.split()) for line in kept]
    note = f"the last line has {last} of {expected} cells and is left out"
    return "".join(f"{line}\n" for line in kept).encode(), note


def _fault(path: Path, layout: Layout, places: Sequence[int]) -> str:
    """Return what makes a text table unreadable."""
    assert layout.form is not None
    remedy = fitting(layout.form)
    for number, cells in csv_lines(path, "expected a table of numbers", layout.form):
        if number <= layout.skipped:
            continue
        if len(cells) != (expected := len(layout.titles) + layout.unused):
            decimals = expected == 1 and layout.form.separator == "," and len(cells) == 2 and all(map(_is_whole, cells))
            remedy = remedy or ('if its comma is decimal, give decimal=","' if decimals else "")
            return f"line {number} has {len(cells)} cells; expected {expected}" + (f": {remedy}" if remedy else "")
        for position in places:
            cell = cells[position].strip()
            if cell and _number_of(cell, layout.form.decimal) is None:
                usual = "repair it, put commas between columns, or give channels=[...] without this column"
                if _number_of(cell, ",") is not None:
                    usual = "some cells have decimal commas and others points: write one of both"
                return (
                    f"line {number}, column {shown(layout.titles[position])}: {shown(cell)} is not a number; "
                    f"{remedy or usual}"
                )
    return "not a readable table of numbers; expected text with a line for each sample"


def fitting(form: TextForm) -> str:
    """Return the mark between cells and the lines to skip by which most first lines are numbers; "" without any."""
    lines = [line for line in form.lines if line.strip()]
    marks = SEPARATORS if form.separator != "\t" else [mark for mark in SEPARATORS if mark != " "]  # tabs are spaces
    for mark in marks:
        for decimal in (".", ","):
            if mark == decimal:
                continue
            rows = [cells_of(line, mark) for line in lines]
            width = len(rows[-1]) if rows else 0
            fits = []
            for row in rows:
                is_numeric = all(_number_of(cell, decimal) is not None for cell in row)
                fits.append(len(row) == width and is_numeric)
            begin = len(fits) - fits[::-1].index(False) if False in fits else 0
            if width < 2 or 2 * begin > len(fits) or (mark == form.separator and begin < 2):
                continue
            has_names = begin > 0 and len(rows[begin - 1]) == width
            first = form.lines.index(lines[begin - has_names])
            said = [f"delimiter={json.dumps(mark)}"] if mark != form.separator else []
            said += [f"decimal={json.dumps(decimal)}"] if decimal != form.decimal else []
            said += [f"skip_lines={first}"] if first and begin > has_names else []
            if said:
                return f"{_MARKED[mark]} make {width} columns of numbers; give {' and '.join(said)}"
    return ""


def _number_of(cell: str, decimal: str) -> float | None:
    """Return a cell as a number, NaN for a missing one; None if it is text."""
    try:
        return math.nan if cell in checks.NULLS else float(cell.replace(decimal, "."))
    except ValueError:
        return None
