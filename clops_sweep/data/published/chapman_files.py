"""The CSV edition of the Chapman-Shaoxing database: its table of labels and its signal files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared.file_folder import read_signal
from clops_sweep.data.files.folder import is_of_the_file_system, one_sentence, shorten
from clops_sweep.data.files.library_warnings import Harmless, warnings_refused
from clops_sweep.data.published.twelve_leads import LEADS, RATE
from clops_sweep.errors import UsageError

SAMPLES: Final = 5000
_MOST_MICROVOLT: Final = 2**15 * 4.88
"""The largest amplitude of 16-bit samples in the recorder's steps of 4.88 microvolt. Larger values are damaged numbers;
NaN, which the publisher's files hold, is a missing sample."""
_NO_CELLS: Final = (
    Harmless(r"Workbook contains no default style", "a style changes no text of a cell"),
    Harmless(
        r".* extension is not supported and will be removed", "formats and rules of input change no text of a cell"
    ),
    Harmless(r"(Cannot parse header or footer|Print area cannot be set|DrawingML support)", "only printing shows them"),
    Harmless(r"Unknown type for ", "a property of the document is no cell"),
)


def read_diagnostics(path: Path) -> Mapping[str, str]:
    """Return record and rhythm of every row of Diagnostics.xlsx.

    Raises:
        UsageError: the table or one of its columns is missing or unreadable, or a record is listed twice.
    """
    import pandas as pd

    if not path.is_file():
        raise UsageError(f"{shorten(path)}: the table of labels is missing; download it into the same folder")
    with one_sentence(path):
        try:
            with warnings_refused(path, "xlsx table", _NO_CELLS):
                table = pd.read_excel(path, dtype=str, keep_default_na=False)
        except UsageError:
            raise
        except Exception as error:  # zip, zlib, XML and openpyxl each raise their own errors for a damaged file
            if is_of_the_file_system(error):
                raise
            raise UsageError(
                f"{shorten(path)}: not a readable xlsx table ({type(error).__name__}); download it again"
            ) from None
    for column in ("FileName", "Rhythm"):
        if column not in table:
            raise UsageError(f"{shorten(path)}: column {column!r} is missing; use the table as published")
    rhythms: dict[str, str] = {}
    for record, rhythm in zip(table["FileName"].str.strip(), table["Rhythm"].str.strip(), strict=True):
        if record in rhythms:
            raise UsageError(f"{shorten(path)}: record {record} is listed twice; keep one of the rows")
        if record:
            rhythms[record] = rhythm
    return rhythms


def read_csv(path: Path) -> NDArray[np.float64]:
    """Return the twelve leads of a CSV file in microvolt, [12, 5000]; a header line with lead names is skipped.

    Raises:
        UsageError: the file does not hold 5000 lines of twelve numbers, or a number is beyond the recorder's range.
    """
    values = read_signal(path, None)
    if values.shape != (len(LEADS), SAMPLES):
        raise UsageError(
            f"{shorten(path)}: holds {values.shape[1]} rows of {values.shape[0]} numbers, expected {SAMPLES} of "
            f"{len(LEADS)} (10 s at {RATE:g} Hz); download the record again"
        )
    if (beyond := np.abs(values) > _MOST_MICROVOLT).any():
        raise UsageError(
            f"{shorten(path)}: holds {values[beyond][0]:g} microvolt, and the recorder's 16 bits end at "
            f"{_MOST_MICROVOLT:,.0f}; download the record again"
        )
    return values
