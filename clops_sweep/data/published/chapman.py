"""`chapman`: the Chapman-Shaoxing database, four rhythm groups on twelve leads, dated by file name.

Zheng et al., "A 12-lead electrocardiogram database for arrhythmia research covering more than 10,000 patients",
Scientific Data 7, 2020. Reads two editions: CSV files with Diagnostics.xlsx, and WFDB records (without dates).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS, Rules
from clops_sweep.data.files.folder import is_file, shorten, visible
from clops_sweep.data.files.wfdb_records import (
    diagnoses,
    physical,
    read_header,
    read_stored,
    require_leads,
    require_rate,
)
from clops_sweep.data.published.chapman_files import SAMPLES, read_csv, read_diagnostics
from clops_sweep.data.published.locate import find_folder, wfdb_files
from clops_sweep.data.published.twelve_leads import LEADS, RATE, whole_windows
from clops_sweep.data.records import Common, Frames, Index, Source
from clops_sweep.data.same_samples import samples_digest
from clops_sweep.data.scenarios import term_of
from clops_sweep.data.sets.packaged_set import packaged
from clops_sweep.data.splits import random_split
from clops_sweep.errors import UsageError

GRID: Final = 2.0**-14
"""Stored samples are multiples of 2^-14 microvolt, finer than the five digits of the CSV files."""

GROUPS: Final = {
    **dict.fromkeys(("AFIB", "AF"), "AFIB"),
    **dict.fromkeys(("SVT", "AT", "SAAWR", "ST", "AVNRT", "AVRT"), "GSVT"),
    "SB": "SB",
    **dict.fromkeys(("SR", "SA"), "SR"),
}
"""The eleven rhythms of Diagnostics.xlsx and the group of each."""

SNOMED: Final = {
    "164889003": "AFIB",
    "164890007": "AF",
    "426761007": "SVT",
    "713422000": "AT",
    "195101003": "SAAWR",
    "427084000": "ST",
    "233896004": "AVNRT",
    "233897008": "AVRT",
    "426177001": "SB",
    "426783006": "SR",
    "427393009": "SA",
}
"""Codes of these rhythms in the headers of the WFDB edition; its other codes are conditions, not rhythms."""

_DIAGNOSTICS: Final = "Diagnostics.xlsx"
_CSV_PLACES: Final = ("ECGDataDenoised/MUSE_", "ECGData/MUSE_", "MUSE_")
_DATED: Final = re.compile(r"_(\d{4})(\d\d)(\d\d)_(\d\d)(\d\d)(\d\d)_")


CLASSES: Final = ("AFIB", "GSVT", "SB", "SR")


@dataclass(frozen=True, eq=False, kw_only=True)
class ChapmanRecord(Source):
    """Ten seconds of each lead in microvolt, resampled from 500 to 250 Hz; each lead is an instance."""

    rhythm: str = ""

    def read(self, common: Common) -> Frames:
        """Read one frame per lead, labelled by the group of the recording's rhythm.

        Frames are resampled by scipy.signal.resample; a lead with a missing sample becomes NaN and is dropped later.
        """
        file = self.files[0]
        if file.suffix == ".csv":
            if not is_file(file):
                missing = f"{shorten(file)}: the recording is missing, and {_DIAGNOSTICS} lists it"
                raise UsageError(f"{missing}; download it again")
            leads = read_csv(file)
            rhythm = self.rhythm
            time = acquired(self.record, file)
        else:
            leads, rhythm = _read_wfdb(file)
            time = None
        if rhythm not in GROUPS:
            what = f"rhythm {rhythm!r} is unknown" if rhythm else "no rhythm is given for this recording"
            raise UsageError(f"{shorten(file)}: {what}; expected one of {', '.join(GROUPS)}")
        label = CLASSES.index(GROUPS[rhythm])
        windows = whole_windows(common, leads.shape[1], SAMPLES, label, patient=self.record, time=time)
        return Frames.resampled(windows, windows.cut(leads), GRID, samples_digest(leads))


def _read_wfdb(file: Path) -> tuple[NDArray[np.float64], str]:
    """Return the leads [12, samples] of a WFDB record in microvolt, and its rhythm, empty if it has none."""
    header = read_header(file)
    require_rate(header, RATE)
    order = require_leads(header, LEADS)
    rhythms = [SNOMED[code] for code in diagnoses(header) if code in SNOMED]
    groups = {GROUPS[rhythm] for rhythm in rhythms}
    if len(groups) > 1:
        raise UsageError(f"{shorten(file)}: rhythms of several groups ({', '.join(sorted(groups))}); expected one")
    stored = read_stored(header)
    leads = np.stack([1000 * physical(stored, header, lead) for lead in order])
    return leads, next(iter(rhythms), "")


def _split(index: Index, seed: int) -> NDArray[np.int8]:
    """Split the patients of each term, shuffled by the seed, into floor(0.6 n), floor(0.2 n) and the rest."""
    if index.times is None:
        return random_split.shuffled(index, seed)
    times = np.empty(len(index.patient_names), index.times.dtype)
    times[index.patients] = index.times
    return split_by_term(times, seed)


@packaged("chapman", classes=CLASSES, channels=LEADS, units="uV", rules=Rules(split=_split, tolerates_dead_leads=True))
def chapman(data_root: Path | None) -> list[Source]:
    """Find the CSV files and Diagnostics.xlsx with their labels, or the WFDB records, whose headers hold the labels."""
    holds = tuple(f"{folder}*.csv" for folder in _CSV_PLACES)
    folder = find_folder(
        data_root, DATASETS["chapman"].folders, "chapman", (*holds, "**/*.hea"), (*holds, "WFDBRecords/**/*.hea")
    )
    paths: list[Path] = []
    for pattern in holds:
        paths = paths or sorted(visible(folder.glob(pattern), folder))
    if not paths:
        return [ChapmanRecord((name,), files) for name, files in wfdb_files(folder, ".mat")]
    table = folder / _DIAGNOSTICS
    rhythms = read_diagnostics(table)
    files = {record: paths[0].with_name(f"{record}.csv") for record in rhythms}  # even if it is missing
    files |= {path.stem: path for path in paths}
    return [
        ChapmanRecord((record,), (files[record],), (table,), rhythm=rhythms.get(record, "")) for record in sorted(files)
    ]


def split_by_term(times: NDArray[np.datetime64], seed: int) -> NDArray[np.int8]:
    """Return the split of patients [n] from their dates [n]: within each term 60/20/20, rounded down."""
    everybody = np.ones(len(times), bool)
    return random_split.within_groups(term_of(times, everybody, DATASETS["chapman"].terms), seed)


def acquired(record: str, path: Path) -> np.datetime64:
    """Return the date in a file name such as MUSE_20180113_171327_27000."""
    match = _DATED.search(record + "_")
    try:
        if match is None:
            raise ValueError
        return np.datetime64("{}-{}-{}T{}:{}:{}".format(*match.groups()), "s")
    except ValueError:
        raise UsageError(
            f"{shorten(path)}: no date in the name, expected one such as MUSE_20180113_171327_27000"
        ) from None
