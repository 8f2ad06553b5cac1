"""Small data sets in their publishers' formats, written for the tests: several patients, all labels."""

from __future__ import annotations

import csv
import functools
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.wfdb_records import load_wfdb
from clops_sweep.data.published.cardiology import CLASSES as CARDIOLOGY_CLASSES
from clops_sweep.data.published.chapman import GROUPS
from clops_sweep.data.published.chapman import SNOMED as CHAPMAN_SNOMED
from clops_sweep.data.published.physionet2020 import CLASSES, SNOMED
from clops_sweep.data.published.twelve_leads import LEADS


def _written_once(write: Callable[[Path], None]) -> Callable[[Path], None]:
    """Write files that are always equal once, and copy them for later tests."""

    @functools.cache
    def written() -> Path:
        folder = Path(tempfile.mkdtemp(prefix=f"clops-sweep-test-{os.getpid()}-"))  # conftest.py removes it
        write(folder)
        return folder

    @functools.wraps(write)
    def copied(root: Path) -> None:
        shutil.copytree(written(), root, dirs_exist_ok=True)

    return copied


def noise(*seed: int, shape: tuple[int, ...] = (6000,), scale: float = 100) -> NDArray[np.int16]:
    return np.random.default_rng(seed).normal(0, scale, shape).round().astype(np.int16)


def write_ecg(folder: Path, name: str, episodes: list[tuple[int, int, str]], samples: int = 6000) -> None:
    """Write a record of the Cardiology set: int16 samples and a file of episodes."""
    folder.mkdir(parents=True, exist_ok=True)
    noise(*map(ord, name), shape=(samples,)).astype("<i2").tofile(folder / f"{name}.ecg")
    listed = [{"onset": onset, "offset": offset, "rhythm_name": rhythm} for onset, offset, rhythm in episodes]
    content = {"reviewer_id": 7, "episodes": listed}
    (folder / f"{name}_grp3.episodes.json").write_text(json.dumps(content))


def cardiology(root: Path) -> None:
    for number, rhythm in enumerate((*CARDIOLOGY_CLASSES, "AVB_TYPE2", "AFL", "SUDDEN_BRADY") * 2):
        write_ecg(root / "cardiology", f"{number:04x}_0001", [(1, 3000, rhythm), (3001, 6000, "NSR")])


def write_challenge_record(
    folder: Path, name: str, dx: str, signal: NDArray[np.int16], rate: int = 500, leads: tuple[str, ...] = LEADS
) -> None:
    """Write a record of the PhysioNet/CinC Challenge: a MATLAB 4 matrix after a 24-byte header, a date, a #Dx: line."""
    folder.mkdir(parents=True, exist_ok=True)
    samples = signal.shape[1]
    head = np.array([30, len(leads), samples, 0, 4], "<i4").tobytes() + b"val\0"
    (folder / f"{name}.mat").write_bytes(head + np.ascontiguousarray(signal.T.astype("<i2")).tobytes())
    lines = [f"{name} {len(leads)} {rate} {samples} 05-May-2020 11:39:16"]
    for lead, values in zip(leads, signal, strict=True):
        checksum = int(values.astype(np.int64).sum() & 0xFFFF)
        first = int(values[0]) if samples else 0
        lines.append(f"{name}.mat 16+24 1000/mV 16 0 {first} {checksum} 0 {lead}")
    lines += ["#Age: 74", "#Sex: Male", f"#Dx: {dx}"]
    (folder / f"{name}.hea").write_text("\n".join(lines) + "\n")


def write_mitbih_record(
    folder: Path,
    name: str,
    rhythms: Sequence[tuple[str, float, str]],
    rate: float = 360,
    leads: Sequence[str] = ("MLII", "V1"),
    signal: NDArray[np.float64] | None = None,
) -> None:
    """Write a record of the MIT-BIH databases: two leads in format 212, rhythm notes that end in NUL.

    `rhythms`: note, seconds and the beat symbol that occurs once per second; without a symbol, rhythms alone.
    """
    wfdb = load_wfdb()
    folder.mkdir(parents=True, exist_ok=True)
    samples, symbols, notes, begin = [], [], [], 0
    for note, seconds, beat in rhythms:
        samples.append(begin + 1)
        symbols.append("+")
        notes.append(note + "\0")
        for second in range(int(seconds) if beat else 0):
            samples.append(begin + int((second + 0.5) * rate))
            symbols.append(beat)
            notes.append("")
        begin += int(seconds * rate)
    if signal is None:
        stream = np.random.default_rng([*map(ord, name)])
        signal = stream.normal(0, 0.3, (begin, len(leads)))
    with warnings.catch_warnings():  # wfdb uses deprecated functions of pandas
        warnings.simplefilter("ignore")
        wfdb.wrsamp(
            name,
            fs=rate,
            units=["mV"] * len(leads),
            sig_name=list(leads),
            p_signal=signal,
            fmt=["212"] * len(leads),
            adc_gain=[200.0] * len(leads),
            baseline=[1024] * len(leads),
            write_dir=str(folder),
        )
        wfdb.wrann(name, "atr", np.array(samples), symbols, aux_note=notes, write_dir=str(folder), fs=rate)


BY_RHYTHM = [("(N", 12, "N"), ("(AFIB", 12, "N"), ("(B", 12, "V"), ("(P", 12, "/")]
BY_BEATS = [("(N", 12, "L"), ("(SBR", 12, "R"), ("(N", 12, "V"), ("(N", 12, "A")]


@_written_once
def _eight_mitbih_records(root: Path) -> None:
    for number in range(8):
        write_mitbih_record(root / "mitdb", str(100 + number), BY_RHYTHM if number % 2 else BY_BEATS)


def small_mitbih(root: Path) -> Path:
    """Eight records of 48 s with all eight classes of `mitbih`; their splits are not among the known ones."""
    _eight_mitbih_records(root)
    return root


@_written_once
def physionet2020(root: Path) -> None:
    codes = {name: code for code, name in SNOMED.items()}
    for number, label in enumerate(CLASSES * 2):
        dx = f"{label},STE" if number < 9 and label != "STE" else codes[label]
        signal = noise(number, shape=(12, 5000 + 700 * (number % 3)))
        write_challenge_record(root / "cpsc2018", f"A{number + 1:04d}", dx, signal)


@_written_once
def chapman_wfdb(root: Path) -> None:
    for number, code in enumerate([*CHAPMAN_SNOMED] * 2):
        signal = noise(number, shape=(12, 5000))
        folder = root / "chapman" / "WFDBRecords" / "01" / f"0{10 + number // 10}"
        write_challenge_record(folder, f"JS{number + 1:05d}", f"{code},164934002", signal)
    (root / "chapman" / "ConditionNames_SNOMED-CT.csv").write_text("Acronym Name,Full Name,Snomed_CT\n")


def write_diagnostics(folder: Path, rows: list[tuple[str, str]]) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.append(["FileName", "Rhythm", "Beat"])
    for name, rhythm in rows:
        sheet.append([name, rhythm, "NONE"])
    book.save(folder / "Diagnostics.xlsx")


@_written_once
def chapman_csv(root: Path) -> None:
    folder = root / "chapman" / "ECGDataDenoised"
    folder.mkdir(parents=True)
    rows = []
    for term, day in enumerate(("20180110", "20180120", "20180301")):
        for number, rhythm in enumerate([*GROUPS]):
            name = f"MUSE_{day}_{100000 + number}_{term}000"
            values = noise(term, number, shape=(5000, 12)) / 8
            np.savetxt(folder / f"{name}.csv", values, fmt="%.5g", delimiter=",")
            rows.append((name, rhythm))
    write_diagnostics(root / "chapman", rows)


@_written_once
def ptbxl(root: Path) -> None:
    wfdb = load_wfdb()
    folder = root / "ptbxl"
    records = folder / "records500" / "00000"
    records.mkdir(parents=True)
    classes = {"NORM": "NORM", "AMI": "MI", "LVH": "HYP", "CLBBB": "CD", "NDT": "STTC"}
    with open(folder / "scp_statements.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["", "description", "diagnostic", "diagnostic_class"])
        table.writerows([[code, code, "1.0", name] for code, name in classes.items()])
        table.writerow(["SR", "sinus rhythm", "", ""])
    with open(folder / "ptbxl_database.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["ecg_id", "patient_id", "recording_date", "scp_codes", "filename_hr"])
        for number, code in enumerate([*classes] * 6):
            name = f"{number + 1:05d}_hr"
            codes = {code: 100.0, "SR": 0.0, **({"AMI": 50.0} if number % 4 == 0 else {})}
            # the last two recordings have the same patient, and one has none
            patient = "" if number == 3 else f"{min(number, 28)}.0"
            date = f"{1990 + number}-03-04 09:17:34"
            table.writerow([number + 1, patient, date, str(codes), f"records500/00000/{name}"])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wfdb.wrsamp(
                    name,
                    fs=500,
                    units=["mV"] * 12,
                    sig_name=["I", "II", "III", "AVR", "AVL", "AVF", "V1", "V2", "V3", "V4", "V5", "V6"],
                    d_signal=noise(number, shape=(5000, 12)),
                    fmt=["16"] * 12,
                    adc_gain=[1000.0] * 12,
                    baseline=[0] * 12,
                    write_dir=str(records),
                )


WRITERS = {
    "cardiology": cardiology,
    "chapman": chapman_csv,
    "chapman (WFDB)": chapman_wfdb,
    "physionet2020": physionet2020,
    "ptbxl": ptbxl,
}
