"""Sources of recordings, and the frames that are read from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.folder import shorten
from clops_sweep.data.files.resampling import resampled
from clops_sweep.data.frames import FRAME_LENGTH
from clops_sweep.errors import UsageError


class EveryRecordFails(UsageError):
    """An error that leaving a record out would not mend."""


OnError = Literal["stop", "skip"]
"""What becomes of a record that cannot be read."""

MOST_SAMPLES = 2**26
"""Samples of the longest frame: it and its spectrum then fit into memory."""

_STEPS = 19
"""Resampled samples are multiples of the greatest power of two that is 2^-19 of the recording's largest one or less."""


class Stretch(NamedTuple):
    """Samples begin..end (end excluded) of a recording that carry one label, a position in the classes."""

    begin: int
    end: int
    label: int


@dataclass(frozen=True)
class Common:
    """What all recordings of a data set share.

    `window` and `stride` are in seconds, None for recordings that are a frame each; `rate` is what frames are resampled
    to, samples a second, None for what they were sampled with. `stored_as` is the type of stored samples. `left_out`
    counts recordings that are not used, by reason. `name` is the data set's.
    """

    classes: tuple[str, ...]
    channels: tuple[str, ...]
    units: str
    multi_label: bool = False
    stored_as: type[np.float32] | type[np.int16] = np.float32
    window: float | None = None
    stride: float | None = None
    rate: float | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    name: str = ""

    def windows(self, samples: int, rate: float, label: Any) -> tuple[NDArray[np.int64], int, list[Any]]:
        """Begins [m] of the windows of a recording, their length in samples, and the label of each.

        A window begins every `stride`, from where the recording, or a stretch of one label, begins; what is left at the
        end, and too short for a window, is left out.

        Raises:
            EveryRecordFails: frames would be shorter than 2 samples or too long, or the stride less than a sample.
        """
        width = samples if self.window is None else round(self.window * rate)
        stride = width if self.stride is None else round(self.stride * rate)
        for argument, count in (
            ("signals" if self.window is None else "window_seconds", width),
            ("resample_to", self.frame_samples(width, rate)),
        ):
            if not 2 <= count <= MOST_SAMPLES:
                raise self.refused(
                    f"{argument}: frames of {count:,} samples come of it at {rate:g} samples a second; expected 2 to "
                    f"{MOST_SAMPLES:,}"
                )
        if stride < 1:
            raise self.refused(f"stride_seconds: {self.stride:g} is less than a sample at {rate:g} samples a second")
        stretches: Sequence[Stretch] = label if isinstance(label, list) else [Stretch(0, samples, label)]
        found = [
            (begin, stretch.label)
            for stretch in stretches
            for begin in range(stretch.begin, min(stretch.end, samples) - width + 1, stride)
        ]
        return np.array([begin for begin, _ in found], np.int64), width, [label for _, label in found]

    def offered(self, begins: NDArray[np.int64], labels: Any, width: int, rate: float, **more: Any) -> Windows:
        """All channels of windows [k], moment by moment; labels [k] or [k, C], `more` as in `Windows`."""
        count, channels = len(begins), len(self.channels)
        shape = (0, len(self.classes)) if self.multi_label else (0,)
        kind = np.uint8 if self.multi_label else np.int64
        return Windows(
            begin=np.repeat(begins, channels),
            leads=np.tile(np.arange(channels, dtype=np.int16), count),
            labels=np.repeat(np.asarray(labels, kind), channels, axis=0) if count else np.zeros(shape, kind),
            width=width,
            rate=rate,
            **more,
        )

    def refused(self, what: str) -> EveryRecordFails:
        """An error that all recordings have in common; it begins with the data set."""
        return EveryRecordFails(f"dataset {self.name!r}: {what}")

    def keeps(self, rate: float) -> bool:
        """Whether recordings of a sampling rate are not resampled."""
        return self.rate is None or self.rate == rate

    def frame_samples(self, width: int, rate: float) -> int:
        """Samples of a frame, from those of its window."""
        return width if self.keeps(rate) else max(1, round(width * (self.rate or rate) / rate))

    def frames(self, cut: NDArray[Any], rate: float, where: str) -> NDArray[Any]:
        """Windows [m, samples] of one recording as they are stored, all channels of each moment together.

        Raises:
            UsageError: samples are not finite, or too small for float32; begins with `where`.
        """
        self._require_finite(cut, where)
        if self.keeps(rate):
            with np.errstate(over="ignore", under="ignore"):
                frames = np.asarray(cut, self.stored_as)
            if not frames.any() and cut.any():
                raise UsageError(f"{where}: has samples that float32 rounds to 0; expected another unit")
        else:
            peak = float(np.abs(np.asarray(cut, np.float64)).max()) or 1.0
            target = self.frame_samples(cut.shape[1], rate)
            frames = resampled(cut, target, 2.0 ** (np.floor(np.log2(peak)) - _STEPS))
        if frames is not cut:
            self._require_finite(frames, where)
        return frames

    def _require_finite(self, values: NDArray[Any], where: str) -> None:
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            rows = np.flatnonzero(~np.isfinite(values).all(1))
            channel = self.channels[int(rows[0]) % len(self.channels)]
            raise UsageError(
                f"{where}: channel {channel} has samples that are NaN, infinite or missing; repair the recording or "
                "leave it out"
            )


@dataclass(frozen=True, eq=False)
class Source(ABC):
    """What is read at a time: one recording, or several that are in memory.

    Attributes:
        names: of its recordings.
        files: that hold it; empty in memory.
        tables: that describe it, if any; the first one lists it.
    """

    names: Sequence[str]
    files: tuple[Path, ...] = ()
    tables: tuple[Path, ...] = ()

    @property
    def record(self) -> str:
        """The name of its first recording."""
        return self.names[0]

    @property
    def origin(self) -> Path | str:
        """Its first file, or its name."""
        return self.files[0] if self.files else self.record

    @property
    def place(self) -> str:
        """The same, as messages show it."""
        return shorten(self.origin)

    @property
    def signal_file(self) -> Path | None:
        """The file with the samples; None where nothing is read from a file."""
        return next((file for file in self.files if file.suffix in (".dat", ".mat", ".ecg", ".csv")), None)

    @abstractmethod
    def read(self, common: Common) -> Frames:
        """Its frames.

        Raises:
            UsageError: it cannot be read, or is not as it should be.
        """

    def apart(self) -> list[Source]:
        """A source for every recording, as each is read when there is a bad one."""
        return [self]


@dataclass(frozen=True, eq=False, kw_only=True)
class Windows:
    """Which m frames one source has, and what is known of them beside their samples.

    Shapes: begin [m] int64, first sample in the recording; leads [m] int16; labels [m] int64 or [m, C] uint8. All have
    `width` samples, `rate` of them a second. `time` is the date of acquisition; `dropped` counts by reason;
    `domains` are what else domain_il may go by, such as a site; `groups` are columns for subgroups in reports. Where
    the source stands for r recordings, `sizes` [r] are the frames of each, and `patient`, `time` [r] datetime64[s] and
    each of `domains` and `groups` have r entries.
    """

    patient: str | Sequence[str]
    begin: NDArray[np.int64]
    leads: NDArray[np.int16]
    labels: NDArray[Any]
    width: int
    rate: float
    time: np.datetime64 | NDArray[np.datetime64] | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    domains: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    groups: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    sizes: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def start(self) -> NDArray[np.float64]:
        """Seconds from the begin of the recording [m]."""
        return self.begin / self.rate

    def take(self, rows: NDArray[np.int64], reason: str) -> Self:
        """The given windows of one recording alone; the others are dropped for a reason."""
        dropped = Counter(self.dropped) + Counter({reason: len(self) - len(rows)})
        return replace(self, begin=self.begin[rows], leads=self.leads[rows], labels=self.labels[rows], dropped=dropped)

    def cut(self, stored: NDArray[Any]) -> NDArray[Any]:
        """The samples of the windows [m, width], of a recording [leads, samples]."""
        pairs = zip(self.leads, self.begin, strict=True)
        cut = [stored[lead, begin : begin + self.width] for lead, begin in pairs]
        return np.stack(cut) if cut else np.empty((0, self.width), stored.dtype)


@dataclass(frozen=True, eq=False)
class Frames:
    """The m frames of one source.

    Shapes: stored [m, samples] (float32 with NaN where nothing was recorded, or int16), gain and offset [m] float32, so
    that gain * stored + offset is in the data set's unit; missing [m] says which frames lack samples where integers
    cannot, and is None for float32. `recording` stands for all samples of the leads that are read, as the publisher
    stored them: two records with the same one are one recording (`same_samples.samples_digest`).
    """

    windows: Windows
    stored: NDArray[Any]
    gain: NDArray[np.float32]
    offset: NDArray[np.float32]
    missing: NDArray[np.bool_] | None = None
    recording: bytes | None = None

    def __len__(self) -> int:
        return len(self.stored)

    @classmethod
    def resampled(cls, windows: Windows, cut: NDArray[Any], grid: float, recording: bytes) -> Frames:
        """Windows [m, width] in units, as frames of `FRAME_LENGTH` samples that are multiples of `grid`."""
        ones = np.ones(len(cut), np.float32)
        stored = resampled(cut, FRAME_LENGTH, grid) if len(cut) else np.empty((0, FRAME_LENGTH), np.float32)
        return cls(windows, stored, ones, ones * 0, recording=recording)


@dataclass(frozen=True, eq=False)
class Index:
    """All n frames of a data set, without their samples: one entry per frame in every array.

    Shapes: patients [n] int32 into patient_names; records [n] int32 into record_names; leads [n] int16; start [n]
    float64, seconds; labels [n] int64 or [n, C] uint8; times [n] datetime64[s], or None; each of domains and groups [n]
    int32 into its names. No run depends on groups, which reports alone look at.
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
    groups: Mapping[str, tuple[NDArray[np.int32], tuple[str, ...]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.patients)

    @classmethod
    def of(cls, read: Sequence[tuple[Sequence[str], Windows]]) -> Index:
        """All windows, record after record, from the records' names; patients and domains are numbered by name."""
        windows = [each for _, each in read]
        people: list[str] = []
        sizes: list[int] = []
        times: list[Any] = []
        domains: dict[str, list[str]] = {name: [] for name in windows[0].domains}
        groups: dict[str, list[str]] = {name: [] for name in windows[0].groups}
        for each in windows:
            people.extend([each.patient] if isinstance(each.patient, str) else each.patient)
            sizes.extend([len(each)] if each.sizes is None else each.sizes.tolist())
            times.extend([None] if each.time is None else np.atleast_1d(each.time))
            for columns, values in ((domains, each.domains), (groups, each.groups)):
                for name, column in columns.items():
                    value = values[name]
                    column.extend([value] if isinstance(value, str) else value)
        patient_names = tuple(sorted(set(people)))
        codes = {name: code for code, name in enumerate(patient_names)}
        known = all(time is not None for time in times)
        return cls(
            patient_names,
            tuple(chain.from_iterable(names for names, _ in read)),
            np.repeat(np.array([codes[name] for name in people], np.int32), sizes),
            np.repeat(np.arange(len(people), dtype=np.int32), sizes),
            np.concatenate([w.leads for w in windows]).astype(np.int16),
            np.concatenate([w.start for w in windows]).astype(np.float64),
            np.concatenate([w.labels for w in windows]),
            np.repeat(np.array(times, "datetime64[s]"), sizes) if known else None,
            {name: _numbered(column, sizes) for name, column in domains.items()},
            {name: _numbered(column, sizes) for name, column in groups.items()},
        )

    def of_rows(self, rows: NDArray[np.int64]) -> Index:
        """The given frames alone, under the names of those patients, records and domains that they have."""
        if len(rows) == len(self):
            return self
        patients, patient_names = _in_use(self.patients[rows], self.patient_names)
        records, record_names = _in_use(self.records[rows], self.record_names)
        return Index(
            patient_names,
            record_names,
            patients,
            records,
            self.leads[rows],
            self.start[rows],
            self.labels[rows],
            None if self.times is None else self.times[rows],
            {name: _in_use(codes[rows], names) for name, (codes, names) in self.domains.items()},
            {name: _in_use(codes[rows], names) for name, (codes, names) in self.groups.items()},
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
    """Codes [n] of the used names alone, in their order."""
    used, again = np.unique(codes, return_inverse=True)
    return again.astype(np.int32), tuple(names[code] for code in used)


def _numbered(values: Sequence[str], sizes: Sequence[int]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """The value of every frame [n] as a position in the sorted names, from that of every record."""
    names, codes = np.unique(np.array(values), return_inverse=True)
    return np.repeat(codes.astype(np.int32), sizes), tuple(map(str, names))
