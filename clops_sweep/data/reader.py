"""Reader: the contract between a data set as its publisher ships it and the one way in which it is prepared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS
from clops_sweep.errors import BadInput

OptionValue = int | float | str | bool


class EveryRecordFails(BadInput):
    """An error that leaving a record out would not mend."""


OnError = Literal["stop", "skip"]
"""What becomes of a record that cannot be read."""


@dataclass(frozen=True)
class Source:
    """One record as it lies under the data root: its name, the files that make it, and what its reader adds.

    `listed_in` is the table that names the record, where it is a table and not the files that say which there are.
    `records` are the names where it stands for several, which are read together, and `record` is the first of them.
    """

    record: str
    files: tuple[Path, ...] = ()
    detail: Any = None
    listed_in: Path | None = None
    records: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Of all its records."""
        return self.records or (self.record,)

    @property
    def signal_file(self) -> Path | None:
        """The file with the samples; None where nothing is read from a file."""
        return next((file for file in self.files if file.suffix in (".dat", ".mat", ".ecg", ".csv")), None)


@dataclass(frozen=True, eq=False)
class Windows:
    """The m frames that one record offers, known before its signal is read.

    Shapes: begin [m] int64, first sample in the record; length [m] int64, samples; start [m] float64, seconds; leads
    [m] int16; labels [m] int64 or [m, C] uint8. `time` is the date of acquisition; `dropped` counts by reason;
    `domains` are what else domain_il may go by, such as a site. Where the source stands for r records, `sizes` [r] are
    the frames of each, and `patient`, `time` [r] datetime64[s] and each of `domains` have r entries.
    """

    patient: str | Sequence[str]
    begin: NDArray[np.int64]
    length: NDArray[np.int64]
    start: NDArray[np.float64]
    leads: NDArray[np.int16]
    labels: NDArray[Any]
    time: np.datetime64 | NDArray[np.datetime64] | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    domains: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    sizes: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.begin)

    def take(self, rows: NDArray[np.int64]) -> Windows:
        """The given windows of one record alone; what was dropped before stays counted where it was."""
        return Windows(
            self.patient,
            self.begin[rows],
            self.length[rows],
            self.start[rows],
            self.leads[rows],
            self.labels[rows],
            self.time,
            domains=self.domains,
        )


@dataclass(frozen=True, eq=False)
class Signals:
    """Frames of one record.

    Shapes: stored [m, samples] (float32 with NaN where nothing was recorded, or int16), gain and offset [m] float32, so
    that gain * stored + offset is in the reader's unit; missing [m] says which frames lack samples where integers
    cannot, and is None for float32. `recording` stands for all samples of the leads that are read, as the publisher
    stored them: two records with the same one are one recording (`same_samples.samples_digest`). They are written later
    on by another thread: a reader makes new arrays for every record.
    """

    stored: NDArray[Any]
    gain: NDArray[np.float32]
    offset: NDArray[np.float32]
    missing: NDArray[np.bool_] | None = None
    recording: bytes | None = None


@dataclass(frozen=True, eq=False)
class Index:
    """All n frames of a data set, without their samples: one entry per frame in every array.

    Shapes: patients [n] int32 into patient_names; records [n] int32 into record_names; leads [n] int16; start [n]
    float64, seconds; labels [n] int64 or [n, C] uint8; times [n] datetime64[s], or None; each of domains [n] int32 into
    its names.
    """

    patient_names: tuple[str, ...]
    record_names: tuple[str, ...]
    patients: NDArray[np.int32]
    records: NDArray[np.int32]
    leads: NDArray[np.int16]
    start: NDArray[np.float64]
    labels: NDArray[Any]
    times: NDArray[np.datetime64] | None
    domains: Mapping[str, tuple[NDArray[np.int32], tuple[str, ...]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.patients)

    def take(self, rows: NDArray[Any]) -> Index:
        """The given frames alone, under the same patient and record names."""
        return Index(
            self.patient_names,
            self.record_names,
            self.patients[rows],
            self.records[rows],
            self.leads[rows],
            self.start[rows],
            self.labels[rows],
            None if self.times is None else self.times[rows],
            {name: (codes[rows], names) for name, (codes, names) in self.domains.items()},
        )

    def of_rows(self, rows: NDArray[np.int64]) -> Index:
        """The given frames alone, under the names of those patients, records and domains that they have."""
        if len(rows) == len(self):
            return self
        part = self.take(rows)
        patients, patient_names = _in_use(part.patients, self.patient_names)
        records, record_names = _in_use(part.records, self.record_names)
        domains = {name: _in_use(codes, names) for name, (codes, names) in part.domains.items()}
        return replace(
            part,
            patients=patients,
            patient_names=patient_names,
            records=records,
            record_names=record_names,
            domains=domains,
        )

    def counts_per_patient(self, classes: int) -> NDArray[np.int64]:
        """Frames of every patient and class, [patients, classes]."""
        people = len(self.patient_names)
        if self.labels.ndim == 1:
            cells = self.patients.astype(np.int64) * classes + self.labels
            return np.bincount(cells, minlength=people * classes).reshape(people, classes)
        counts = np.zeros((people, classes), np.int64)
        np.add.at(counts, self.patients, self.labels.astype(np.int64))
        return counts


def _in_use(codes: NDArray[np.int32], names: tuple[str, ...]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Codes [n] of those names alone that they use, in the order of before."""
    used, again = np.unique(codes, return_inverse=True)
    return again.astype(np.int32), tuple(names[code] for code in used)


class Reader(ABC):
    """How one data set is read. Every method is deterministic; bad files raise BadInput with one sentence.

    A record goes through `find` (is it there), `windows` (which frames, which labels: cheap, no signal), `select`
    (over all records: caps) and `signals` (the samples). `split` then assigns patients.
    """

    name: str
    unit: str
    classes: tuple[str, ...]
    lead_names: tuple[str, ...]
    stored_as: type[np.float32] | type[np.int16] = np.float32
    version: ClassVar[int] = 1
    """Raised when the same files would give other frames than before: older prepared folders count as absent."""
    reads_files: ClassVar[bool] = True
    tolerates_dead_leads: ClassVar[bool] = False
    """Whether a lead without any usable frame is only dropped and counted, as it is common in this data set."""
    keeps_channels_together: ClassVar[bool] = False
    """Whether a flat line is kept as long as another lead of the moment is none; rows are then moment by moment."""
    tolerates_repeats: ClassVar[bool] = False
    """Whether a record with the samples of an earlier one is kept and noted, as the publisher ships some.

    Under --on-error skip it is left out all the same."""
    options: ClassVar[Mapping[str, OptionValue]] = {}
    """The options of this reader with their defaults."""
    limits: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """The least and the greatest value of every option that is a number."""

    def __init__(self, chosen: Mapping[str, OptionValue] | None = None) -> None:
        for key in chosen or {}:
            if key not in self.options:
                known = ", ".join(self.options) or "none"
                raise BadInput(f"{self.name} has no option {key!r}; its options: {known}")
        self.chosen: dict[str, OptionValue] = {**self.options, **(chosen or {})}
        for key, (least, most) in self.limits.items():
            value, kind = self.chosen[key], type(self.options[key])
            # Neither a truth value nor one that is not a number, which is neither below nor above anything.
            if isinstance(value, bool | str) or not least <= value <= most or kind(value) != value:
                what = "a whole number" if kind is int else "a number"
                raise BadInput(
                    f"{self.name}: option {key} is {value!r}, expected {what} from {least:,} to {most:,}, "
                    f"as in --option {key}={self.options[key]}"
                )
            self.chosen[key] = kind(value)

    sampling_rate: float | None = None
    """Samples a second of the frames, where it is known."""
    given_split: bool = False
    """Whether the split is the publisher's, and the same for every split seed."""

    @property
    def parallel(self) -> bool:
        """Whether several processes may read records at a time, each with a copy of this reader."""
        return self.reads_files and self.name not in DATASETS.added

    @abstractmethod
    def find(self, data_root: Path | None) -> list[Source]:
        """The records under `data_root` in a fixed order; BadInput where there is none."""

    def look(self, data_root: Path | None) -> None:
        """Sees whether the data set is there; BadInput where it is not."""
        self.find(data_root)

    def file_key(self, file: Path) -> str:
        """The key of a source file in the manifest."""
        return file.name

    def tables(self, data_root: Path | None) -> tuple[Path, ...]:
        """Files that frames are made from beside those of the records, such as a table of labels."""
        return ()

    @abstractmethod
    def windows(self, source: Source) -> Windows:
        """The frames a record offers, with labels."""

    @abstractmethod
    def signals(self, source: Source, windows: Windows) -> Signals:
        """The samples of the given windows of a record."""

    def apart(self, source: Source) -> list[Source]:
        """A source for every record of one that stands for several, as each is read when there is a bad one."""
        return [source]

    @abstractmethod
    def split(self, index: Index, seed: int) -> NDArray[np.int8]:
        """TRAINING, VALIDATION or TEST for every patient, [patients] int8."""

    def quick_split(self, index: Index, seed: int) -> NDArray[np.int8] | None:
        """The same as `split` where that is a matter of milliseconds; None where it takes a solver.

        Looks at patients, labels, leads and times only, so that opening a set need not read its table.
        """
        return self.split(index, seed)

    def select(self, index: Index) -> tuple[NDArray[np.bool_], Mapping[str, int]]:
        """Which of all offered frames to keep [n] bool, and how many go for which reason."""
        return np.ones(len(index), bool), {}

    def too_few(self, index: Index, dropped: Mapping[str, int]) -> str | None:
        """Why these frames are not enough to work with, if so. `dropped` counts the others by reason."""
        return None

    def notes(self, index: Index, split: NDArray[np.int8]) -> list[str]:
        """What a user should know about the prepared set, one sentence each."""
        return []
