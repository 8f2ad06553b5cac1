"""The two kinds of file that the CSV edition of the Chapman-Shaoxing database consists of: labels and signals."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.folder import is_of_the_file_system, one_sentence, shorten
from clops_sweep.data.published.twelve_leads import LEADS, RATE
from clops_sweep.errors import UsageError

SAMPLES: Final = 5000
MOST_MICROVOLT: Final = 2**15 * 4.88
"""The largest amplitude that 16-bit samples in the recorder's steps of 4.88 microvolt can have. Beyond it is no ECG
but a number that was damaged; NaN, which the publisher's files hold, is a missing sample."""

_MOST_UNPACKED: Final = 2**26
_MOST_ENTRIES: Final = 100
"""The published table unpacks to 5.9 million bytes in 10 files."""
_MOST_ROWS: Final = 2**17
_MOST_COLUMNS: Final = 64
"""It has 10,647 rows of 16 columns. A sheet may promise a million rows of 16,384 without holding a cell."""


def read_diagnostics(path: Path) -> Mapping[str, str]:
    """Record and rhythm of every row of Diagnostics.xlsx.

    Raises:
        UsageError: the table or one of its columns is missing, it cannot be read, or a record is listed twice.
    """
    if not path.is_file():
        raise UsageError(f"{shorten(path)}: the table of labels is missing; download it into the same folder")
    rows = _sheet(path)
    header = [_text(cell) for cell in rows[0]] if rows else []
    for column in ("FileName", "Rhythm"):
        if column not in header:
            raise UsageError(f"{shorten(path)}: column {column!r} is missing; use the table as published")
    name, rhythm = header.index("FileName"), header.index("Rhythm")
    rhythms: dict[str, str] = {}
    for row in rows[1:]:
        cells = [_text(cell) for cell in row] + [""] * len(header)
        if not (record := cells[name]):
            continue
        if record in rhythms:
            raise UsageError(f"{shorten(path)}: record {record} is listed twice; keep one of the rows")
        rhythms[record] = cells[rhythm]
    return rhythms


def _sheet(path: Path) -> list[tuple[Any, ...]]:
    """The first sheet of an Excel file."""
    import openpyxl

    with one_sentence(path):
        try:
            _require_small(path)
            with closing(openpyxl.load_workbook(path, read_only=True, data_only=True)) as book:
                rows = list(
                    book.worksheets[0].iter_rows(max_row=_MOST_ROWS + 1, max_col=_MOST_COLUMNS, values_only=True)
                )
            if len(rows) > _MOST_ROWS:
                raise UsageError(f"{shorten(path)}: has more than {_MOST_ROWS:,} rows; download it again")
            return rows
        except UsageError:
            raise
        except Exception as error:  # of zip, zlib, XML and openpyxl, whichever comes upon the damage first
            if is_of_the_file_system(error):
                raise
            raise UsageError(
                f"{shorten(path)}: not a readable xlsx table ({type(error).__name__}); download it again"
            ) from None


def _require_small(path: Path) -> None:
    """Raises UsageError where the file, which is a zip archive, would unpack to far more than the published one."""
    with zipfile.ZipFile(path) as archive:
        unpacked, entries = sum(entry.file_size for entry in archive.infolist()), len(archive.infolist())
    if unpacked > _MOST_UNPACKED or entries > _MOST_ENTRIES:
        raise UsageError(
            f"{shorten(path)}: would unpack to {unpacked:,} bytes in {entries:,} files, the published table to 6 "
            "million in 10; download it again"
        )


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def read_csv(path: Path) -> NDArray[np.float64]:
    """The twelve leads of a CSV file in microvolt, [12, 5000]; a line of lead names at the top is passed over.

    Raises:
        UsageError: not 5000 lines of twelve numbers, or a number that no recorder has written.
    """
    with open(path, encoding="utf-8", errors="replace") as file:
        named = [cell.strip().lower() for cell in file.readline().split(",")] == [lead.lower() for lead in LEADS]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty file shows in its shape
            values = np.loadtxt(path, delimiter=",", skiprows=int(named), ndmin=2, encoding="utf-8", comments=None)
    except ValueError:
        fault = _first_fault(path, int(named)) or "a cell that is no number"
        raise UsageError(f"{shorten(path)}: not a table of numbers ({fault}); download the record again") from None
    if values.shape != (SAMPLES, len(LEADS)):
        raise UsageError(
            f"{shorten(path)}: holds {values.shape[0]} rows of {values.shape[1]} numbers, expected {SAMPLES} of "
            f"{len(LEADS)} (10 s at {RATE:g} Hz); download the record again"
        )
    if (beyond := np.abs(values) > MOST_MICROVOLT).any():
        raise UsageError(
            f"{shorten(path)}: holds {values[beyond][0]:g} microvolt, and the recorder's 16 bits end at "
            f"{MOST_MICROVOLT:,.0f}; download the record again"
        )
    return values.T


def _first_fault(path: Path, lines_before: int) -> str:
    """Where a file first is no table of twelve numbers in a line: line as an editor counts it, and what is there."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            cells = line.strip().split(",")
            if number <= lines_before or cells == [""]:
                continue
            if len(cells) != len(LEADS):
                return f"line {number} has {len(cells)} instead of {len(LEADS)} cells"
            for cell in cells:
                try:
                    float(cell)
                except ValueError:
                    return f"{cell[:60]!r} in line {number}"
    return ""
