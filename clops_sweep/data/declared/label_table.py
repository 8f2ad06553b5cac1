"""Tables of labels for recordings in files: columns, and mapping of labels to classes."""

from __future__ import annotations

import math
import numbers
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.clocks import Moment, moment, until_next
from clops_sweep.data.declared.fields import Column, TableFields, of_domain, of_group, of_header
from clops_sweep.data.declared.intervals import Interval, Intervals
from clops_sweep.data.declared.portions import Columns
from clops_sweep.data.files.csv_table import table_lines, text_form, thousands_refused, with_thousands
from clops_sweep.data.files.folder import natural, shorten
from clops_sweep.data.left_out import INTERVALS, LABELS, RECORDINGS, Collected, Reason, sentences
from clops_sweep.data.misspelt import latin
from clops_sweep.errors import UsageError, closest, listed, shown

_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]*$")
_Read = TypeVar("_Read")
_DATED = ("time", "start", "end")
"""Arguments whose columns may hold dates."""
_UNDECODED = "\ufffd"
"""Replacement of invalid UTF-8."""

_FEWEST_OF_A_LABEL = 3
"""Most recordings of a label that may be a misspelling, where a sentence names them."""
_TIMES_MORE = 20
"""How many times as often as a similar label a class is in the table, if the label is taken for a misspelling.

Rare labels of their own, such as AFL beside AF, are usually more frequent.
"""

UNLISTED = Reason(RECORDINGS, "that the table does not list")
"""Reason for leaving out a file of a folder."""


_EMPTY_CELLS = Reason("empty cells", "of the columns of labels, which count as 0")


class Listed(NamedTuple):
    """A recording in a file of its own: its name, its file, and the facts and intervals of a table, if any."""

    name: str
    file: Path
    facts: Columns | None = None
    intervals: Intervals | None = None


class TableRow(dict[str, str]):
    """The cells of a row of a table by argument (name, label, ...), with its table and line for messages.

    `empty_flags` are its empty cells in the columns of 0 and 1 that give the label.
    """

    def __init__(self, cells: Mapping[str, str], table: str, line: int) -> None:
        super().__init__(cells)
        self.table = table
        self.line = line
        self.empty_flags = 0


def read_rows(folder: Path, fields: TableFields) -> tuple[Path | None, list[dict[str, str]]]:
    """Return the rows of a table by argument (name, label, ...), in order, and its file, if any.

    The first line of a file has the names of the columns if any field is given by name. If the label is a list of
    columns of 0 and 1, it consists of the names of those that are 1, joined by `separator`.

    Raises:
        UsageError: the file or a column does not exist, or a row has fewer cells than the others.
    """
    table: Any = fields.table
    wanted = {argument: column for argument, column in fields.columns.items() if not of_header(column)}
    path = None
    what = "table"
    if isinstance(table, str | PathLike):
        path = next((file for file in (folder / table, Path(table)) if file.is_file()), None)
        if path is None:
            raise UsageError(f"table: {shorten(folder / table)} is not there; expected a CSV file")
        what = shorten(path)
        titles, rows = _lines_of_file(path, {column for column in wanted.values() if isinstance(column, str)})
    elif hasattr(table, "itertuples"):
        titles = [str(column) for column in table.columns]
        rows = list(enumerate(table.astype(object).values.tolist(), 1))
    else:
        raise checks.refused("table", "a CSV file or a pandas DataFrame", table)
    if not rows:
        raise UsageError(f"{what}: the table has no rows; expected one for each recording")
    width = len(rows[0][1])
    places = {argument: place_of(f"{argument}: {what}", column, titles, width) for argument, column in wanted.items()}
    for number, cells in rows:
        if len(cells) != width:
            raise UsageError(f"{what}: line {number} has {len(cells)} cells; expected {width}")
        for argument, position in places.items():
            if _UNDECODED in str(cells[position]):
                cell = shown(cells[position])
                raise UsageError(
                    f"{what}: line {number}, {argument}: {cell} is not UTF-8; save the table as UTF-8, or give "
                    "table=pandas.read_csv(..., encoding=...)"
                )
    has_commas = path is not None and text_form(path).decimal == ","
    if has_commas:
        _require_no_thousands(what, places, rows)
    flags = {argument: str(column) for argument, column in wanted.items() if argument.startswith("label[")}
    named_rows = list[dict[str, str]]()
    for number, cells in rows:
        identifiers = {argument: checks.identifier(argument, cells[position]) for argument, position in places.items()}
        row = TableRow(identifiers, what, number)
        if fields.date_format is not None:
            texts = {
                argument: row[argument] for argument, position in places.items() if isinstance(cells[position], str)
            }
            row |= _iso_dates(texts, fields.date_format, f"{what}: line {number}")
        if has_commas:  # of tables of intervals
            row |= {argument: row[argument].replace(",", ".") for argument in row.keys() & {"start", "end"}}
        if flags:
            given = {column: row.pop(argument) for argument, column in flags.items()}
            row.empty_flags = list(given.values()).count("")
            row["label"] = _label_of_flags(given, fields.separator, f"{what}: line {number}")
        named_rows.append(row)
    return path, named_rows


def _require_no_thousands(what: str, places: Mapping[str, int], rows: Sequence[tuple[int, Sequence[Any]]]) -> None:
    """Raise a UsageError if starts or ends of intervals may have marks between thousands."""
    for argument in places.keys() & {"start", "end"}:
        cell = with_thousands([str(cells[places[argument]]) for _, cells in rows])
        if cell:
            raise thousands_refused(f"{what}: {argument}", cell, "")


def _iso_dates(cells: Mapping[str, str], date_format: str, where: str) -> dict[str, str]:
    """Return the cells of a row that are dates, by argument, in ISO format; empty ones and numbers are left out."""
    dates = dict[str, str]()
    for argument in _DATED:
        text = cells.get(argument, "").strip()
        if text in ("", *checks.NULLS) or (argument != "time" and _is_number(text)):
            continue
        try:
            dates[argument] = datetime.strptime(text, date_format).isoformat(" ")
        except ValueError:
            raise UsageError(
                f"{where}, {argument}: {shown(text)} is no date of the format {date_format}, which date_format names"
            ) from None
    return dates


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _lines_of_file(path: Path, names: set[str]) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the titles of a CSV file, none if no column is given by name, and its rows with their numbers."""
    rows, commented = table_lines(path, "expected a CSV file")
    if not rows or not names:
        return [], rows
    titles = [title.strip() for title in rows[0][1]]
    in_comment = len(commented) == len(titles) and names.issubset(commented) and not names.issubset(titles)
    if in_comment:
        return commented, rows
    return titles, rows[1:]


def _label_of_flags(given: Mapping[str, str], separator: str | None, where: str) -> str:
    """Return the names of the columns of 0 and 1 that are 1, joined by the separator.

    Raises:
        UsageError: a cell is neither, or several are 1 without a separator; the message begins with `where`.
    """
    on = [column for column, cell in given.items() if cell.lower() in ("1", "true")]
    wrong = [cell for cell in given.values() if cell.lower() not in ("1", "true", "0", "false", "")]
    if wrong:
        raise checks.refused(f"{where}: label", "0 or 1 in each of the columns", wrong[0])
    if len(on) > 1 and separator is None:
        raise UsageError(f'{where} has the labels {", ".join(on)}; give separator="," to use several')
    return (separator or "").join(on)


def place_of(where: str, column: Column, titles: Sequence[str], width: int) -> int:
    """Return the position of a column.

    Raises:
        UsageError: no column or several columns have its name; the message begins with `where`.
    """
    columns = titles[:width] if isinstance(column, str) else range(width)
    positions_of_title = [position for position, title in enumerate(columns) if title == column]
    if not positions_of_title:
        without_names = f"{width} without names; use positions, from 0" if width else "none"
        there = shorten(", ".join(titles)) or without_names
        raise UsageError(f"{where} has no column {shown(column)}; it has {there}")
    if len(positions_of_title) > 1:
        raise UsageError(f"{where} has {len(positions_of_title)} columns {shown(column)}; rename one of them")
    return positions_of_title[0]


def _check_writing(labels: Sequence[str]) -> None:
    """Refuse labels that differ only in case, spaces, leading zeros or alphabet: they would be two classes.

    Raises:
        UsageError: two labels do; the message gives the classes that join them.
    """
    first: dict[str, str] = {}
    for label in labels:
        plain = "".join(latin(label).casefold().split())
        is_number = plain.isascii() and plain.isdigit()
        other = first.setdefault(plain.lstrip("0") or "0" if is_number else plain, label)
        if other != label:
            how = "leading zeros" if is_number else "case or spaces"
            if {latin(other), latin(label)} != {other, label}:
                how = "the alphabet of letters that look alike"
            raise UsageError(
                f"label: {shown(other)} and {shown(label)} differ only in {how}; give classes={{{other!r}: "
                f"{other!r}, {label!r}: {other!r}, ...}} to join them, or classes=[...] with all labels to keep both"
            )


class Labels:
    """Maps labels to indices of classes, or drops them.

    Args:
        classes: the labels to use, or label to class; None for all labels.
        separator: separator of several labels of a recording; None for single labels.
        written: the labels of all recordings, if known in advance.

    Attributes:
        classes: names of the classes.
        used: the index of the class of each label that is used.
        multi_label: whether a recording may have several labels.
        left_out: what is left out.
    """

    def __init__(self, classes: Any, separator: str | None, written: Sequence[str]) -> None:
        if separator is not None and not (isinstance(separator, str) and separator):
            raise checks.refused("separator", 'text such as ","', separator)
        self._separator = separator
        self._counts = Counter(written)
        self.multi_label = separator is not None
        self._mapped = isinstance(classes, Mapping)
        lists_classes = classes is not None and not self._mapped
        if classes is None:
            classes = sorted(self._there(written))
            if not classes:
                raise UsageError("classes: expected the labels to use, because no table or header lists them")
            _check_writing(classes)
        if isinstance(classes, Mapping):
            labels = checks.names("classes", list(classes))
            named = [checks.text("classes", name) for name in classes.values()]
            self.classes = checks.names("classes", list(dict.fromkeys(named)), least=2)
            self.used = {label: self.classes.index(name) for label, name in zip(labels, named, strict=True)}
        else:
            self.classes = checks.names("classes", classes, least=2)
            self.used = {name: code for code, name in enumerate(self.classes)}
        self.left_out = Collected()
        if lists_classes:
            self._require_names(written)

    @property
    def settings(self) -> tuple[object, ...]:
        """All that decides on the class of a label."""
        return self.classes, self.used, self.multi_label, self._separator, self._mapped

    def _parted(self, text: str) -> list[str]:
        if self._separator is None:
            return [text]
        return [checks.identifier("label", part) for part in text.split(self._separator) if part.strip()]

    def _there(self, written: Sequence[str]) -> set[str]:
        """Return the labels in the table."""
        labels = set[str]()
        for text in written:
            labels.update(self._parted(text))
        return labels.difference(("", *checks.NULLS))

    def _require_names(self, written: Sequence[str]) -> None:
        """Refuse whole numbers in a table that are no names of classes, or the name of one and the position of another.

        Args:
            written: the labels of the table.
        """
        there = self._there(written)
        codes = sorted((part for part in there if part.isascii() and part.isdigit()), key=int)
        if not codes or len(codes) < len(there):
            return
        used = [code for code in codes if code in self.used]
        positions = {str(code): name for code, name in enumerate(self.classes)}
        example = shorten(", ".join(f"{code!r}: ..." for code in codes), 60)
        if not used:
            raise UsageError(
                f"label: the table has the whole numbers {shorten(', '.join(codes), 60)} and classes has names; give "
                f"the name of each: classes={{{example}}}"
            )
        other = next((code for code in used if positions.get(code, code) != code), None)
        if other is not None and all(code in positions for code in used):
            raise UsageError(
                f"label: {other} may be the class {shown(other)}, or class {shown(positions[other])} at position "
                f"{other}; give the name of each: classes={{{example}}}"
            )

    def name_of(self, label: Any) -> str | None:
        """Return the label of a recording if it is a name; None if it is a position in the classes, or missing.

        A number is a name if `classes` maps numbers to classes, as {"0": "N", "1": "AF"} does.
        """
        if isinstance(label, str):
            return checks.identifier("label", label)
        maps_numbers = self._mapped and all(name.isascii() and name.isdigit() for name in self.used)
        if not maps_numbers or isinstance(label, bool) or not isinstance(label, numbers.Real | np.integer):
            return None
        return checks.identifier("label", label)

    def of_whole_number(self, number: Any, domains: Mapping[str, str]) -> int | None:
        """Return the class index of an interval whose label is a whole number: a position, or the name of a class.

        Raises:
            UsageError: it is a position and the name of another class.
        """
        code = int(number)
        named = self.used.get(str(code))
        is_position = not self._mapped and 0 <= code < len(self.classes)
        if is_position and named is not None and named != code:
            raise UsageError(
                f"intervals: the label {code} may be the class {shown(str(code))}, or class "
                f"{shown(self.classes[code])} at position {code}; give names as text"
            )
        if is_position and named is None:
            return code
        return self.of_interval(str(code), domains)

    def of_interval(self, text: str, domains: Mapping[str, str] | None = None) -> int | None:
        """Return the class index of an interval; None, and counted, if its label is not used.

        Args:
            text: the label.
            domains: the domains of its recording, by column, if they are known.
        """
        if self.multi_label:
            raise UsageError("separator: an interval has one label; leave separator out")
        code = self.of(checks.identifier("label", text), domains=domains)
        return None if code is None else int(code)

    def _unused(self, what: str, text: str, why: str = "") -> Reason:
        """Return why something is left out that has a label of no class, with the used label that may be meant.

        That is likely if both differ only in case or spaces, or if they are similar and the table has the used one
        `_TIMES_MORE` times as often.
        """
        if not text:
            return Reason(what, why, label="")
        alike = {"".join(name.casefold().split()): name for name in self.used}
        name = alike.get("".join(text.casefold().split()))
        if name is not None:
            return Reason(what, why, text, name, is_likely=True)
        similar = closest(text, self.used)
        if similar is not None:
            count, others = self._counts[text], self._counts[similar]
            if others >= _TIMES_MORE * count > 0:
                return Reason(what, why, text, similar, is_likely=True)
            if what == RECORDINGS and 0 < count <= _FEWEST_OF_A_LABEL and count < others:
                return Reason(what, why, text, similar)
        return Reason(what, why, text)

    def _count_misspelt(self, unused: Iterable[str]) -> None:
        """Count unused labels of a recording that has a used one, if they may be misspellings of used ones."""
        for label in unused:
            reason = self._unused(LABELS, label, "of recordings that keep others")
            if reason.is_likely:
                self.left_out.add(reason)

    def of(self, text: str, name: str = "", domains: Mapping[str, str] | None = None) -> int | NDArray[np.uint8] | None:
        """Return the class index or indices of a recording or interval; None, and counted, if no label is used.

        Args:
            text: the label, or several labels.
            name: the name of the recording; empty for intervals.
            domains: the domains of the recording, by column, if they are known.
        """
        parts = self._parted(text)
        codes = [self.used[part] for part in parts if part in self.used]
        if not codes:
            reason = self._unused(RECORDINGS if name else INTERVALS, text)
            self.left_out.add(reason, names=[name] if name else [], domains=domains)
            return None
        self._count_misspelt(part for part in parts if part not in self.used)
        if not self.multi_label:
            return codes[0]
        multi_hot = np.zeros(len(self.classes), np.uint8)
        multi_hot[codes] = 1
        return multi_hot


def columns_of(
    rows: Sequence[Mapping[str, str]], labels: Labels, codes: Sequence[Any] | None, fields: TableFields
) -> Columns:
    """Return facts about recordings from rows of a table or headers; without codes if the files contain their labels.

    Empty cells of columns of 0 and 1 are counted.

    Args:
        rows: a row for each recording.
        labels: its labels, which count what is left out.
        codes: index of the class of each recording, or indices.
        fields: the columns of the rows.

    Raises:
        UsageError: there is no recording, because none has a label that is used, or one has no patient.
    """
    if not rows:
        raise UsageError(
            f"classes: no recording is labelled {shorten(', '.join(labels.used))}; there are "
            + ", ".join(sentences(labels.left_out))
        )

    def column(argument: str) -> list[str] | None:
        return [row[argument] for row in rows] if argument in rows[0] else None

    _check_names_once(rows)
    empty = sum(row.empty_flags for row in rows if isinstance(row, TableRow))
    if empty:
        labels.left_out.add(_EMPTY_CELLS, empty)
    names = [row["name"] for row in rows]
    alone = next((row["name"] for row in rows if row.get("patient", "-") in ("", *checks.NULLS)), None)
    if alone is not None:
        raise UsageError(f"patient: recording {shown(alone)} has none; expected one for each recording")

    sites = {name: column(of_domain(name)) for name in fields.domains}
    subgroups = {name: column(of_group(name)) for name in fields.groups}
    return checks.columns(
        names, labels.classes, codes, column("patient") or names, column("time"), sites, column("split"),
        subgroups, one=True,
    )  # fmt: skip


def _check_names_once(rows: Sequence[Mapping[str, str]]) -> None:
    """Refuse two rows of a table that name one recording.

    Raises:
        UsageError: two rows do; the message has their lines, and where they differ.
    """
    first = dict[str, Mapping[str, str]]()
    for row in rows:
        other = first.setdefault(row["name"], row)
        if other is row or not isinstance(row, TableRow) or not isinstance(other, TableRow):
            continue
        differ = [argument for argument in row if row[argument] != other.get(argument)]
        how = f" and differ in {listed(differ)}" if differ else ""
        raise UsageError(
            f"name: {row.table}: lines {other.line} and {row.line} both name the recording {shown(row['name'])}{how}; "
            "correct the name in one of them, or delete it"
        )


def located(
    rows: Sequence[dict[str, str]], files: Mapping[str, Path], folder: Path, ending: str = ""
) -> list[tuple[dict[str, str], Path]]:
    """Return each row with the file of its name, which may not exist.

    Raises:
        UsageError: two names are one file, or one name may be several.
    """
    with_files = []
    names = dict[Path, str]()
    if not any(by_any_name(files, row["name"]) or (folder / f"{row['name']}{ending}").is_file() for row in rows):
        raise UsageError(_no_name_is_known(rows[0]["name"], files, folder))
    stems = Counter(file.stem for file in set(files.values()))
    for row in rows:
        file = by_any_name(files, row["name"]) or folder / f"{row['name']}{ending}"
        stem = _ENDING.sub("", row["name"])
        if stems[stem] > 1 and file not in files.values():
            twins = sorted({str(other.relative_to(folder)) for other in files.values() if other.stem == stem})
            raise UsageError(f"name: {shown(row['name'])} may be {shorten(', '.join(twins))}; give one of these paths")
        if names.setdefault(file, row["name"]) != row["name"]:
            both = f"{shown(names[file])} and {shown(row['name'])}"
            raise UsageError(f"name: {both} are one file, {shorten(file)}; keep one of the rows")
        with_files.append((row, file))
    return with_files


def _no_name_is_known(name: str, files: Mapping[str, Path], folder: Path) -> str:
    """Return a sentence on a table that names no file of a folder, with the likely reason."""
    there = sorted({file.stem for file in files.values()}, key=natural)
    padded = next((stem for stem in there if stem.isdigit() and stem.lstrip("0") == name.lstrip("0")), None)
    if padded is not None:
        remedy = "leading zeros are lost; give table=pandas.read_csv(..., dtype=str), or the path of the table, "
        remedy += f"where {shown(padded)} is written"
    else:
        remedy = "give name=..., the column with the names of the files"
    return (
        f"name: {shown(name)} is not a recording in {shorten(folder)}, and neither is any other of the column; there "
        f"are {listed(there)}: {remedy}"
    )


def by_any_name(files: Mapping[str, Path], name: str) -> Path | None:
    """Return the file with a name, which may have another extension, such as that of a signal file."""
    plain = PurePosixPath(name.replace("\\", "/")).as_posix()
    return files.get(plain) or files.get(_ENDING.sub("", plain))


def first_readable(files: Iterable[Path], read: Callable[[Path], _Read]) -> _Read:
    """Return what `read` returns for the first file that it can read; the others are reported by their readers.

    Raises:
        UsageError: none can be read; that of the first file.
    """
    problem = None
    for file in files:
        try:
            return read(file)
        except UsageError as error:
            problem = problem or error
    assert problem is not None
    raise problem


def by_name(files: Sequence[Path], folder: Path) -> dict[str, Path]:
    """Return files by relative path and by name, with and without extension, if unique."""
    by_name_or_path: dict[str, Path] = {}
    twice: set[str] = set()
    for file in files:
        path = PurePosixPath(file.relative_to(folder).as_posix())
        for key in {str(path), str(path.with_suffix("")), path.name, path.stem, checks.identifier("name", path.stem)}:
            if by_name_or_path.setdefault(key, file) is not file:
                twice.add(key)
    return {key: file for key, file in by_name_or_path.items() if key not in twice}


def short_name(file: Path, folder: Path, files: Mapping[str, Path]) -> str:
    """Return the name of a recording in a folder: that of its file, with its path if another file has that name."""
    return file.stem if file.stem in files else file.relative_to(folder).with_suffix("").as_posix()


def of_recording(
    given: Any, labels: Labels, where: str, domains: Mapping[str, str], begin: Moment | None = None
) -> Intervals:
    """Return the intervals (start, end, label) that come with a recording; unused labels are counted.

    Args:
        given: starts and ends in seconds since the start of the recording, or dates; an end may be None.
        labels: maps labels to classes. A whole number is a position in the classes, as in `Recording.label`.
        where: the recording, for messages.
        domains: its domains, by column.
        begin: its start, if known.

    Raises:
        UsageError: the intervals are invalid.
    """
    rows = list[Interval]()
    clocks = set[str]()
    try:
        for start, end, label in given:
            first = _seconds_of(start, clocks)
            last = first if end is None else _seconds_of(end, clocks)
            is_whole = _is_whole(label)
            code = labels.of_whole_number(label, domains) if is_whole else labels.of_interval(str(label), domains)
            if code is not None:
                rows.append(Interval(first, last, code, where))
    except UsageError:
        raise
    except (TypeError, ValueError):
        raise checks.refused("intervals", "(start, end, label) in seconds, or dates", given) from None
    if len(clocks) > 1:
        raise UsageError(f"intervals: starts and ends are {' and '.join(sorted(clocks))}; expected one kind")
    dated = bool(clocks) and _NUMBERS not in clocks
    if dated and begin is not None and begin.zoned != (_ZONED in clocks):
        raise UsageError("intervals: they or the start of the recording have a time zone; expected both alike")
    return Intervals(tuple(rows), dated=dated, begin=None if begin is None else begin.seconds)


_NUMBERS, _DATES, _ZONED = "numbers", "dates", "dates with a time zone"
"""Kinds of times of intervals."""


def _seconds_of(value: Any, clocks: set[str]) -> float:
    """Return a number, or a date in seconds since 1970, and add its kind to `clocks`."""
    known = moment(value)
    if known is None:
        clocks.add(_NUMBERS)
        return float(value)
    clocks.add(_ZONED if known.zoned else _DATES)
    return known.seconds


def _is_whole(label: Any) -> bool:
    """Return whether a label is a whole number, not text."""
    is_number = isinstance(label, numbers.Real) and not isinstance(label, bool | np.bool_)
    return is_number and float(label).is_integer()


def grouped(
    rows: Sequence[dict[str, str]], labels: Labels, table: str, fields: TableFields
) -> tuple[list[dict[str, str]], Mapping[str, Intervals]]:
    """Return the first row of each recording, and the intervals of each, from a table with one row per interval.

    Args:
        rows: the rows of the table.
        labels: maps labels to classes.
        table: the table, for messages.
        fields: the columns of the rows, and how they are read.

    Raises:
        UsageError: a start or end is neither a number nor a date, or rows of one recording differ in another column
            than the label.
    """
    first: dict[str, dict[str, str]] = {}
    listed: dict[str, list[tuple[dict[str, str], str]]] = {}
    for number, row in enumerate(rows, 1):
        where = f"{table}: row {number}"
        known = first.setdefault(row["name"], row)
        for argument in row.keys() - {"label", "start", "end"}:
            if row[argument] != known[argument]:
                raise UsageError(
                    f"{where}: {argument} is {shown(row[argument])} where an earlier row of {shown(row['name'])} has "
                    f"{shown(known[argument])}; expected one for all rows of a recording"
                )
        listed.setdefault(row["name"], []).append((row, where))
    intervals = {}
    for name, rows_of_recording in listed.items():
        intervals[name] = _intervals(rows_of_recording, labels, fields)
    return list(first.values()), intervals


def _intervals(rows: Sequence[tuple[dict[str, str], str]], labels: Labels, fields: TableFields) -> Intervals:
    """Return the intervals of one recording from its rows of a table, each with its place for messages."""
    clocks = set[str]()
    starts = list[float]()
    ends = list[float]()
    for row, where in rows:
        start = _time_of(row["start"], f"{where}: start", clocks)
        text = row.get("end", "")
        has_end = text not in ("", *checks.NULLS)
        starts.append(start)
        ends.append(_time_of(text, f"{where}: end", clocks) if has_end else start)
    first_where = rows[0][1]
    if len(clocks) > 1:
        raise UsageError(f"{first_where}: start and end are {' and '.join(sorted(clocks))}; expected one kind")
    dated = _NUMBERS not in clocks
    if dated and fields.in_samples:
        raise UsageError(f"{first_where}: start is a date; expected samples, as interval_unit says")
    if fields.closes:
        ends = until_next(starts, ends)
    intervals = list[Interval]()
    for (row, where), start, end in zip(rows, starts, ends, strict=True):
        code = labels.of_interval(row["label"], fields.domains_of(row))
        if code is not None:
            intervals.append(Interval(start, end, code, where))
    begin = None
    known = moment(checks.date_text(rows[0][0].get("time", "")))
    if dated and known is not None:
        if known.zoned != (_ZONED in clocks):
            raise UsageError(
                f"{first_where}: one of start and time has a time zone and the other none; expected both alike"
            )
        begin = known.seconds
    return Intervals(tuple(intervals), fields.in_samples, dated, begin, _ZONED in clocks)


def _time_of(text: str, where: str, clocks: set[str]) -> float:
    """Return a number, or a date in seconds since 1970, and add its kind to `clocks`."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isnan(number):
        clocks.add(_NUMBERS)
        return number
    known = moment(text)
    if known is None:
        raise UsageError(f"{where}: {shown(text)} is not a number, nor a date such as 2020-01-31 22:00:00")
    clocks.add(_ZONED if known.zoned else _DATES)
    return known.seconds


def other_names(where: str, leads: Sequence[str], channels: Sequence[str | int], first: Sequence[str]) -> list[str]:
    """Return notes on channels by position that have another name than in the first recording.

    Args:
        where: begin of messages.
        leads: names of all channels of a recording.
        channels: the channels that are read, by name or position.
        first: their names in the first recording.

    Raises:
        UsageError: the channel of the first recording is at another position.
    """
    notes = list[str]()
    for channel, name in zip(channels, first, strict=True):
        if not isinstance(channel, int) or channel >= len(leads) or leads[channel] == name:
            continue
        if name in leads:
            raise UsageError(
                f"{where}channels: position {channel} has {shown(leads[channel])} where the first recording has "
                f"{shown(name)}, which is at position {list(leads).index(name)} here; give names as channels"
            )
        notes.append(f"its channel {channel} is {leads[channel]} where the first recording has {name}")
    return notes


def positions(where: str, leads: Sequence[str], channels: Sequence[str | int]) -> list[int]:
    """Return the indices of the channels, given by name or position, in a recording.

    Raises:
        UsageError: the recording lacks a channel; the message begins with `where`.
    """
    lowered = [lead.lower() for lead in leads]
    positions_of_channels = []
    for channel in channels:
        if isinstance(channel, int):
            position = channel if 0 <= channel < len(leads) else -1
        elif channel in leads:
            position = leads.index(channel)
        else:
            position = lowered.index(channel.lower()) if channel.lower() in lowered else -1
        if position < 0:
            raise UsageError(
                f"{where}has no channel {channel}, but {', '.join(leads)}; give the channels that all records have"
            )
        positions_of_channels.append(position)
    return positions_of_channels
