"""Portions of recordings: one in its own file, or many of equal shape in an array."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared.intervals import Intervals, require_durations
from clops_sweep.data.files.filters import Filters
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.recording_facts import Samples, facts_of, flat_ends
from clops_sweep.data.records import Common, Frames, Source, Stretch, Windows
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
        part = slice(begin, end)
        return Columns(
            self.names[part],
            self.patients[part],
            None if self.labels is None else self.labels[part],
            None if self.times is None else self.times[part],
            {name: column[part] for name, column in self.domains.items()},
            None if self.parts is None else self.parts[part],
            {name: column[part] for name, column in self.groups.items()},
        )

    @classmethod
    def joined(cls, each: Sequence[Columns]) -> Columns:
        """Concatenate columns."""
        first = each[0]
        return first if len(each) == 1 else cls(
            list(chain.from_iterable(one.names for one in each)),
            list(chain.from_iterable(one.patients for one in each)),
            None if first.labels is None else np.concatenate([one.labels for one in each if one.labels is not None]),
            None if first.times is None else np.concatenate([one.times for one in each if one.times is not None]),
            {name: list(chain.from_iterable(one.domains[name] for one in each)) for name in first.domains},
            None if first.parts is None else [part for one in each for part in one.parts or ()],
            {name: list(chain.from_iterable(one.groups[name] for one in each)) for name in first.groups},
        )  # fmt: skip


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
        published, known, where = self.signal(), self.columns, self.where(common)
        cut = common.windowing
        signal = published if common.filters is None else _filtered(common.filters, published, where)
        many, channels, samples = signal.stored.shape
        if channels != len(common.channels):
            raise UsageError(f"{where}: has {channels} channels; expected {len(common.channels)}")
        stretches = signal.stretches
        require_durations(cut.rule, [self.labelled()])
        notes = list(signal.notes)
        if self.intervals is not None:
            stretches, said = self.intervals.stretches(signal.rate, samples)
            notes += said
        ends = flat_ends(published.stored, published.rate)
        pieces = _pieces(signal) if cut.gaps == "split" else None
        if cut.trim == "flat":
            pieces = _between([(0, samples)] if pieces is None else pieces, int(ends[0, 0]), samples - int(ends[0, 1]))
        begins, width, noted = common.windows(samples, signal.rate, stretches, pieces)
        labels = noted if known.labels is None else np.repeat(known.labels, len(begins), axis=0)
        dropped = {} if len(begins) else {_without_frames(stretches): many}
        if cut.rule == "beat" and stretches:
            dropped = {"beat at the edge of a recording": len(stretches) - len(begins)}
        windows = common.offered(
            np.tile(begins, many), labels, width, signal.rate,
            patient=known.patients, time=known.times, domains=known.domains, groups=known.groups,
            sizes=np.full(many, len(begins) * channels),
            dropped=dropped,
        )  # fmt: skip
        frames = _cut(common, windows, begins, signal, where)
        missing = None  # NaN in float32
        if frames.dtype.kind != "f":
            missing = np.zeros(len(windows), bool)
            if signal.missing is not None:
                missing = np.asarray(_windowed(windows, begins, signal.missing).any(1))
        with np.errstate(over="ignore"):  # overflow to infinity in float32 is refused later
            gain, offset = (each[windows.leads].astype(np.float32) for each in (signal.gain, signal.offset))
        facts = None
        if cut.rule != "beat":
            samples_read = Samples(
                published.stored, published.rate, published.gain, published.offset, published.missing
            )
            facts = facts_of(samples_read, known.labels, stretches, ends, cut.trim is not None)
        digest = samples_digest(published.stored) if self.files or self.member else None
        return Frames(windows, frames, gain, offset, missing, digest, notes, facts)


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
        found = filters(values, signal.rate)
    ones = np.ones(len(signal.gain))
    return signal._replace(stored=found, gain=ones, offset=0 * ones, missing=None)


def _pieces(signal: Signal) -> list[tuple[int, int]]:
    """Return begin and end of each piece of one recording without missing samples in any channel."""
    known = np.isfinite(signal.stored[0]).all(0)
    if signal.missing is not None:
        known &= ~signal.missing[0].any(0)
    ends = np.flatnonzero(np.diff(known, prepend=False, append=False))
    return [(int(begin), int(end)) for begin, end in zip(ends[::2], ends[1::2], strict=True)]


def _between(pieces: Sequence[tuple[int, int]], begin: int, end: int) -> list[tuple[int, int]]:
    """Return the parts of pieces from begin to end."""
    cut = [(max(low, begin), min(high, end)) for low, high in pieces]
    return [(low, high) for low, high in cut if low < high]


def _cut(common: Common, windows: Windows, begins: NDArray[np.int64], signal: Signal, where: str) -> NDArray[Any]:
    """Return the frames [m, samples] as stored."""
    if not len(windows):
        return np.empty((0, common.windowing.frame_samples(windows.width, signal.rate)), common.stored_as)
    cut, many = _windowed(windows, begins, signal.stored), len(signal.stored)
    # Each recording has its own grid for resampled samples.
    pieces = [cut] if common.windowing.keeps(signal.rate) or many == 1 else np.split(cut, many)
    frames = [common.frames(piece, signal.rate, where) for piece in pieces]
    return frames[0] if len(frames) == 1 else np.concatenate(frames)


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
    for each in recordings:
        if waiting and (not _alike(waiting[0], each) or len(waiting) * each.array.nbytes >= STACK_BYTES):
            yield _joined(waiting)
            waiting = []
        waiting.append(each)
    if waiting:
        yield _joined(waiting)


def _joined(each: Sequence[InMemory]) -> InMemory:
    first = each[0]
    if len(each) == 1:  # it may have intervals and notes of its own
        return first
    columns = Columns.joined([one.columns for one in each])
    array = np.concatenate([one.array for one in each])
    return InMemory(columns.names, columns=columns, array=array, rate=first.rate, gain=first.gain)


def _alike(one: InMemory, other: InMemory) -> bool:
    same_form = one.array.shape == other.array.shape and one.array.dtype == other.array.dtype and one.rate == other.rate
    same_columns = (one.columns.parts is None) == (
        other.columns.parts is None
    ) and one.intervals is other.intervals is None
    if one.notes or other.notes:  # they are counted by recording
        return False
    return same_form and same_columns and np.array_equal(one.gain, other.gain)


def stored_as(dtype: np.dtype[Any], rate: float | None) -> type[np.float32] | type[np.int16]:
    """Return the type of stored samples: integers of up to 16 bits unchanged, others float32."""
    return np.int16 if rate is None and dtype.kind in "iu" and np.can_cast(dtype, np.int16) else np.float32
