"""`mitbih`: the MIT-BIH Arrhythmia Database as the open stand-in for the Cardiology data set.

Moody and Mark, "The impact of the MIT-BIH Arrhythmia Database", IEEE Engineering in Medicine and Biology 20(3), 2001.
Eight classes from rhythm and beat labels, in windows of 5 s of the modified lead II.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.files.resampling import resampled
from clops_sweep.data.files.rhythm_segments import Segment, rhythm_segments
from clops_sweep.data.files.wfdb_records import (
    Header,
    physical,
    read_annotations,
    read_header,
    read_stored,
    require_rate,
)
from clops_sweep.data.frames import FRAME_LENGTH
from clops_sweep.data.published.locate import find_folder, recording_names
from clops_sweep.data.reader import Index, Reader, Signals, Source, Windows
from clops_sweep.data.same_samples import samples_digest
from clops_sweep.data.splits.balance import keep_evenly
from clops_sweep.data.splits.known_splits import known_split
from clops_sweep.data.splits.split_program import balanced_split, uncovered_classes
from clops_sweep.errors import BadInput

RATE: Final = 360.0
GRID: Final = 2.0**-16
"""Stored samples are multiples of 2^-16 mV: 1/328 of the source's step of 1/200 mV."""

RHYTHM_CLASSES: Final = {"(AFIB": "AFIB", "(B": "BIGEMINY", "(P": "PACED", "(N": "", "(SBR": ""}
"""The class of each rhythm note; empty where the beats decide."""
KNOWN_RHYTHMS: Final = frozenset(
    f"({name}"
    for name in (
        *("AB", "AFIB", "AFL", "B", "BII", "IVR", "N", "NOD", "P", "PREX", "SBR", "SVTA", "T", "VFL", "VT"),
        *("ASYS", "BI", "HGEA", "NOISE", "NSR", "PM", "VER", "VF", "VFIB"),
    )
)
"""All rhythm notes of the two MIT-BIH databases, those of the arrhythmia database first: any other is a mistake."""
RECORD_FILES: Final = ("*.hea", "*.dat")
_BEATS: Final = frozenset("NLRBAaJSVrFejnE/fQ?")
_SAME_PERSON: Final = {"202": "201"}


class MitBih(Reader):
    """MLII where it was recorded, else the first lead; 5 s windows resampled from 1800 to 2500 samples, mV."""

    name = "mitbih"
    unit = "mV"
    # In the order of the tasks, which are the pairs AFIB-APB, BIGEMINY-NSR, LBBB-RBBB and PACED-PVC.
    classes: tuple[str, ...] = ("AFIB", "APB", "BIGEMINY", "NSR", "LBBB", "RBBB", "PACED", "PVC")
    lead_names: tuple[str, ...] = ("MLII", "V5")
    options: ClassVar = {"window_seconds": 5.0, "frames_per_patient_and_class": 60, "frames_per_class": 420}
    # A window holds a few beats and fits many times into a recording of half an hour; caps beyond these cap nothing.
    limits: ClassVar = {
        "window_seconds": (0.5, 60),
        "frames_per_patient_and_class": (1, 10_000),
        "frames_per_class": (1, 1_000_000),
    }

    def find(self, data_root: Path | None) -> list[Source]:
        """All records of the folder; what is missing of one is reported when it is read."""
        folder = find_folder(data_root, DATASETS["mitbih"].folders, "mitbih", RECORD_FILES, RECORD_FILES)
        return [
            Source(name, tuple(folder / f"{name}{suffix}" for suffix in (".hea", ".dat", ".atr")))
            for name in recording_names(folder)
        ]

    def windows(self, source: Source) -> Windows:
        """Windows that do not overlap, each inside one rhythm (or centred on a short one), with their class."""
        header = read_header(source.files[0])
        require_rate(header, self.rate(source))
        samples, symbols, notes = read_annotations(source.files[2])
        _refuse_unknown_rhythms(source.files[2], symbols, notes)
        segments = rhythm_segments(samples, symbols, notes, header.samples)
        if not segments:
            raise BadInput(f"{shorten(source.files[2])}: notes no rhythm; download the record again")
        is_beat = np.array([symbol in _BEATS for symbol in symbols], bool)
        beat_samples, beats = samples[is_beat], np.array(symbols)[is_beat]
        width = self.width(source)
        dropped: Counter[str] = Counter()
        begins, labels = [], []
        for begin, rhythm in place_windows(segments, width, header.samples, self.rhythms(source)):
            inside = beats[(beat_samples >= begin) & (beat_samples < begin + width)]
            label = window_class(rhythm, inside, self.rhythms(source))
            if label in self.classes:
                begins.append(begin)
                labels.append(self.classes.index(label))
            else:
                dropped[label] += 1
        count = len(begins)
        return Windows(
            patient=_SAME_PERSON.get(source.record, source.record),
            begin=np.array(begins, np.int64),
            length=np.full(count, width, np.int64),
            start=np.array(begins, np.float64) / self.rate(source),
            leads=np.full(count, self._lead(header)[1], np.int16),
            labels=np.array(labels, np.int64),
            dropped=dropped,
        )

    def rate(self, source: Source) -> float:
        """Samples per second that the record is published with."""
        return RATE

    def rhythms(self, source: Source) -> Mapping[str, str]:
        """Rhythm notes that are a class by themselves; an empty class name means: by beats."""
        return RHYTHM_CLASSES

    def width(self, source: Source) -> int:
        """Samples in a window."""
        return round(float(self.chosen["window_seconds"]) * self.rate(source))

    def select(self, index: Index) -> tuple[NDArray[np.bool_], Mapping[str, int]]:
        """At most so many frames per patient and class and about so many per class, evenly over each recording."""
        keep = keep_evenly(
            index,
            per_patient_and_class=int(self.chosen["frames_per_patient_and_class"]),
            per_class=int(self.chosen["frames_per_class"]),
        )
        return keep, {"over the cap per patient and class": int((~keep).sum())}

    def signals(self, source: Source, windows: Windows) -> Signals:
        """Millivolt, resampled by scipy.signal.resample and rounded to multiples of 2^-16 mV."""
        header = read_header(source.files[0])
        channel, _ = self._lead(header)
        stored = read_stored(header)
        volts = physical(stored, header, channel)
        cut = np.stack([volts[begin : begin + self.width(source)] for begin in windows.begin])
        ones = np.ones(len(cut), np.float32)
        recording = samples_digest(stored[:, channel])
        return Signals(resampled(cut, FRAME_LENGTH, GRID), ones, ones * 0, recording=recording)

    def split(self, index: Index, seed: int) -> NDArray[np.int8]:
        """The integer programme of `balanced_split` on frames per patient and class."""
        known = self.quick_split(index, seed)
        return balanced_split(index.counts_per_patient(len(self.classes)), seed) if known is None else known

    def quick_split(self, index: Index, seed: int) -> NDArray[np.int8] | None:
        """What the programme has found before for these very counts, if it has."""
        return known_split(index.counts_per_patient(len(self.classes)), seed)

    def notes(self, index: Index, split: NDArray[np.int8]) -> list[str]:
        """Which classes cannot be in every split, for too few patients have them."""
        missing = uncovered_classes(index.counts_per_patient(len(self.classes)), split)
        return [
            f"class {self.classes[code]} is not in the {' and '.join(parts)} split: too few patients have it"
            for code, parts in missing.items()
        ]

    def _lead(self, header: Header) -> tuple[int, int]:
        """The channel that is read, and its position in `lead_names`."""
        channel = header.leads.index("MLII") if "MLII" in header.leads else 0
        if header.leads[channel] not in self.lead_names:
            raise BadInput(
                f"{shorten(header.path)}: the first lead is {header.leads[channel]}, expected MLII or V5; "
                "use the record as its publisher ships it"
            )
        return channel, self.lead_names.index(header.leads[channel])


def _refuse_unknown_rhythms(path: Path, symbols: Sequence[str], notes: Sequence[str]) -> None:
    for symbol, note in zip(symbols, notes, strict=True):
        if symbol == "+" and note not in KNOWN_RHYTHMS:
            raise BadInput(
                f"{shorten(path)}: rhythm note {note[:60]!r} is unknown; expected one of "
                f"{', '.join(sorted(KNOWN_RHYTHMS))}"
            )


def place_windows(
    segments: Sequence[Segment], width: int, length: int, rhythms: Mapping[str, str] = RHYTHM_CLASSES
) -> list[tuple[int, str]]:
    """Begin and rhythm of all windows, in order of time, none overlapping another.

    A segment shorter than a window that fills at least half of one gets a window centred on it; those are placed
    first, as short rhythms are the rare ones. Longer segments are tiled from their begin, or from where such a
    window ends.
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
        begin = max([segment.begin, *(other + width for other, _ in centred if other < segment.begin)])
        end = min([segment.end, *(other for other, _ in centred if other >= segment.begin)])
        placed += [(start, segment.rhythm) for start in range(begin, end - width + 1, width)]
    return sorted(placed)


def window_class(rhythm: str, beats: NDArray[np.str_], rhythms: Mapping[str, str] = RHYTHM_CLASSES) -> str:
    """The class of a window, or the reason why it is dropped.

    AFIB, BIGEMINY and PACED by rhythm. In normal rhythm and sinus bradycardia by beats: any V is PVC, else any of
    A, a, J, S is APB, else all L is LBBB, all R is RBBB, all N is NSR.
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
