"""`chapman`: the Chapman-Shaoxing database, four rhythm groups on twelve leads, dated by file name.

Zheng et al., "A 12-lead electrocardiogram database for arrhythmia research covering more than 10,000 patients",
Scientific Data 7, 2020. Two editions are read: CSV files with Diagnostics.xlsx, and WFDB records (without dates).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.files.folder import is_file, shorten
from clops_sweep.data.files.resampling import resampled
from clops_sweep.data.files.wfdb_records import (
    diagnoses,
    physical,
    read_header,
    read_stored,
    require_leads,
    require_rate,
)
from clops_sweep.data.frames import FRAME_LENGTH
from clops_sweep.data.published.chapman_files import SAMPLES, read_csv, read_diagnostics
from clops_sweep.data.published.locate import find_folder, wfdb_sources
from clops_sweep.data.published.twelve_leads import LEADS, RATE, whole_windows
from clops_sweep.data.reader import Index, Reader, Signals, Source, Windows
from clops_sweep.data.same_samples import samples_digest
from clops_sweep.data.scenarios import term_of
from clops_sweep.data.splits import random_split
from clops_sweep.errors import BadInput

GRID: Final = 2.0**-14
"""Stored samples are multiples of 2^-14 microvolt, finer than the five digits of the CSV files."""

GROUPS: Final = {
    **dict.fromkeys(("AFIB", "AF"), "AFIB"),
    **dict.fromkeys(("SVT", "AT", "SAAWR", "ST", "AVNRT", "AVRT"), "GSVT"),
    "SB": "SB",
    **dict.fromkeys(("SR", "SA"), "SR"),
}
"""The eleven rhythms of Diagnostics.xlsx and the group each belongs to."""

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
"""Codes of the same rhythms in the WFDB edition's headers; its other codes are conditions, not rhythms."""

DIAGNOSTICS: Final = "Diagnostics.xlsx"
_CSV_PLACES: Final = ("ECGDataDenoised/MUSE_", "ECGData/MUSE_", "MUSE_")
_DATED: Final = re.compile(r"_(\d{4})(\d\d)(\d\d)_(\d\d)(\d\d)(\d\d)_")


class Chapman(Reader):
    """Ten seconds per lead, resampled from 500 to 250 Hz, microvolt; every lead its own instance."""

    name = "chapman"
    unit = "uV"
    classes = ("AFIB", "GSVT", "SB", "SR")
    lead_names = LEADS
    tolerates_dead_leads = True

    def find(self, data_root: Path | None) -> list[Source]:
        """The CSV files with their labels, or the WFDB records."""
        folder, paths = _folder_and_tables(data_root)
        if not paths:
            return wfdb_sources(folder, ".mat")
        rhythms = read_diagnostics(folder / DIAGNOSTICS)
        files = {record: paths[0].with_name(f"{record}.csv") for record in rhythms}  # whether it is there or not
        files |= {path.stem: path for path in paths}
        return [Source(record, (files[record],), rhythms.get(record, "")) for record in sorted(files)]

    def tables(self, data_root: Path | None) -> tuple[Path, ...]:
        """Diagnostics.xlsx beside the CSV files; WFDB records carry their labels themselves."""
        folder, paths = _folder_and_tables(data_root)
        return (folder / DIAGNOSTICS,) if paths else ()

    def windows(self, source: Source) -> Windows:
        """One frame per lead, labelled by the group of the recording's rhythm."""
        if source.files[0].suffix == ".csv":
            if not is_file(source.files[0]):
                missing = f"{shorten(source.files[0])}: the recording is missing, and {DIAGNOSTICS} lists it"
                raise BadInput(f"{missing}; download it again")
            return self._windows(source, source.detail, acquired(source.record, source.files[0]), SAMPLES)
        header = read_header(source.files[0])
        require_rate(header, RATE)
        require_leads(header, LEADS)
        found = {GROUPS[SNOMED[code]] for code in diagnoses(header) if code in SNOMED}
        if len(found) > 1:
            raise BadInput(
                f"{shorten(header.path)}: rhythms of several groups ({', '.join(sorted(found))}); expected one"
            )
        rhythm = next((SNOMED[code] for code in diagnoses(header) if code in SNOMED), "")
        return self._windows(source, rhythm, None, header.samples)

    def _windows(self, source: Source, rhythm: str, time: np.datetime64 | None, samples: int) -> Windows:
        if rhythm not in GROUPS:
            what = f"rhythm {rhythm!r} is unknown" if rhythm else "no rhythm is given for this recording"
            raise BadInput(f"{shorten(source.files[0])}: {what}; expected one of {', '.join(GROUPS)}")
        label = self.classes.index(GROUPS[rhythm])
        return whole_windows(source.record, samples, SAMPLES, RATE, label, time)

    def signals(self, source: Source, windows: Windows) -> Signals:
        """The leads resampled by scipy.signal.resample; a lead with a missing sample is all NaN, and then dropped."""
        leads = read_csv(source.files[0]) if source.files[0].suffix == ".csv" else _read_wfdb(source.files[0])
        cut = np.stack(
            [leads[lead, begin : begin + SAMPLES] for lead, begin in zip(windows.leads, windows.begin, strict=True)]
        )
        ones = np.ones(len(cut), np.float32)
        return Signals(resampled(cut, FRAME_LENGTH, GRID), ones, ones * 0, recording=samples_digest(leads))

    def split(self, index: Index, seed: int) -> NDArray[np.int8]:
        """floor(.6 n), floor(.2 n), rest of the patients of each term, shuffled by the seed."""
        patients = len(index.patient_names)
        if index.times is None:
            return random_split.sixty_twenty_twenty(patients, seed)
        times = np.empty(patients, index.times.dtype)
        times[index.patients] = index.times
        return split_by_term(times, seed)


def _folder_and_tables(data_root: Path | None) -> tuple[Path, list[Path]]:
    """The publisher's folder, and its CSV files in their order; none in the WFDB edition."""
    holds = tuple(f"{place}*.csv" for place in _CSV_PLACES)
    folder = find_folder(
        data_root, DATASETS["chapman"].folders, "chapman", (*holds, "**/*.hea"), (*holds, "WFDBRecords/**/*.hea")
    )
    return folder, next((paths for pattern in holds if (paths := sorted(folder.glob(pattern)))), [])


def split_by_term(times: NDArray[np.datetime64], seed: int) -> NDArray[np.int8]:
    """The split of patients [n] from their dates of acquisition [n]: 60/20/20 in floors, within each term."""
    everybody = np.ones(len(times), bool)
    return random_split.within_groups(term_of(times, everybody, DATASETS["chapman"].terms), seed)


def acquired(record: str, path: Path) -> np.datetime64:
    """The date in a file name such as MUSE_20180113_171327_27000."""
    match = _DATED.search(record + "_")
    try:
        if match is None:
            raise ValueError
        return np.datetime64("{}-{}-{}T{}:{}:{}".format(*match.groups()), "s")
    except ValueError:
        raise BadInput(
            f"{shorten(path)}: no date in the name, expected one such as MUSE_20180113_171327_27000"
        ) from None


def _read_wfdb(path: Path) -> NDArray[np.float64]:
    """The twelve leads of a WFDB record in microvolt, [12, samples]."""
    header = read_header(path)
    stored = read_stored(header)
    return np.stack([1000 * physical(stored, header, lead) for lead in require_leads(header, LEADS)])
