"""Recordings of one shape in one array, with a column for each of their fields: handled many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, Final, Protocol, Self
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared.file_recording import SHORT, as_signals
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.records import Common, Signals, Source, Windows

STACK_BYTES: Final = 2**21
"""Samples that are handled at a time: they and their float64 copy stay within a processor's cache."""

_SAMPLED: Final = 16
_NOTHING: Final = bytes(16)
"""In the place of any sample."""


@dataclass(frozen=True, eq=False, kw_only=True)
class InMemory(Source):
    """b recordings at hand, of one length and one rate.

    Shapes: array [b, channels, samples]; gain [channels]; labels [b] int64 or [b, C] uint8; times [b] datetime64[s], or
    None; names, patients, parts and each of domains have b entries.
    """

    patients: Sequence[str]
    labels: NDArray[Any]
    array: NDArray[Any]
    rate: float
    gain: NDArray[np.float64]
    times: NDArray[np.datetime64] | None = None
    domains: Mapping[str, Sequence[str]] = field(default_factory=dict)
    parts: Sequence[int] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def portion(self, begin: int, end: int) -> Self:
        """Recordings begin..end (end excluded)."""
        part = slice(begin, end)
        return replace(
            self,
            names=self.names[part],
            patients=self.patients[part],
            labels=self.labels[part],
            array=self.array[part],
            times=None if self.times is None else self.times[part],
            domains={name: column[part] for name, column in self.domains.items()},
            parts=None if self.parts is None else self.parts[part],
        )

    def portions(self) -> Iterator[Self]:
        """All recordings in their order, about `STACK_BYTES` of samples at a time."""
        many = max(1, STACK_BYTES // self.array[0].nbytes)
        for begin in range(0, len(self), many):
            yield self.portion(begin, begin + many)

    def apart(self) -> list[Source]:
        """Every recording by itself."""
        return [self.portion(place, place + 1) for place in range(len(self))]

    def windows(self, common: Common) -> Windows:
        """Window by window of each recording, channel after channel."""
        begins, width, _ = common.windows(self.array.shape[2], self.rate, None)
        return common.offered(
            np.tile(begins, len(self)), np.repeat(self.labels, len(begins), axis=0), width, self.rate,
            patient=self.patients, time=self.times, domains=self.domains,
            sizes=np.full(len(self), len(begins) * len(common.channels)),
            dropped={} if len(begins) else {SHORT: len(self)},
        )  # fmt: skip

    def signals(self, common: Common, windows: Windows) -> Signals:
        """The samples as they are, or resampled."""
        width, where = windows.width, f"dataset {common.name!r}: signals: recording {shorten(self.record)!r}"
        begins = windows.begin[: len(windows) // len(self) : len(common.channels)]
        whole = width == self.array.shape[2] and len(begins) == 1
        parts = [self.array] if whole else [self.array[:, :, begin : begin + width] for begin in begins]
        cut = (parts[0] if whole else np.stack(parts, axis=1)).reshape(-1, width)
        # Each recording has a grid of its own that resampled samples are multiples of.
        pieces = [cut] if common.keeps(self.rate) or len(self) == 1 else np.split(cut, len(self))
        frames = [common.frames(piece, self.rate, where) for piece in pieces]
        joined = frames[0] if len(frames) == 1 else np.concatenate(frames)
        return as_signals(joined, windows, self.gain, np.zeros(len(self.gain)), None)

    @classmethod
    def of(cls, each: Sequence[InMemory]) -> InMemory:
        """Recordings that are alike, one after the other."""
        first = each[0]
        if len(each) == 1:
            return first
        return replace(
            first,
            names=[one.record for one in each],
            patients=[one.patients[0] for one in each],
            labels=np.concatenate([one.labels for one in each]),
            array=np.concatenate([one.array for one in each]),
            times=None if first.times is None else np.concatenate([one.times for one in each if one.times is not None]),
            domains={name: [one.domains[name][0] for one in each] for name in first.domains},
            parts=None if first.parts is None else [part for one in each for part in one.parts or ()],
        )


class Again(Protocol):
    """What gives recordings once more."""

    def samples(self, outline: Outline) -> InMemory:
        """The recordings of an outline, with their samples."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Outline(InMemory):
    """The same without the samples, which `function` gives again.

    They are those from `begin` on of the `whole` recordings that it gives at `turn`. `marks` [b] are checksums of some
    samples of each recording, by which two calls are compared.
    """

    function: Again
    turn: int
    begin: int
    whole: int
    marks: Sequence[int]

    @classmethod
    def made(cls, held: InMemory, function: Again, turn: int) -> Outline:
        """What is kept of recordings while their samples are not at hand."""
        step = max(1, held.array.shape[2] // _SAMPLED)
        marks = [crc32(sampled) for sampled in np.ascontiguousarray(held.array[:, :, ::step])]
        absent = np.ndarray(held.array.shape, held.array.dtype, _NOTHING, strides=(0, 0, 0))
        columns = {**vars(held), "array": absent}
        return cls(**columns, function=function, turn=turn, begin=0, whole=len(held), marks=marks)

    def portion(self, begin: int, end: int) -> Self:
        """Recordings begin..end (end excluded)."""
        return replace(super().portion(begin, end), begin=self.begin + begin, marks=self.marks[begin:end])

    def signals(self, common: Common, windows: Windows) -> Signals:
        """The samples of another call."""
        return self.function.samples(self).signals(common, windows)

    def first_change(self, other: Outline) -> int | None:
        """The first recording that is not the same in both, which are as many; None where all are."""
        pairs = zip(self._rows(), other._rows(), strict=True)
        return next((place for place, (mine, its) in enumerate(pairs) if mine != its), None)

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        form, nothing = (self.array.shape[1:], self.array.dtype), repeat(None)
        times = nothing if self.times is None else self.times.tolist()
        columns = (self.names, self.patients, self.labels.tolist(), self.marks, *self.domains.values())
        return zip(*columns, times, self.parts or nothing, repeat(form), strict=False)


def stacked(recordings: Iterable[InMemory]) -> Iterator[InMemory]:
    """Recordings put together as long as one is like the one before."""
    waiting: list[InMemory] = []
    for each in recordings:
        if waiting and (not _alike(waiting[0], each) or len(waiting) * each.array.nbytes >= STACK_BYTES):
            yield InMemory.of(waiting)
            waiting = []
        waiting.append(each)
    if waiting:
        yield InMemory.of(waiting)


def _alike(one: InMemory, other: InMemory) -> bool:
    same_form = one.array.shape == other.array.shape and one.array.dtype == other.array.dtype and one.rate == other.rate
    return same_form and (one.parts is None) == (other.parts is None) and np.array_equal(one.gain, other.gain)
