"""`ptbxl`: PTB-XL with its five diagnostic superclasses, several per recording.

Wagner et al., "PTB-XL, a large publicly available electrocardiography dataset", Scientific Data 7, 2020.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.files.csv_table import read_table
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.frames import FRAME_LENGTH
from clops_sweep.data.published.locate import find_folder
from clops_sweep.data.published.twelve_leads import RATE, IntegerFrames, whole_windows
from clops_sweep.data.reader import Index, Source, Windows
from clops_sweep.data.splits import random_split
from clops_sweep.errors import BadInput

DATABASE: Final = "ptbxl_database.csv"
STATEMENTS: Final = "scp_statements.csv"
_REMEDY: Final = "use the table as published"


class PtbXl(IntegerFrames):
    """Two frames of 5 s per lead of each 10 s recording at 500 Hz, in the publisher's integers.

    Dates are shifted by the publisher, consistently within a patient only: terms made from them are a surrogate.
    """

    name = "ptbxl"
    classes = ("CD", "HYP", "MI", "NORM", "STTC")
    tolerates_repeats = True

    def find(self, data_root: Path | None) -> list[Source]:
        """All rows of ptbxl_database.csv, by their 500 Hz file."""
        database, statements = self.tables(data_root)
        superclass = _superclasses(statements, self.classes)
        sources = []
        for row in read_table(database, ("ecg_id", "patient_id", "recording_date", "scp_codes", "filename_hr")):
            files = tuple(database.parent / f"{row['filename_hr']}{suffix}" for suffix in (".hea", ".dat"))
            sources.append(Source(row["ecg_id"], files, (row, superclass, database), listed_in=database))
        return sources

    def tables(self, data_root: Path | None) -> tuple[Path, ...]:
        """The table of recordings and that of SCP statements."""
        folder = find_folder(data_root, DATASETS[self.name].folders, self.name, (DATABASE,), (DATABASE,))
        return folder / DATABASE, folder / STATEMENTS

    def windows(self, source: Source) -> Windows:
        """Every whole frame of every lead, labels [m, 5] multi-hot; recordings without a superclass are dropped."""
        row, superclass, database = source.detail
        header = self.header(source)
        labels = self.labels(_classes(row, superclass, database))
        time = _date(row, database)
        patient = _patient(row, database)
        windows = whole_windows(patient, header.samples, FRAME_LENGTH, RATE, labels, time)
        if labels.any():
            return windows
        empty = windows.take(np.zeros(0, np.int64))
        return Windows(**{**vars(empty), "dropped": {"no diagnostic superclass": len(windows)}})

    def split(self, index: Index, seed: int) -> NDArray[np.int8]:
        """floor(.6 n), floor(.2 n), rest of the patients, shuffled by the seed."""
        return random_split.sixty_twenty_twenty(len(index.patient_names), seed)


def _superclasses(path: Path, classes: Sequence[str]) -> Mapping[str, str]:
    """All SCP statements and the superclass of each, which is empty for those that are no diagnosis."""
    superclass = {}
    for row in read_table(path, ("", "diagnostic", "diagnostic_class")):
        is_diagnosis = row["diagnostic"].startswith("1")
        superclass[row[""]] = row["diagnostic_class"] if is_diagnosis else ""
        if is_diagnosis and row["diagnostic_class"] not in classes:
            raise BadInput(
                f"{shorten(path)}: diagnostic_class {row['diagnostic_class'][:60]!r} of {row[''][:60]!r} is unknown, "
                f"expected one of {', '.join(classes)}; {_REMEDY}"
            )
    return superclass


def _classes(row: Mapping[str, str], superclass: Mapping[str, str], database: Path) -> list[str]:
    """Superclasses of the keys of a mapping such as {'NORM': 100.0, 'SR': 0.0}: a literal, and never executed."""
    try:
        codes = [str(code) for code in dict(ast.literal_eval(row["scp_codes"]))]
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise BadInput(
            f"{shorten(database)}: scp_codes of {row['ecg_id']} is {row['scp_codes'][:60]!r}, expected a mapping such "
            f"as {{'NORM': 100.0}}; {_REMEDY}"
        ) from None
    for code in codes:
        if code not in superclass:
            raise BadInput(
                f"{shorten(database)}: scp_codes of {row['ecg_id']} has {code[:60]!r}, which {STATEMENTS} does not "
                f"explain; use both tables as published"
            )
    return [superclass[code] for code in codes]


def _patient(row: Mapping[str, str], database: Path) -> str:
    """The patient's number, the same written as 15709 and as 15709.0; the recording's own where there is none."""
    given = row["patient_id"].strip()
    if not given:
        return f"recording {row['ecg_id']}"
    match = re.fullmatch(r"0*([0-9]+)(\.0*)?", given)
    if match is None:
        raise BadInput(
            f"{shorten(database)}: patient_id of {row['ecg_id']} is {given[:60]!r}, expected a whole number; {_REMEDY}"
        )
    return match[1]


def _date(row: Mapping[str, str], database: Path) -> np.datetime64:
    try:
        return np.datetime64(datetime.fromisoformat(row["recording_date"]), "s")
    except ValueError:
        raise BadInput(
            f"{shorten(database)}: recording_date {row['recording_date'][:60]!r} of {row['ecg_id']} is not a date; "
            f"{_REMEDY}"
        ) from None
