"""Portions of recordings: one in its own file, or many of equal shape in an array."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared.intervals import Intervals, require_durations
from clops_sweep.data.files.filters import Filters
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.recording_facts import Samples, facts_of, flat_ends
from clops_sweep.data.records import Common, Frames, Pieces, Source, Stretch, Windows
from clops_sweep.data.same_samples import samples_digest
from clops_sweep.errors import UsageError, prefixed

STACK_BYTES: Final = 2**21
"""Samples processed at a time: they and their float64 copy fit into a processor's cache."""

SHORT: Final = "recording shorter than a frame"


@dataclass(frozen=True, eq=False)
class Columns:
    """Facts about b recordings, without samples.

    Shapes: labels [b] int64 or [b, C] uint8, None if their files contain them; times [b] datetime64[s], or None; names,
    patients, parts (the given split, or None) and each of domains and groups have b entries.
    """

    names: Sequence[str]
    patients: Sequence[str]
    labels: NDArray[Any] | None
    times: NDArray[np.datetime64] | None = None
    domains: Mapping[str, Sequence[str]] = field(default_factory=dict)
    parts: Sequence[int | None] | None = None
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    def rows(self, begin: int, end: int) -> Columns:
        """Return the recordings begin..end (end excluded)."""
        rows = slice(begin, end)
        return Columns(
            names=self.names[rows],
            patients=self.patients[rows],
            labels=None if self.labels is None else self.labels[rows],
            times=None if self.times is None else self.times[rows],
            domains={name: column[rows] for name, column in self.domains.items()},
            parts=None if self.parts is None else self.parts[rows],
            groups={name: column[rows] for name, column in self.groups.items()},
        )

    @classmethod
    def joined(cls, several: Sequence[Columns]) -> Columns:
        """Concatenate columns."""
        first = several[0]
        if len(several) == 1:
            return first
        names: list[str] = []
        patients: list[str] = []
        parts: list[int | None] = []
        domains: dict[str, list[str]] = {name: [] for name in first.domains}
        groups: dict[str, list[str]] = {name: [] for name in first.groups}
        for columns in several:
            names.extend(columns.names)
            patients.extend(columns.patients)
            parts.extend(columns.parts or ())
            for name, domain in domains.items():
                domain.extend(columns.domains[name])
            for name, group in groups.items():
                group.extend(columns.groups[name])
        labels = [columns.labels for columns in several if columns.labels is not None]
        times = [columns.times for columns in several if columns.times is not None]
        return cls(
            names=names,
            patients=patients,
            labels=None if first.labels is None else np.concatenate(labels),
            times=None if first.times is None else np.concatenate(times),
            domains=domains,
            parts=None if first.parts is None else parts,
            groups=groups,
        )


class Signal(NamedTuple):
    """All samples of b recordings of one length.

    Stored [b, channels, samples] at a sampling rate of `rate`; gain * stored + offset, [channels] each, is in units.
    `stretches` are labelled segments, if the files contain them. `missing` [b, channels, samples] marks missing samples
    of integers; those of floats are NaN. `notes` says what was assumed or changed.
    """

    stored: NDArray[Any]
    rate: float
    gain: NDArray[np.float64]
    offset: NDArray[np.float64]
    stretches: Sequence[Stretch] | None = None
    missing: NDArray[np.bool_] | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Portion(Source):
    """A portion of b recordings of a declared data set; `member` is its part in a combined one."""

    columns: Columns
    intervals: Intervals | None = None
    member: str = ""

    @abstractmethod
    def signal(self) -> Signal:
        """Return the samples."""

    def labelled(self) -> Intervals | None:
        """Return its labelled intervals, if its samples have any."""
        return self.intervals

    def where(self, common: Common) -> str:
        """Start of an error message about the samples."""
        return self.place

    def read(self, common: Common) -> Frames:
        """Return the frames of each recording, window by window and channel by channel, perhaps resampled."""
        published = self.signal()
        known = self.columns
        where = self.where(common)
        cut = common.windowing
        signal = published if common.filters is None else _filtered(common.filters, published, where)
        many, channels, samples = signal.stored.shape
        if channels != len(common.channels):
            raise UsageError(f"{where}: has {channels} channels; expected {len(common.channels)}")
        stretches = signal.stretches
        require_durations(cut.rule, [self.labelled()])
        notes = list(signal.notes)
        if self.intervals is not None:
            stretches, notes_on_intervals = self.intervals.stretches(signal.rate, samples)
            notes += notes_on_intervals
        ends = flat_ends(published.stored, published.rate)
        pieces = _pieces(signal) if cut.gaps == "split" else None
        if cut.trim == "flat":
            flat_before, flat_after = map(int, ends[0])
            whole = [(0, samples)] if pieces is None else pieces
            pieces = _between(whole, flat_before, samples - flat_after)
        begins, width, labels_of_stretches = common.windows(samples, signal.rate, stretches, pieces)
        labels = labels_of_stretches if known.labels is None else np.repeat(known.labels, len(begins), axis=0)
        dropped = {} if len(begins) else {_without_frames(stretches): many}
        if cut.rule == "beat" and stretches:
            dropped = {"beat at the edge of a recording": len(stretches) - len(begins)}
        windows = common.offered(
            np.tile(begins, many),
            labels,
            width,
            signal.rate,
            patient=known.patients,
            time=known.times,
            domains=known.domains,
            groups=known.groups,
            sizes=np.full(many, len(begins) * channels),
            dropped=dropped,
        )
        frames = _cut(common, windows, begins, signal, where)
        missing = None if frames.dtype.kind == "f" else _missing(windows, begins, signal)
        with np.errstate(over="ignore"):  # overflow to infinity in float32 is refused later
            gain = signal.gain[windows.leads].astype(np.float32)
            offset = signal.offset[windows.leads].astype(np.float32)
        facts = None
        if cut.rule != "beat":
            samples_read = Samples(
                published.stored, published.rate, published.gain, published.offset, published.missing
            )
            facts = facts_of(samples_read, known.labels, stretches, ends, cut.trim is not None)
        digests = [samples_digest(recording) for recording in published.stored]
        return Frames(windows, frames, gain, offset, missing, digests, notes, facts)


def _without_frames(stretches: Sequence[Stretch] | None) -> str:
    """Return why a recording gives no frame, from its labelled stretches, if it has any."""
    if stretches is None:
        return SHORT
    return "labelled intervals too short for a frame" if stretches else "no label that is used"


def _filtered(filters: Filters, signal: Signal, where: str) -> Signal:
    values = signal.gain[:, None] * signal.stored + signal.offset[:, None]
    if signal.missing is not None:
        values[signal.missing] = np.nan
    with prefixed(where):
        filtered = filters(values, signal.rate)
    ones = np.ones(len(signal.gain))
    return signal._replace(stored=filtered, gain=ones, offset=0 * ones, missing=None)


def _missing(windows: Windows, begins: NDArray[np.int64], signal: Signal) -> NDArray[np.bool_]:
    """Return whether each window [m] of integers has a missing sample; missing floats are NaN."""
    if signal.missing is None:
        return np.zeros(len(windows), bool)
    return np.asarray(_windowed(windows, begins, signal.missing).any(1))


def _pieces(signal: Signal) -> Pieces:
    """Return the pieces of one recording without missing samples in any channel."""
    is_there = np.isfinite(signal.stored[0]).all(0)
    if signal.missing is not None:
        is_there &= ~signal.missing[0].any(0)
    changes = np.flatnonzero(np.diff(is_there, prepend=False, append=False)).tolist()
    return list(zip(changes[::2], changes[1::2], strict=True))


def _between(pieces: Pieces, begin: int, end: int) -> Pieces:
    """Return the parts of pieces from begin to end."""
    parts = []
    for low, high in pieces:
        low, high = max(low, begin), min(high, end)
        if low < high:
            parts.append((low, high))
    return parts


def _cut(common: Common, windows: Windows, begins: NDArray[np.int64], signal: Signal, where: str) -> NDArray[Any]:
    """Return the frames [m, samples] as stored."""
    if not len(windows):
        return np.empty((0, common.windowing.frame_samples(windows.width, signal.rate)), common.stored_as)
    cut = _windowed(windows, begins, signal.stored)
    if common.windowing.keeps(signal.rate) or len(signal.stored) == 1:
        return common.frames(cut, signal.rate, where)
    of_recordings = np.split(cut, len(signal.stored))  # each has its own grid for resampled samples
    return np.concatenate([common.frames(one, signal.rate, where) for one in of_recordings])


def _windowed(windows: Windows, begins: NDArray[np.int64], values: NDArray[Any]) -> NDArray[Any]:
    """Return windows [m, width] of values [b, channels, samples]."""
    width = windows.width
    if len(begins) > 1 or width < values.shape[2]:
        values = np.stack([values[:, :, begin : begin + width] for begin in begins], axis=1)
    return values.reshape(-1, width)


@dataclass(frozen=True, eq=False, kw_only=True)
class InMemory(Portion):
    """b recordings in memory: array [b, channels, samples], gain [channels].

    `notes` says what was changed; only a recording of its own has any.
    """

    array: NDArray[Any]
    rate: float
    gain: NDArray[np.float64]
    notes: Sequence[str] = ()

    def signal(self) -> Signal:
        """The samples."""
        return Signal(self.array, self.rate, self.gain, np.zeros(len(self.gain)), notes=self.notes)

    def where(self, common: Common) -> str:
        """Start of an error message about the samples."""
        return self.place if self.files else f"dataset {common.name!r}: signals: recording {shorten(self.record)!r}"

    def portions(self, many: int) -> Iterator[Self]:
        """Yield all recordings in order, a number at a time."""
        for begin in range(0, len(self.array), many):
            columns = self.columns.rows(begin, begin + many)
            yield replace(self, names=columns.names, columns=columns, array=self.array[begin : begin + many])

    def apart(self) -> list[Source]:
        """Return every recording separately."""
        return list(self.portions(1))


def stacked(recordings: Iterable[InMemory]) -> Iterator[InMemory]:
    """Stack consecutive similar recordings, up to about `STACK_BYTES` of samples."""
    waiting: list[InMemory] = []
    for recording in recordings:
        is_full = len(waiting) * recording.array.nbytes >= STACK_BYTES
        if waiting and (is_full or not _alike(waiting[0], recording)):
            yield _joined(waiting)
            waiting = []
        waiting.append(recording)
    if waiting:
        yield _joined(waiting)


def _joined(recordings: Sequence[InMemory]) -> InMemory:
    first = recordings[0]
    if len(recordings) == 1:  # it may have intervals and notes of its own
        return first
    columns = Columns.joined([recording.columns for recording in recordings])
    array = np.concatenate([recording.array for recording in recordings])
    return InMemory(columns.names, columns=columns, array=array, rate=first.rate, gain=first.gain)


def _alike(one: InMemory, other: InMemory) -> bool:
    if one.notes or other.notes:  # they are counted by recording
        return False
    if one.intervals is not None or other.intervals is not None:
        return False
    if (one.columns.parts is None) != (other.columns.parts is None):
        return False
    if one.array.shape != other.array.shape or one.array.dtype != other.array.dtype:
        return False
    return one.rate == other.rate and np.array_equal(one.gain, other.gain)


def stored_as(dtype: np.dtype[Any], rate: float | None) -> type[np.float32] | type[np.int16]:
    """Return the type of stored samples: integers of up to 16 bits unchanged, others float32."""
    return np.int16 if rate is None and dtype.kind in "iu" and np.can_cast(dtype, np.int16) else np.float32
