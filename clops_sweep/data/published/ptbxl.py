"""`ptbxl`: PTB-XL with its five diagnostic superclasses, several per recording.

Wagner et al., "PTB-XL, a large publicly available electrocardiography dataset", Scientific Data 7, 2020.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import numpy as np

from clops_sweep.data.catalog import DATASETS, Rules
from clops_sweep.data.files.csv_table import read_table
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.files.wfdb_records import Header
from clops_sweep.data.published.locate import find_folder
from clops_sweep.data.published.sex_and_age import sex_and_age
from clops_sweep.data.published.twelve_leads import LEADS, IntegerRecord
from clops_sweep.data.records import Common, Source, Windows
from clops_sweep.data.sets.packaged_set import packaged
from clops_sweep.data.splits import random_split
from clops_sweep.errors import UsageError

_DATABASE: Final = "ptbxl_database.csv"
_STATEMENTS: Final = "scp_statements.csv"
_REMEDY: Final = "use the table as published"
_SEX: Final = {"0": "male", "1": "female"}


CLASSES: Final = ("CD", "HYP", "MI", "NORM", "STTC")


@dataclass(frozen=True, eq=False, kw_only=True)
class PtbXlRecord(IntegerRecord):
    """Two frames of 5 s per lead of each 10 s recording at 500 Hz, in the publisher's integers.

    The publisher shifted the dates, consistently only within a patient, so terms made from them are surrogates. `row`
    is a row of ptbxl_database.csv, `superclass` maps each SCP statement to its superclass.
    """

    row: Mapping[str, str]
    superclass: Mapping[str, str]

    def windows(self, common: Common, header: Header) -> Windows:
        """Return whole frames of every lead, labels [m, 5] multi-hot; recordings without a superclass are dropped."""
        row, database = self.row, self.tables[0]
        names = _classes(row, self.superclass, database)
        groups = sex_and_age(_SEX.get(row.get("sex", "").strip(), ""), row.get("age", ""))
        windows = self.whole(
            common, header, names, time=_date(row, database), patient=_patient(row, database), groups=groups
        )
        if any(name in CLASSES for name in names):
            return windows
        return windows.take(np.zeros(0, np.int64), "no diagnostic superclass")


@packaged(
    "ptbxl",
    classes=CLASSES,
    channels=LEADS,
    units="mV",
    rules=Rules(split=random_split.shuffled, integers=True, multi_label=True, tolerates_repeats=True),
)
def ptbxl(data_root: Path | None) -> list[Source]:
    """Find all rows of ptbxl_database.csv, with their 500 Hz files."""
    folder = find_folder(data_root, DATASETS["ptbxl"].folders, "ptbxl", (_DATABASE,), (_DATABASE,))
    database, statements = folder / _DATABASE, folder / _STATEMENTS
    superclass = _superclasses(statements, CLASSES)
    sources: list[Source] = []
    for row in read_table(database, ("ecg_id", "patient_id", "recording_date", "scp_codes", "filename_hr")):
        name = row["filename_hr"]
        files = (folder / f"{name}.hea", folder / f"{name}.dat")
        record = PtbXlRecord((row["ecg_id"],), files, (database, statements), row=row, superclass=superclass)
        sources.append(record)
    return sources


def _superclasses(path: Path, classes: Sequence[str]) -> Mapping[str, str]:
    """Return the superclass of every SCP statement, empty if it is not a diagnosis."""
    superclass = {}
    for row in read_table(path, ("", "diagnostic", "diagnostic_class")):
        is_diagnosis = row["diagnostic"].startswith("1")
        superclass[row[""]] = row["diagnostic_class"] if is_diagnosis else ""
        if is_diagnosis and row["diagnostic_class"] not in classes:
            raise UsageError(
                f"{shorten(path)}: diagnostic_class {row['diagnostic_class'][:60]!r} of {row[''][:60]!r} is unknown, "
                f"expected one of {', '.join(classes)}; {_REMEDY}"
            )
    return superclass


def _classes(row: Mapping[str, str], superclass: Mapping[str, str], database: Path) -> list[str]:
    """Return the superclasses in a literal such as {'NORM': 100.0, 'SR': 0.0}, which is parsed, not executed."""
    try:
        codes = [str(code) for code in dict(ast.literal_eval(row["scp_codes"]))]
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise UsageError(
            f"{shorten(database)}: scp_codes of {row['ecg_id']} is {row['scp_codes'][:60]!r}, expected a mapping such "
            f"as {{'NORM': 100.0}}; {_REMEDY}"
        ) from None
    for code in codes:
        if code not in superclass:
            raise UsageError(
                f"{shorten(database)}: scp_codes of {row['ecg_id']} has {code[:60]!r}, which {_STATEMENTS} does not "
                f"explain; use both tables as published"
            )
    return [superclass[code] for code in codes]


def _patient(row: Mapping[str, str], database: Path) -> str:
    """Return the patient's number, equal for 15709 and 15709.0; if missing, that of the recording."""
    given = row["patient_id"].strip()
    if not given:
        return f"recording {row['ecg_id']}"
    match = re.fullmatch(r"0*([0-9]+)(\.0*)?", given)
    if match is None:
        raise UsageError(
            f"{shorten(database)}: patient_id of {row['ecg_id']} is {given[:60]!r}, expected a whole number; {_REMEDY}"
        )
    return match[1]


def _date(row: Mapping[str, str], database: Path) -> np.datetime64:
    try:
        return np.datetime64(datetime.fromisoformat(row["recording_date"]), "s")
    except ValueError:
        raise UsageError(
            f"{shorten(database)}: recording_date {row['recording_date'][:60]!r} of {row['ecg_id']} is not a date; "
            f"{_REMEDY}"
        ) from None
