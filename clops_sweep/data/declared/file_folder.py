"""`Recordings.from_folder`: one CSV, NPY or Parquet file per recording, and a table of labels."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.label_table import (
    Fields,
    Labels,
    Table,
    by_any_name,
    by_name,
    columns_of,
    of_header,
    read_rows,
    visible,
)
from clops_sweep.data.declared.portions import Columns, Portion, Signal, stored_as
from clops_sweep.data.files.csv_table import csv_lines, text_form
from clops_sweep.data.files.folder import one_sentence, shorten
from clops_sweep.data.records import Common
from clops_sweep.errors import UsageError, one_line, shown
from clops_sweep.regular_files import open_regular

_ENDINGS = (".csv", ".npy", ".parquet")
_NO_SIGNALS = (
    "time", "times", "timestamp", "timestamps", "t", "date", "datetime", "index", "idx", "sample", "frame", "label",
    "labels", "class", "target", "annotation", "subject", "patient", "person", "id",
)  # fmt: skip
"""Columns that are no signals by their names, in lower case."""
_FEW = 10
"""Number of distinct whole numbers in a column of labels; lines in which a start time or a rate is looked for."""
_UNIX = 5e8
"""Least number that may be seconds since 1970: November 1985."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SignalFile(Portion):
    """A file of one recording; `wanted` are the columns of its channels in CSV and Parquet, None for all."""

    wanted: tuple[str, ...] | None
    rate: float
    gain: NDArray[np.float64]
    skip_lines: int = 0

    def signal(self) -> Signal:
        """The samples of all channels."""
        stored = read_signal(self.files[0], self.wanted, self.skip_lines)
        return Signal(stored[None], self.rate, self.gain, np.zeros(len(stored)))


def signal_files(
    folder: str | PathLike[str],
    pattern: str,
    fields: Fields,
    table: Table,
    classes: Any,
    separator: str | None,
    channels: Sequence[str] | None,
    rate: float,
    units: str,
    gain: Any,
    windowing: tuple[float | None, float | None, float | None],
    skip_lines: int,
) -> tuple[Common, list[SignalFile], Columns]:
    """Return values common to the files, and the files; see `Recordings.from_folder`."""
    place = Path(folder)
    if not isinstance(pattern, str) or not pattern.endswith(_ENDINGS):
        raise checks.refused("pattern", f"one that ends in {', '.join(_ENDINGS)}", pattern)
    if isinstance(skip_lines, bool) or not isinstance(skip_lines, int) or skip_lines < 0:
        raise checks.refused("skip_lines", "a whole number of lines", skip_lines)
    for argument, column in fields.columns.items():
        if of_header(column):
            raise UsageError(
                f"{argument}: {shown(column)} is a comment of a WFDB header; expected a column of the table"
            )
    path, rows = read_rows(place, table, fields)
    itself = None if path is None else os.path.realpath(path)
    with one_sentence(place):
        try:
            files = sorted(file for file in visible(place, place.glob(pattern)) if os.path.realpath(file) != itself)
            found = by_name(files, place)
        except (ValueError, NotImplementedError) as error:  # a pattern that glob cannot parse, or that leads outside
            raise checks.refused("pattern", f"a pattern of files in the folder ({one_line(error)})", pattern) from None
    if not found:
        raise UsageError(f"{shorten(place)}: no file there matches {pattern}; look at the folder and at pattern")
    labels = Labels(classes, separator, [row["label"] for row in rows])
    listed = [(row, by_any_name(found, row["name"]) or place / row["name"]) for row in rows]
    there = [file for _, file in listed if file.is_file()]
    if not there:
        raise UsageError(
            f"name: {shown(rows[0]['name'])} of {shorten(path) if path else 'table'} is not a file in "
            f"{shorten(place)}, and neither is any other name"
        )
    columns, sample = _first_columns(there, channels, rate, skip_lines)
    narrow = stored_as(sample.dtype, windowing[2]) is np.int16
    factor = checks.gains(gain, len(columns))
    wanted = None if there[0].suffix == ".npy" else columns
    used = [(row, file, label) for row, file in listed if (label := labels.of(row["label"])) is not None]
    known = columns_of([row for row, _, _ in used], labels.classes, [label for _, _, label in used])
    recordings = [
        SignalFile(
            (row["name"],), (file,), columns=known.rows(n, n + 1), wanted=wanted, rate=rate, gain=factor,
            skip_lines=skip_lines,
        )  # fmt: skip
        for n, (row, file, _) in enumerate(used)
    ]
    common = Common(
        labels.classes, columns, units, labels.multi_label, np.int16 if narrow else np.float32, *windowing,
        left_out=dict(labels.left_out),
    )  # fmt: skip
    return common, recordings, known


def _first_columns(
    files: Sequence[Path], channels: Sequence[str] | None, rate: float, skip_lines: int
) -> tuple[tuple[str, ...], NDArray[Any]]:
    """Return the names of the channels, and the samples of the first file that can be read."""
    named = None if channels is None else checks.names("channels", channels)
    problem = None
    for file in files:
        try:
            return _columns(file, named, rate, skip_lines)
        except UsageError as error:
            problem = problem or error
    assert problem is not None
    raise problem


def _columns(
    file: Path, named: tuple[str, ...] | None, rate: float, skip_lines: int
) -> tuple[tuple[str, ...], NDArray[Any]]:
    if file.suffix == ".npy":
        sample = read_signal(file, None)
        rows, samples = sample.shape
        if (named is None and rows > samples) or (named is not None and len(named) == samples != rows):
            raise UsageError(
                f"{shorten(file)}: has {rows:,} channels of {samples:,} samples, as if its axes were swapped; expected "
                "[channels, samples]: save its transpose, or name the channels"
            )
        names = named or tuple(f"channel {number + 1}" for number in range(rows))
        if len(names) != rows:
            raise UsageError(f"channels: there are {len(names)} where {shorten(file)} has {rows}")
    else:
        names = named or _signal_columns(file, skip_lines)
        sample = read_signal(file, names, skip_lines)
    if named is None:
        _require_signals(file, names, sample, rate)
    return names, sample


def _signal_columns(file: Path, skip_lines: int) -> tuple[str, ...]:
    """Return all columns but the index that pandas writes; a column that has no name otherwise is refused."""
    titles, unnamed = _titles(file, skip_lines), ("", "Unnamed: 0")
    index = _pandas_index(file)
    if titles and titles[0] in unnamed:
        numbers = read_signal(file, titles[:1], skip_lines)[0]
        index = [*index, *(titles[:1] if np.array_equal(numbers, np.arange(len(numbers)) + numbers[0]) else [])]
    return tuple(checks.names(f"{shorten(file)}: columns", [title for title in titles if title not in index]))


def _require_signals(file: Path, names: Sequence[str], sample: NDArray[Any], rate: float) -> None:
    """Raise a UsageError if a column looks like a time, an index or a label, or the first line like a start time."""
    for name, values in zip(names, sample, strict=True):
        steps = np.diff(values.astype(np.float64))
        known = name.strip().lower() in _NO_SIGNALS
        counts = len(steps) > _FEW and bool(steps[0]) and np.allclose(steps, steps[0], rtol=1e-3, atol=0)
        labels = len(values) >= _FEW**2 and len(np.unique(values)) <= _FEW and not (values % 1).any()
        if known or counts or labels:
            what = "a label" if labels and not counts else "a time or an index" if counts else "no signal"
            raise UsageError(
                f"{shorten(file)}: column {shown(name)} looks like {what}; give channels=[...] with the signals of "
                f"{shorten(', '.join(names))}"
            )
    for line, values in enumerate(sample.T[:_FEW], 1):
        later = sample[:, -1]
        if ((values == rate).all() and not (later == rate).all()) or ((values >= _UNIX).all() and (later < _UNIX).all()):
            raise UsageError(
                f"{shorten(file)}: sample {line} is {values[0]:g}, which looks like a start time or a sampling rate; "
                f"give skip_lines={line} or more, or channels=[...] if it is a sample"
            )


def read_signal(path: Path, columns: Sequence[str] | None, skip_lines: int = 0) -> NDArray[Any]:
    """Return the samples of a file, [channels, samples].

    Raises:
        UsageError: the file cannot be read or lacks a column.
    """
    with one_sentence(path), open_regular(path):
        if path.suffix == ".npy":
            return np.asarray(checks.signal(shorten(path), _npy(path)))
        titles = _titles(path, skip_lines)
        for name in columns or ():
            if name not in titles:
                raise UsageError(f"{shorten(path)}: has no column {shown(name)}; it has {shorten(', '.join(titles))}")
            if titles.count(name) > 1:
                raise UsageError(f"{shorten(path)}: has {titles.count(name)} columns {shown(name)}; rename one of them")
        wanted = list(columns or titles)
        table = _parquet(path, wanted) if path.suffix == ".parquet" else _csv(path, titles, wanted, skip_lines)
        try:
            found = [table[name].to_numpy() for name in wanted]
            return np.asarray(checks.signal(shorten(path), np.stack(found)))
        except (TypeError, ValueError) as error:
            if isinstance(error, UsageError):
                raise
            raise UsageError(
                f"{shorten(path)}: holds values that are not numbers; expected a column of numbers for each channel"
            ) from None


def _npy(path: Path) -> NDArray[Any]:
    try:
        return np.atleast_2d(np.load(path, mmap_mode="r", allow_pickle=False))
    except (ValueError, EOFError):
        raise UsageError(f"{shorten(path)}: not a whole array file; expected what numpy.save writes") from None


def _parquet(path: Path, columns: Sequence[str] | None) -> Any:
    """Return the columns of a Parquet file, or its schema without any."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(path) if columns is None else pq.read_table(path, columns=list(columns))
    except pa.ArrowInvalid:
        raise UsageError(f"{shorten(path)}: not a readable Parquet file") from None


def _pandas_index(path: Path) -> list[str]:
    """Return the columns of a Parquet file that are the index of a pandas table."""
    said = (_parquet(path, None).pandas_metadata or {}) if path.suffix == ".parquet" else {}
    return [name for name in said.get("index_columns", ()) if isinstance(name, str)]


def _csv(path: Path, titles: Sequence[str], wanted: Sequence[str], skip_lines: int) -> Any:
    """Return the wanted columns; a line below the names without any number has units, and is skipped."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    form, head = text_form(path), _head(path, skip_lines)
    skipped = skip_lines
    if _has_titles(head[:1], form.decimal):
        skipped += 1 + (len(head) > 1 and any(head[1]) and _has_no_number(head[1], form.decimal))
    try:
        return arrow_csv.read_csv(
            path,
            read_options=arrow_csv.ReadOptions(
                use_threads=False, column_names=list(titles), skip_rows=skipped, encoding=form.encoding.removesuffix("-sig")
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=form.separator),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.float64()),
                include_columns=list(wanted),
                decimal_point=form.decimal,
            ),
        )
    except (pa.ArrowInvalid, UnicodeDecodeError):
        raise UsageError(f"{shorten(path)}: {_fault(path, titles, wanted, skipped, form.decimal)}") from None


def _fault(path: Path, titles: Sequence[str], wanted: Sequence[str], skipped: int, decimal: str) -> str:
    """Return what makes a text table unreadable."""
    for number, cells in csv_lines(path, "expected a table of numbers"):
        if number <= skipped:
            continue
        if len(cells) != len(titles):
            return f"line {number} has {len(cells)} cells; expected {len(titles)}"
        for name in wanted:
            cell = cells[titles.index(name)].strip()
            if cell and _number(cell, decimal) is None:
                return f"line {number}, column {shown(name)}: {shown(cell)} is not a number"
    return "not a readable table of numbers"


def _number(cell: str, decimal: str) -> float | None:
    try:
        return float(cell.replace(decimal, "."))
    except ValueError:
        return None


def _has_titles(head: Sequence[Sequence[str]], decimal: str) -> bool:
    return any(_number(cell, decimal) is None for cells in head for cell in cells)


def _has_no_number(cells: Sequence[str], decimal: str) -> bool:
    """Return whether no cell is a number; nan is one."""
    return all(_number(cell, decimal) is None for cell in cells if cell)


def _head(path: Path, skip_lines: int) -> list[list[str]]:
    """Return the cells of the first two lines after those that are skipped."""
    form = text_form(path)
    with open(path, encoding=form.encoding, errors="replace", newline="") as file:
        lines = csv.reader(islice(file, skip_lines, skip_lines + 2), delimiter=form.separator)
        return [[cell.strip() for cell in cells] for cells in lines]


def _titles(path: Path, skip_lines: int) -> list[str]:
    """Return the columns of a file; numbered if the first line of a CSV file has numbers."""
    if path.suffix == ".parquet":
        return list(_parquet(path, None).names)
    head, form = _head(path, skip_lines)[:1], text_form(path)
    cells = head[0] if head else []
    return cells if _has_titles(head, form.decimal) else [f"channel {number + 1}" for number in range(len(cells))]
