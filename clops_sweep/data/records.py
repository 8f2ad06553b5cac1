"""Sources of recordings, and the frames read from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.filters import Filters
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.files.resampling import at_rate
from clops_sweep.data.frames import FRAME_LENGTH
from clops_sweep.data.left_out import Collected
from clops_sweep.data.windowing import Windowing
from clops_sweep.errors import UsageError

if TYPE_CHECKING:
    from clops_sweep.data.recording_facts import Facts


class EveryRecordFails(UsageError):
    """An error that is no fault of a record, such as a missing package, so that skipping records does not help."""


OnError = Literal["stop", "skip"]
"""What to do about a record that cannot be read."""

MOST_SAMPLES = 2**26
"""Largest number of samples per frame, so that a frame and its spectrum fit into memory."""

_STEPS = 19
"""Resampled samples are rounded to a power of two: the largest that is at most 2^-19 of the recording's largest sample.
"""


def resampled(signal: NDArray[Any], length: int, grid: float) -> NDArray[np.float32]:
    """Apply `scipy.signal.resample` (Fourier method) along the last axis, rounded to multiples of `grid`, float32.

    Published data sets are resampled like this, as by the paper; own data by `at_rate`. The Fourier method takes each
    frame as periodic: a constant stays constant, but a jump from the frame's end to its start rings at both ends. NaN
    anywhere in a row makes the whole row NaN.

    Args:
        signal: [..., samples].
        length: number of samples of the result.
        grid: a power of two, in the unit of the signal.
    """
    from scipy.signal import resample

    return _on_multiples(resample(np.asarray(signal, np.float64), length, axis=-1), grid)


def _on_multiples(signal: NDArray[np.float64], grid: float) -> NDArray[np.float32]:
    """Round resampled samples to multiples of a power of two, float32.

    The grid is far finer than the source's resolution. It makes frames, and therefore the data hash, equal on machines
    whose transforms and filters differ in the last bit.
    """
    with np.errstate(over="ignore"):  # overflow becomes infinite: such a frame is dropped like one with missing samples
        return np.asarray(np.rint(signal / grid) * grid, np.float32)


Pieces = Sequence[tuple[int, int]]
"""Parts of a recording, each as first sample and end (excluded)."""

_Placed = list[tuple[int, Any]]
"""First sample and label of windows."""


class Stretch(NamedTuple):
    """Samples begin..end (end excluded) of a recording with one label, an index into the classes."""

    begin: int
    end: int
    label: int


@dataclass(frozen=True)
class Common:
    """Settings of all recordings of a data set.

    Attributes:
        classes: names of the classes.
        channels: names of the channels.
        units: unit of the samples, after the filters.
        multi_label: whether a recording may have several labels.
        stored_as: type of stored samples.
        windowing: how recordings are cut into frames.
        left_out: what is left out.
        name: name of the data set.
        filters: filters of whole recordings.
        markers: what to do about a channel that looks like triggers.
        notes: sentences about all recordings.
        people_given: whether recordings of a table name their people; otherwise each counts as a person.
        people_column: the column of a table that names them; None without one.
        dates_of_headers: whether dates are from headers, which may be anonymized.
    """

    classes: tuple[str, ...]
    channels: tuple[str, ...]
    units: str
    multi_label: bool = False
    stored_as: type[np.float32] | type[np.int16] = np.float32
    windowing: Windowing = field(default_factory=Windowing)
    left_out: Collected = field(default_factory=Collected)
    name: str = ""
    filters: Filters | None = None
    markers: Literal["refuse", "keep"] = "refuse"
    notes: tuple[str, ...] = ()
    people_given: bool = True
    people_column: str | int | None = None
    dates_of_headers: bool = False

    def windows(
        self, samples: int, rate: float, label: Any, pieces: Pieces | None = None
    ) -> tuple[NDArray[np.int64], int, list[Any]]:
        """Return the starts [m] of the windows of a recording, their length in samples, and the label of each.

        Windows begin every `stride`, starting where the recording, a piece between two gaps, or a stretch of one label
        begins; a shorter rest at the end is left out. By another rule than "within", only pieces count, and stretches
        decide on the label of each window; or a window lies around the start of each stretch.

        Raises:
            EveryRecordFails: frames would be shorter than 2 samples or too long, or the stride less than a sample.
        """
        cut = self.windowing
        width = samples if cut.window is None else round(cut.window * rate)
        stride = width if cut.stride is None else round(cut.stride * rate)
        self._require_size("signals" if cut.window is None else "window_seconds", width, rate)
        self._require_size("resample_to", cut.frame_samples(width, rate), rate)
        if stride < 1:
            raise self.refused(f"stride_seconds: {cut.stride:g} is less than a sample at {rate:g} samples a second")
        stretches: Sequence[Stretch] = label if isinstance(label, list) else [Stretch(0, samples, label)]
        whole = [(0, samples)] if pieces is None else pieces
        if cut.rule == "beat":
            placed = _around(stretches, whole, width)
        elif cut.rule == "within" or not isinstance(label, list):
            placed = _within(stretches, whole, width, stride)
        else:
            grid = _grid(whole, width, stride)
            decided = zip(grid, self._decided(stretches, grid, width), strict=True)
            placed = [(begin, code) for begin, code in decided if code >= 0]
        begins = np.array([begin for begin, _ in placed], np.int64)
        return begins, width, [label for _, label in placed]

    def _require_size(self, argument: str, count: int, rate: float) -> None:
        if not 2 <= count <= MOST_SAMPLES:
            raise self.refused(
                f"{argument}: gives frames of {count:,} samples at {rate:g} samples a second; expected 2 to "
                f"{MOST_SAMPLES:,}"
            )

    def _decided(self, stretches: Sequence[Stretch], grid: Sequence[int], width: int) -> Iterator[int]:
        """Yield the label of each window: of most of it, or the first class that it contains; -1 without."""
        begins = np.array([stretch.begin for stretch in stretches], np.int64)
        ends = np.array([stretch.end for stretch in stretches], np.int64)
        by_majority = self.windowing.rule == "majority"
        for begin in grid:
            first = int(np.searchsorted(ends, begin, "right"))
            last = int(np.searchsorted(begins, begin + width))
            share = np.zeros(len(self.classes), np.int64)
            for stretch in stretches[first:last]:
                share[stretch.label] += min(stretch.end, begin + width) - max(stretch.begin, begin)
            chosen = int(np.argmax(share if by_majority else share > 0))
            least = width if by_majority else 0
            yield chosen if 2 * share[chosen] > least else -1

    def offered(self, begins: NDArray[np.int64], labels: Any, width: int, rate: float, **more: Any) -> Windows:
        """Return all channels of k windows, moment by moment; labels [k] or [k, C], `more` as in `Windows`."""
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
        """Return an error that all recordings have in common; it begins with the data set."""
        return EveryRecordFails(f"dataset {self.name!r}: {what}")

    def frames(self, cut: NDArray[Any], rate: float, where: str) -> NDArray[Any]:
        """Return windows [m, samples] of one recording as stored, all channels of each moment together.

        Raises:
            UsageError: samples are too small for float32, or no integers of 16 bits; the message begins with `where`.
        """
        if self.windowing.keeps(rate):
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                frames = np.asarray(cut, self.stored_as)
            if frames.dtype.kind == "i" and frames.dtype != cut.dtype and (frames != cut).any():
                raise UsageError(
                    f"{where}: is of {cut.dtype}; expected whole numbers of 16 bits, as the first recording has, or "
                    "floats in all"
                )
            if not frames.any() and cut.any():
                raise UsageError(f"{where}: has samples that float32 rounds to 0; expected another unit")
        else:
            sizes = np.abs(np.asarray(cut, np.float64))
            peak = float(sizes.max(initial=0, where=np.isfinite(sizes))) or 1.0
            step = 2.0 ** (np.floor(np.log2(peak)) - _STEPS)
            target = self.windowing.frame_samples(cut.shape[1], rate)
            resampled_frames = at_rate(cut, rate, self.windowing.rate or rate, target)
            frames = _on_multiples(resampled_frames, step)
        return frames


def _around(stretches: Sequence[Stretch], pieces: Pieces, width: int) -> _Placed:
    """Return a window around the start of each stretch, if it lies in a piece."""
    placed: _Placed = []
    for stretch in stretches:
        begin = stretch.begin - width // 2
        if any(low <= begin <= high - width for low, high in pieces):
            placed.append((begin, stretch.label))
    return placed


def _within(stretches: Sequence[Stretch], pieces: Pieces, width: int, stride: int) -> _Placed:
    """Return the windows inside a stretch and a piece."""
    placed: _Placed = []
    for stretch in stretches:
        for low, high in pieces:
            first = max(stretch.begin, low)
            end = min(stretch.end, high)
            placed += [(begin, stretch.label) for begin in range(first, end - width + 1, stride)]
    return placed


def _grid(pieces: Pieces, width: int, stride: int) -> list[int]:
    """Return the first samples of the windows inside a piece."""
    begins: list[int] = []
    for low, high in pieces:
        begins += range(low, high - width + 1, stride)
    return begins


@dataclass(frozen=True, eq=False)
class Source(ABC):
    """The unit of reading: one recording, or several that are in memory.

    Attributes:
        names: names of its recordings.
        files: files that hold it; empty if in memory.
        tables: tables that describe it, if any; the first one lists it.
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
        """Its first file, or else the name of its first recording."""
        return self.files[0] if self.files else self.record

    @property
    def place(self) -> str:
        """`origin` as messages show it."""
        return shorten(self.origin)

    @property
    def signal_file(self) -> Path | None:
        """The file with the samples; None if there is no such file."""
        return next((file for file in self.files if file.suffix in (".dat", ".mat", ".ecg", ".csv")), None)

    @abstractmethod
    def read(self, common: Common) -> Frames:
        """Return its frames.

        Raises:
            UsageError: it cannot be read, or is invalid.
        """

    def apart(self) -> list[Source]:
        """Return a source for each recording, to find the bad ones."""
        return [self]


@dataclass(frozen=True, eq=False, kw_only=True)
class Windows:
    """Position and metadata of the m frames of one source.

    Shapes: begin [m] int64, first sample in the recording; leads [m] int16; labels [m] int64 or [m, C] uint8. Each
    frame has `width` samples, at `rate` samples per second. `time` is the date of acquisition; `dropped` counts dropped
    frames by reason; `domains` are columns for domain_il, such as a site; `groups` are columns for subgroups in
    reports. If the source holds r recordings, `sizes` [r] is the number of frames of each, and `patient`, `time` [r]
    datetime64[s] and each of `domains` and `groups` have r entries.
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
        """Seconds from the start of the recording to each window [m]."""
        return self.begin / self.rate

    def take(self, rows: NDArray[np.int64], reason: str) -> Self:
        """Return the given windows of one recording; the others count as dropped for a reason."""
        dropped = Counter(self.dropped) + Counter({reason: len(self) - len(rows)})
        return replace(self, begin=self.begin[rows], leads=self.leads[rows], labels=self.labels[rows], dropped=dropped)

    def cut(self, stored: NDArray[Any]) -> NDArray[Any]:
        """Return the samples [m, width] of the windows, from a recording [leads, samples]."""
        frames = []
        for lead, begin in zip(self.leads, self.begin, strict=True):
            frames.append(stored[lead, begin : begin + self.width])
        return np.stack(frames) if frames else np.empty((0, self.width), stored.dtype)


@dataclass(frozen=True, eq=False)
class Frames:
    """The m frames of one source.

    Shapes: stored [m, samples] (int16, or float32 with NaN for missing samples), gain and offset [m] float32, so that
    gain * stored + offset is in the data set's unit; missing [m] marks int16 frames with missing samples, and is None
    for float32. `recordings` are digests of the publisher's samples (`same_samples.samples_digest`), one for each
    recording: those with equal digests are the same recording. `notes` says what was assumed or changed on reading.
    `facts` may tell labels without a network.
    """

    windows: Windows
    stored: NDArray[Any]
    gain: NDArray[np.float32]
    offset: NDArray[np.float32]
    missing: NDArray[np.bool_] | None = None
    recordings: Sequence[bytes] = ()
    notes: Sequence[str] = ()
    facts: Facts | None = None

    def __len__(self) -> int:
        return len(self.stored)

    @classmethod
    def resampled(cls, windows: Windows, cut: NDArray[Any], grid: float, recording: bytes) -> Frames:
        """Return windows [m, width] in units as frames of `FRAME_LENGTH` samples that are multiples of `grid`."""
        ones = np.ones(len(cut), np.float32)
        stored = resampled(cut, FRAME_LENGTH, grid) if len(cut) else np.empty((0, FRAME_LENGTH), np.float32)
        return cls(windows, stored, ones, ones * 0, recordings=[recording])


@dataclass(frozen=True, eq=False)
class Index:
    """All n frames of a data set without their samples, one entry per frame in every array.

    Shapes: patients [n] int32 into patient_names; records [n] int32 into record_names; leads [n] int16; start [n]
    float64, seconds; labels [n] int64 or [n, C] uint8; times [n] datetime64[s], or None; each of domains and groups [n]
    int32 into its names. Only reports read groups.
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
        """Return all windows, record after record; patients and domains are numbered by name."""
        sources = [windows for _, windows in read]
        records: list[str] = []
        people: list[str] = []
        sizes: list[int] = []
        times: list[Any] = []
        domains: dict[str, list[str]] = {name: [] for name in sources[0].domains}
        groups: dict[str, list[str]] = {name: [] for name in sources[0].groups}
        for names, windows in read:
            records.extend(names)
            people.extend([windows.patient] if isinstance(windows.patient, str) else windows.patient)
            sizes.extend([len(windows)] if windows.sizes is None else windows.sizes.tolist())
            times.extend([None] if windows.time is None else np.atleast_1d(windows.time))
            _extend(domains, windows.domains)
            _extend(groups, windows.groups)
        patient_names = tuple(sorted(set(people)))
        code_of = {name: code for code, name in enumerate(patient_names)}
        codes = np.array([code_of[name] for name in people], np.int32)
        are_dated = all(time is not None for time in times)
        return cls(
            patient_names=patient_names,
            record_names=tuple(records),
            patients=np.repeat(codes, sizes),
            records=np.repeat(np.arange(len(people), dtype=np.int32), sizes),
            leads=np.concatenate([windows.leads for windows in sources]).astype(np.int16),
            start=np.concatenate([windows.start for windows in sources]).astype(np.float64),
            labels=np.concatenate([windows.labels for windows in sources]),
            times=np.repeat(np.array(times, "datetime64[s]"), sizes) if are_dated else None,
            domains={name: _numbered(column, sizes) for name, column in domains.items()},
            groups={name: _numbered(column, sizes) for name, column in groups.items()},
        )

    def of_rows(self, rows: NDArray[np.int64]) -> Index:
        """Return the given frames, with only those names of patients, records and domains that they use."""
        if len(rows) == len(self):
            return self
        patients, patient_names = _in_use(self.patients[rows], self.patient_names)
        records, record_names = _in_use(self.records[rows], self.record_names)
        return Index(
            patient_names=patient_names,
            record_names=record_names,
            patients=patients,
            records=records,
            leads=self.leads[rows],
            start=self.start[rows],
            labels=self.labels[rows],
            times=None if self.times is None else self.times[rows],
            domains={name: _in_use(codes[rows], names) for name, (codes, names) in self.domains.items()},
            groups={name: _in_use(codes[rows], names) for name, (codes, names) in self.groups.items()},
        )

    def counts_per_patient(self, classes: int) -> NDArray[np.int64]:
        """Return the number of frames of each patient and class, [patients, classes]."""
        people = len(self.patient_names)
        if self.labels.ndim == 1:
            cells = self.patients.astype(np.int64) * classes + self.labels
            return np.bincount(cells, minlength=people * classes).reshape(people, classes)
        counts = np.zeros((people, classes), np.int64)
        np.add.at(counts, self.patients, self.labels.astype(np.int64))
        return counts


def _extend(columns: Mapping[str, list[str]], values: Mapping[str, str | Sequence[str]]) -> None:
    """Add the values of one source to columns: one value, or one for each of its recordings."""
    for name, column in columns.items():
        value = values[name]
        column.extend([value] if isinstance(value, str) else value)


def _in_use(codes: NDArray[np.int32], names: tuple[str, ...]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Return codes [n] and names without the unused names, in the same order."""
    used, again = np.unique(codes, return_inverse=True)
    return again.astype(np.int32), tuple(names[code] for code in used)


def _numbered(values: Sequence[str], sizes: Sequence[int]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Return for each frame [n] the index of its value in the sorted names, from the value of each record."""
    names, codes = np.unique(np.array(values), return_inverse=True)
    return np.repeat(codes.astype(np.int32), sizes), tuple(map(str, names))
