"""`Recordings.from_folder`: one CSV, NPY or Parquet file per recording, and a table of labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
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
    by_name,
    columns_of,
    of_header,
    read_rows,
)
from clops_sweep.data.declared.portions import Columns, Portion, Signal, stored_as
from clops_sweep.data.files.folder import one_sentence, shorten
from clops_sweep.data.records import Common
from clops_sweep.errors import UsageError, one_line, shown
from clops_sweep.regular_files import open_regular

_ENDINGS = (".csv", ".npy", ".parquet")


@dataclass(frozen=True, eq=False, kw_only=True)
class SignalFile(Portion):
    """A file of one recording; `wanted` are the columns of its channels in CSV and Parquet, None for all."""

    wanted: tuple[str, ...] | None
    rate: float
    gain: NDArray[np.float64]

    def signal(self) -> Signal:
        """The samples of all channels."""
        stored = read_signal(self.files[0], self.wanted)
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
) -> tuple[Common, list[SignalFile], Columns]:
    """Return values common to the files, and the files; see `Recordings.from_folder`."""
    place = Path(folder)
    if not isinstance(pattern, str) or not pattern.endswith(_ENDINGS):
        raise checks.refused("pattern", f"one that ends in {', '.join(_ENDINGS)}", pattern)
    for argument, column in fields.columns.items():
        if of_header(column):
            raise UsageError(
                f"{argument}: {shown(column)} is a comment of a WFDB header; expected a column of the table"
            )
    path, rows = read_rows(place, table, fields)
    itself = None if path is None else os.path.realpath(path)
    with one_sentence(place):
        try:
            files = sorted(file for file in place.glob(pattern) if os.path.realpath(file) != itself)
            found = by_name(files, place)
        except (ValueError, NotImplementedError) as error:  # a pattern that glob cannot parse, or that leads outside
            raise checks.refused("pattern", f"a pattern of files in the folder ({one_line(error)})", pattern) from None
    if not found:
        raise UsageError(f"{shorten(place)}: no file there matches {pattern}; look at the folder and at pattern")
    labels = Labels(classes, separator, [row["label"] for row in rows])
    listed = [(row, found.get(row["name"], place / row["name"])) for row in rows]
    first = next((file for _, file in listed if file.is_file()), None)
    if first is None:
        raise UsageError(
            f"name: {shown(rows[0]['name'])} of {shorten(path) if path else 'table'} is not a file in "
            f"{shorten(place)}, and neither is any other name"
        )
    columns, sample = _columns(first, channels)
    narrow = stored_as(sample.dtype, windowing[2]) is np.int16
    factor = checks.gains(gain, len(columns))
    wanted = None if first.suffix == ".npy" else columns
    used = [(row, file, label) for row, file in listed if (label := labels.of(row["label"])) is not None]
    known = columns_of([row for row, _, _ in used], labels.classes, [label for _, _, label in used])
    recordings = [
        SignalFile((row["name"],), (file,), columns=known.rows(n, n + 1), wanted=wanted, rate=rate, gain=factor)
        for n, (row, file, _) in enumerate(used)
    ]
    common = Common(
        labels.classes, columns, units, labels.multi_label, np.int16 if narrow else np.float32, *windowing,
        left_out=dict(labels.left_out),
    )  # fmt: skip
    return common, recordings, known


def _columns(file: Path, channels: Sequence[str] | None) -> tuple[tuple[str, ...], NDArray[Any]]:
    """Return the names of the channels, and the samples of the first file."""
    named = None if channels is None else checks.names("channels", channels)
    if file.suffix == ".npy":
        sample = read_signal(file, None)
        names = named or tuple(f"channel {number + 1}" for number in range(len(sample)))
        if len(names) != len(sample):
            raise UsageError(f"channels: there are {len(names)} where {shorten(file)} has {len(sample)}")
        return names, sample
    names = named or tuple(_titles(file))
    return names, read_signal(file, names)


def read_signal(path: Path, columns: Sequence[str] | None) -> NDArray[Any]:
    """Return the samples of a file, [channels, samples].

    Raises:
        UsageError: the file cannot be read or lacks a column.
    """
    with one_sentence(path), open_regular(path):
        if path.suffix == ".npy":
            return np.asarray(checks.signal(shorten(path), _npy(path)))
        titles = _titles(path)
        for name in columns or ():
            if name not in titles:
                raise UsageError(f"{shorten(path)}: has no column {shown(name)}; it has {shorten(', '.join(titles))}")
            if titles.count(name) > 1:
                raise UsageError(f"{shorten(path)}: has {titles.count(name)} columns {shown(name)}; rename one of them")
        table = _parquet(path, lambda pq: pq.read_table(path)) if path.suffix == ".parquet" else _csv(path, titles)
        try:
            found = [table[name].to_numpy() for name in columns or titles]
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


def _parquet(path: Path, read: Any) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return read(pq)
    except pa.ArrowInvalid:
        raise UsageError(f"{shorten(path)}: not a readable Parquet file") from None


def _csv(path: Path, titles: Sequence[str]) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    skipped = int(_has_titles(path))
    try:
        return csv.read_csv(
            path,
            read_options=csv.ReadOptions(use_threads=False, column_names=list(titles), skip_rows=skipped),
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(titles, pa.float64())),
        )
    except pa.ArrowInvalid as error:
        raise UsageError(f"{shorten(path)}: not a table of numbers ({str(error).splitlines()[0][:120]})") from None


def _first_cells(path: Path) -> list[str]:
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        return [cell.strip().strip('"') for cell in file.readline().split(",")]


def _has_titles(path: Path) -> bool:
    try:
        [float(cell) for cell in _first_cells(path)]
    except ValueError:
        return True
    return False


def _titles(path: Path) -> list[str]:
    """Return the columns of a file; numbered if the first line of a CSV file has numbers."""
    if path.suffix == ".parquet":
        return list(_parquet(path, lambda pq: pq.read_schema(path)).names)
    cells = _first_cells(path)
    return cells if _has_titles(path) else [f"channel {number + 1}" for number in range(len(cells))]
