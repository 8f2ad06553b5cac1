"""`ptbxl`: PTB-XL with its five diagnostic superclasses, several per recording.

Wagner et al., "PTB-XL, a large publicly available electrocardiography dataset", Scientific Data 7, 2020.
"""

from __future__ import annotations

import ast
import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data import random_split
from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.folder import one_sentence, shorten
from clops_sweep.data.frames import FRAME_LENGTH
from clops_sweep.data.locate import find_folder
from clops_sweep.data.reader import Index, Source, Windows
from clops_sweep.data.twelve_leads import RATE, IntegerFrames, whole_windows
from clops_sweep.errors import BadInput

DATABASE: Final = "ptbxl_database.csv"
STATEMENTS: Final = "scp_statements.csv"


class PtbXl(IntegerFrames):
    """Two frames of 5 s per lead of each 10 s recording at 500 Hz, in the publisher's integers.

    Dates are shifted by the publisher, consistently within a patient only: terms made from them are a surrogate.
    """

    name = "ptbxl"
    classes = ("CD", "HYP", "MI", "NORM", "STTC")

    def find(self, data_root: Path | None) -> list[Source]:
        """All rows of ptbxl_database.csv, by their 500 Hz file."""
        database, statements = self.tables(data_root)
        superclass = _superclasses(statements)
        sources = []
        for row in _table(database, ("ecg_id", "patient_id", "recording_date", "scp_codes", "filename_hr")):
            stem = database.parent / row["filename_hr"]
            files = (stem.with_name(stem.name + ".hea"), stem.with_name(stem.name + ".dat"))
            sources.append(Source(row["ecg_id"], files, (row, superclass)))
        return sources

    def tables(self, data_root: Path | None) -> tuple[Path, ...]:
        """The table of recordings and that of SCP statements."""
        folder = find_folder(data_root, DATASETS[self.name].folders, self.name, (DATABASE,), (DATABASE,))
        return folder / DATABASE, folder / STATEMENTS

    def windows(self, source: Source) -> Windows:
        """Every whole frame of every lead, labels [m, 5] multi-hot; recordings without a superclass are dropped."""
        row, superclass = source.detail
        header = self.header(source)
        labels = self.labels(superclass.get(code, "") for code in _codes(row, source))
        try:
            time = np.datetime64(row["recording_date"].replace(" ", "T"), "s")
        except ValueError:
            raise BadInput(
                f"{DATABASE}: recording_date {row['recording_date']!r} of {source.record} is not a date"
            ) from None
        patient = row["patient_id"].removesuffix(".0") or f"recording {source.record}"
        windows = whole_windows(patient, header.samples, FRAME_LENGTH, RATE, labels, time)
        if labels.any():
            return windows
        empty = windows.take(np.zeros(0, np.int64))
        return Windows(**{**vars(empty), "dropped": {"no diagnostic superclass": len(windows)}})

    def split(self, index: Index, seed: int) -> NDArray[np.int8]:
        """floor(.6 n), floor(.2 n), rest of the patients, shuffled by the seed."""
        return random_split.sixty_twenty_twenty(len(index.patient_names), seed)


def _superclasses(path: Path) -> Mapping[str, str]:
    """Diagnostic SCP statements and the superclass of each."""
    return {
        row[""]: row["diagnostic_class"]
        for row in _table(path, ("", "diagnostic", "diagnostic_class"))
        if row["diagnostic"].startswith("1")
    }


def _codes(row: Mapping[str, str], source: Source) -> list[str]:
    """The keys of a mapping such as {'NORM': 100.0, 'SR': 0.0}, read as a literal and never executed."""
    try:
        return [str(code) for code in dict(ast.literal_eval(row["scp_codes"]))]
    except (ValueError, SyntaxError, TypeError):
        raise BadInput(
            f"{DATABASE}: scp_codes of {source.record} is {row['scp_codes'][:60]!r}, expected a mapping such as "
            "{'NORM': 100.0}"
        ) from None


def _table(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """A CSV file's rows by column name; BadInput where the file or a column is missing."""
    if not path.is_file():
        raise BadInput(f"{shorten(path)}: the table is missing; download ptbxl again")
    with one_sentence(path), open(path, newline="", encoding="utf-8", errors="replace") as file:
        reader = csv.DictReader(file)
        for column in columns:
            if column not in (reader.fieldnames or ()):
                raise BadInput(f"{shorten(path)}: column {column!r} is missing; use the table as published")
        return list(reader)
