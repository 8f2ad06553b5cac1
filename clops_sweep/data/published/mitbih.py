"""`mitbih`: the MIT-BIH Arrhythmia Database, an open alternative to the Cardiology data set; and `mitbih_vfdb`.

Moody and Mark, "The impact of the MIT-BIH Arrhythmia Database", IEEE Engineering in Medicine and Biology 20(3), 2001.
Eight classes from rhythm and beat labels, in windows of 5 s of the modified lead II.

`mitbih_vfdb` adds the MIT-BIH Malignant Ventricular Ectopy Database, as a stress test.
Greenwald, "Development and analysis of a ventricular fibrillation detector", MIT, 1986. Forgetting is severe, but class
and database are confounded: ventricular tachycardia and flutter come almost only from the second database, and a
network can tell the databases apart by their sinus rhythm. So results say little about arrhythmias.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS, OptionValue, Rules
from clops_sweep.data.declared.portions import Columns
from clops_sweep.data.declared.wfdb_folder import WfdbRecord
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.files.rhythm_segments import AAMI, Segment, rhythm_segments
from clops_sweep.data.files.wfdb_records import (
    Header,
    physical,
    read_annotations,
    read_header,
    read_stored,
    require_rate,
)
from clops_sweep.data.frames import TEST, TRAINING
from clops_sweep.data.published.locate import find_folder, recording_names
from clops_sweep.data.published.sex_and_age import sex_and_age
from clops_sweep.data.records import Common, Frames, Index, Source, Windows
from clops_sweep.data.same_samples import samples_digest
from clops_sweep.data.sets.data_set import Run
from clops_sweep.data.sets.packaged_set import packaged
from clops_sweep.data.splits import random_split
from clops_sweep.data.windowing import Windowing
from clops_sweep.errors import UsageError

RATE: Final = 360.0
GRID: Final = 2.0**-16
"""Stored samples are multiples of 2^-16 mV: 1/328 of the source's step of 1/200 mV."""

_RHYTHM_CLASSES: Final = {"(AFIB": "AFIB", "(B": "BIGEMINY", "(P": "PACED", "(N": "", "(SBR": ""}
"""The class of each rhythm annotation; empty if the beats decide."""
_RHYTHMS_OF_MITDB: Final = "AB AFIB AFL B BII IVR N NOD P PREX SBR SVTA T VFL VT"
_RHYTHMS_OF_VFDB: Final = "ASYS BI HGEA NOISE NSR PM VER VF VFIB"
_KNOWN_RHYTHMS: Final = frozenset(f"({name}" for name in f"{_RHYTHMS_OF_MITDB} {_RHYTHMS_OF_VFDB}".split())
"""All rhythm annotations of the two MIT-BIH databases; others are errors."""
_RECORD_FILES: Final = ("*.hea", "*.dat")
_BEATS: Final = frozenset("NLRBAaJSVrFejnE/fQ?")
_SAME_PERSON: Final = {"202": "201"}
_SUFFIXES: Final = (".hea", ".dat", ".atr")

# The order of the tasks: AFIB-APB, BIGEMINY-NSR, LBBB-RBBB and PACED-PVC.
CLASSES: Final = ("AFIB", "APB", "BIGEMINY", "NSR", "LBBB", "RBBB", "PACED", "PVC")
LEADS: Final = ("MLII", "V5")


@dataclass(frozen=True, eq=False, kw_only=True)
class MitBihRecord(Source):
    """Windows of 5 s of MLII, or of the first lead if MLII is missing, in mV, resampled to 2500 samples.

    `rate` is the published sampling rate. `rhythms` maps annotations to classes; an empty class means that the beats
    decide. `capped` holds the windows that remain after the caps, once they are known.
    """

    window_seconds: float
    rate: float = RATE
    rhythms: Mapping[str, str] = field(default_factory=lambda: _RHYTHM_CLASSES)
    capped: Windows | None = None

    def windows(self, common: Common) -> Windows:
        """Place non-overlapping windows, each inside one rhythm (or centred on a short one), with their class."""
        header_file, _, annotation_file = self.files
        header = read_header(header_file)
        require_rate(header, self.rate)
        samples, symbols, notes = read_annotations(annotation_file, header.rate)
        _refuse_unknown_rhythms(annotation_file, symbols, notes)
        segments = rhythm_segments(samples, symbols, notes, header.samples)
        if not segments:
            raise UsageError(f"{shorten(annotation_file)}: has no rhythm annotation; download the record again")
        is_beat = np.array([symbol in _BEATS for symbol in symbols], bool)
        beat_samples = samples[is_beat]
        beats = np.array(symbols)[is_beat]
        width = round(self.window_seconds * self.rate)
        dropped = Counter[str]()
        begins = list[int]()
        labels = list[int]()
        for begin, rhythm in place_windows(segments, width, header.samples, self.rhythms):
            is_inside = (beat_samples >= begin) & (beat_samples < begin + width)
            label = window_class(rhythm, beats[is_inside], self.rhythms)
            if label in common.classes:
                begins.append(begin)
                labels.append(common.classes.index(label))
            else:
                dropped[label] += 1
        _, lead = _lead(header, common.channels)
        return Windows(
            patient=_SAME_PERSON.get(self.record, self.record),
            begin=np.array(begins, np.int64),
            leads=np.full(len(begins), lead, np.int16),
            labels=np.array(labels, np.int64),
            width=width,
            rate=self.rate,
            dropped=dropped,
            groups=_groups(header),
        )

    def read(self, common: Common) -> Frames:
        """Read millivolts, resampled by scipy.signal.resample and rounded to multiples of 2^-16 mV."""
        windows = self.windows(common) if self.capped is None else self.capped
        header = read_header(self.files[0])
        channel, _ = _lead(header, common.channels)
        stored = read_stored(header)
        volts = physical(stored, header, channel)
        frames = np.empty((len(windows), windows.width), volts.dtype)
        for row, begin in enumerate(windows.begin):
            frames[row] = volts[begin : begin + windows.width]
        return Frames.resampled(windows, frames, GRID, samples_digest(stored[:, channel]))


def _groups(header: Header) -> dict[str, str]:
    """Return sex and age from the first comment, such as "69 M 1085 1629 x1"; VFDB records have none."""
    first_comment = "".join(header.lines.comments[:1])
    age, sex, *_ = [*first_comment.split(), "", ""]
    return sex_and_age(sex, age)


def _placed(common: Common, record: MitBihRecord) -> MitBihRecord:
    """Return the record with its windows; unchanged if its files are bad, which reading it reports."""
    try:
        return replace(record, capped=record.windows(common))
    except (UsageError, OSError):
        return record


def _select(
    common: Common, records: Sequence[MitBihRecord], options: Mapping[str, OptionValue], run: Run
) -> list[MitBihRecord]:
    """Cap the windows per patient and class, and roughly per class, and spread them over each recording."""
    placed = list(run(partial(_placed, common), records))
    windows = {record.record: record.capped for record in placed if record.capped is not None}
    if not windows:
        return placed
    is_kept = keep_evenly(
        Index.of([((), of_record) for of_record in windows.values()]),
        per_patient_and_class=int(options["frames_per_patient_and_class"]),
        per_class=int(options["frames_per_class"]),
    )
    capped = dict[str, Windows]()
    end = 0
    for name, of_record in windows.items():
        begin, end = end, end + len(of_record)
        kept = np.flatnonzero(is_kept[begin:end])
        capped[name] = of_record.take(kept, "over the cap per patient and class")
    return [replace(record, capped=capped.get(record.record)) for record in placed]


def keep_evenly(index: Index, *, per_patient_and_class: int, per_class: int) -> NDArray[np.bool_]:
    """Return the mask of the frames to keep, [n] bool, for labels [n].

    Every patient keeps at most q frames of a class. q is the largest number up to `per_patient_and_class` for which
    the class has at most `per_class` frames in total (but at least 1). The kept frames are spread evenly over the
    patient's frames, so that no part of a recording is preferred.
    """
    keep = np.zeros(len(index), bool)
    for label in np.unique(index.labels):
        of_class = np.flatnonzero(index.labels == label)
        patients, counts = np.unique(index.patients[of_class], return_counts=True)
        caps = np.arange(per_patient_and_class, 0, -1)
        totals = np.minimum(counts[None, :], caps[:, None]).sum(1)
        is_small_enough = totals <= per_class
        cap = int(caps[np.argmax(is_small_enough)]) if is_small_enough.any() else 1
        for patient in patients:
            rows = of_class[index.patients[of_class] == patient]
            wanted = min(cap, len(rows))
            middles = (np.arange(wanted) + 0.5) * len(rows) / wanted  # of `wanted` equal parts of the recording
            keep[rows[middles.astype(int)]] = True
    return keep


RULES: Final = Rules(
    options={"window_seconds": 5.0, "frames_per_patient_and_class": 60, "frames_per_class": 420},
    # a recording of 30 minutes holds fewer windows than these caps, so larger caps have no effect
    limits={
        "window_seconds": (0.5, 60),
        "frames_per_patient_and_class": (1, 10_000),
        "frames_per_class": (1, 1_000_000),
    },
    split=random_split.balanced,
    select=_select,
)


@packaged("mitbih", classes=CLASSES, channels=LEADS, units="mV", rules=RULES)
def mitbih(data_root: Path | None, window_seconds: float, **_: OptionValue) -> list[Source]:
    """Find all records of the folder; reading a record reports its missing files."""
    return _records(_mitdb(data_root), window_seconds=window_seconds)


def _mitdb(data_root: Path | None) -> Path:
    """Return the folder of the arrhythmia database."""
    return find_folder(data_root, DATASETS["mitbih"].folders, "mitbih", _RECORD_FILES, _RECORD_FILES)


def _records(folder: Path, prefix: str = "", **known: Any) -> list[Source]:
    """Find the records of one of the two MIT-BIH databases; `known` holds arguments of `MitBihRecord`."""
    names = recording_names(folder)
    return [MitBihRecord((f"{prefix}{name}",), _files(folder, name), **known) for name in names]


def _files(folder: Path, name: str) -> tuple[Path, ...]:
    """Return header, signal and annotation file of a record."""
    return tuple(folder / f"{name}{suffix}" for suffix in _SUFFIXES)


def _lead(header: Header, names: Sequence[str]) -> tuple[int, int]:
    """Return the channel to read, and its position in the names of the leads."""
    channel = header.leads.index("MLII") if "MLII" in header.leads else 0
    lead = header.leads[channel]
    if lead not in names:
        raise UsageError(
            f"{shorten(header.path)}: the first lead is {lead}, expected MLII or V5; use the record as its publisher "
            "ships it"
        )
    return channel, names.index(lead)


def _refuse_unknown_rhythms(path: Path, symbols: Sequence[str], notes: Sequence[str]) -> None:
    for symbol, note in zip(symbols, notes, strict=True):
        if symbol == "+" and note not in _KNOWN_RHYTHMS:
            known = ", ".join(sorted(_KNOWN_RHYTHMS))
            raise UsageError(f"{shorten(path)}: rhythm note {note[:60]!r} is unknown; expected one of {known}")


def place_windows(
    segments: Sequence[Segment], width: int, length: int, rhythms: Mapping[str, str] = _RHYTHM_CLASSES
) -> list[tuple[int, str]]:
    """Return start and rhythm of all windows by time; none overlap.

    A segment shorter than a window that fills at least half of one gets a window centred on it. These are placed first,
    since short rhythms are the rare ones. Longer segments are tiled from their start, or from the end of such a window.
    """
    centred: list[tuple[int, str]] = []
    free_from = 0
    for segment in segments:
        size = segment.end - segment.begin
        if width > size >= width / 2 and segment.rhythm in rhythms:
            begin = (segment.begin + segment.end - width) // 2
            if begin >= free_from and begin + width <= length:
                centred.append((begin, segment.rhythm))
                free_from = begin + width
    placed = list(centred)
    for segment in segments:
        if segment.end - segment.begin < width:
            continue
        begin, end = segment.begin, segment.end
        for start, _ in centred:
            if start < segment.begin:
                begin = max(begin, start + width)
            else:
                end = min(end, start)
        placed += [(start, segment.rhythm) for start in range(begin, end - width + 1, width)]
    return sorted(placed)


def window_class(rhythm: str, beats: NDArray[np.str_], rhythms: Mapping[str, str] = _RHYTHM_CLASSES) -> str:
    """Return the class of a window, or the reason why it is dropped.

    The rhythm decides on AFIB, BIGEMINY and PACED. In normal rhythm and sinus bradycardia, the beats decide: any V
    gives PVC, else any of A, a, J, S gives APB, else all L give LBBB, all R RBBB and all N NSR.
    """
    if rhythm not in rhythms:
        return f"rhythm {rhythm[1:]}"
    if rhythms[rhythm]:
        return rhythms[rhythm]
    kinds = set(beats.tolist())
    if not kinds:
        return "no beat in the window"
    if "V" in kinds:
        return "PVC"
    if kinds & set("AaJS"):
        return "APB"
    return {"L": "LBBB", "R": "RBBB", "N": "NSR"}.get("".join(kinds), "mixture of beats")


DS1: Final = (
    101, 106, 108, 109, 112, 114, 115, 116, 118, 119, 122, 124, 201, 203, 205, 207, 208, 209, 215, 220,
    223, 230,
)  # fmt: skip
DS2: Final = (
    100, 103, 105, 111, 113, 117, 121, 123, 200, 210, 212, 213, 214, 219, 221, 222, 228, 231, 232, 233,
    234,
)  # fmt: skip
"""The inter-patient split of de Chazal, O'Dwyer and Reilly (2004), https://doi.org/10.1109/TBME.2004.827359: training
and test. The four records of paced beats are in neither. Record 202 is not in DS2 here: its person is in DS1, as 201.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class MitBihBeats(WfdbRecord):
    """A second of MLII around each beat of a record."""

    def read(self, common: Common) -> Frames:
        """Return a frame for each annotated beat."""
        return super().read(replace(common, windowing=Windowing(window=1.0, rule="beat")))


@packaged("mitbih_beats", classes=("N", "S", "V", "F"), channels=("MLII",), units="mV", rules=Rules(integers=True))
def mitbih_beats(data_root: Path | None, **_: OptionValue) -> list[Source]:
    """Find the records of `DS1` and `DS2`; the split is theirs. The few beats of unknown class are left out."""
    folder = _mitdb(data_root)
    codes = {symbol: "NSVF".index(name) for symbol, name in AAMI.items() if name != "Q"}
    records = list[Source]()
    for name in recording_names(folder):
        number = int(name) if name.isdecimal() else 0
        if number not in DS1 + DS2:
            continue
        part = TRAINING if number in DS1 else TEST
        record = MitBihBeats(
            (name,),
            _files(folder, name),
            columns=Columns([name], [name], None, parts=[part]),
            channels=("MLII",),
            named=("MLII",),
            units=("mV",),
            integers=True,
            notes=(".atr", codes),
            around_beats=True,
        )
        records.append(record)
    return records


_VFDB_RATE: Final = 250.0

_VENTRICULAR: Final = {"(VT": "VT", "(VFL": "VFL", "(VF": "VFL", "(VFIB": "VFL"}
_VFDB: Final = {
    "(AFIB": "AFIB",
    "(B": "BIGEMINY",
    "(PM": "PACED",
    "(N": "NSR",
    "(NSR": "NSR",
    "(SBR": "NSR",
    **_VENTRICULAR,
}
"""VFDB has no beat labels, so all of its normal rhythm is NSR."""


@packaged("mitbih_vfdb", classes=(*CLASSES, "VFL", "VT"), channels=(*LEADS, "ECG"), units="mV", rules=RULES)
def mitbih_vfdb(data_root: Path | None, window_seconds: float, **_: OptionValue) -> list[Source]:
    """Find all records of both folders; a fifth pair of classes is VFL (flutter and fibrillation) and VT.

    Ventricular rhythms are classes in both databases. NOISE, which overlays a rhythm, is not a class.
    """
    vfdb = vfdb_records(data_root, window_seconds)
    rhythms = _RHYTHM_CLASSES | _VENTRICULAR
    mitdb = _records(_mitdb(data_root), window_seconds=window_seconds, rhythms=rhythms)
    return [*mitdb, *vfdb]


def vfdb_records(data_root: Path | None, window_seconds: float) -> list[Source]:
    """Find the records of VFDB, which is verified alone, but only prepared as part of `mitbih_vfdb`."""
    folder = find_folder(data_root, DATASETS["mitbih_vfdb"].folders, "mitbih_vfdb", _RECORD_FILES, itself=())
    return _records(folder, "vfdb-", window_seconds=window_seconds, rate=_VFDB_RATE, rhythms=_VFDB)
