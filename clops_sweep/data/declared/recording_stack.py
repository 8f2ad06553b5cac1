"""Recordings of one shape in one array, with a column for each of their fields: handled many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared.recording_items import InMemory, Item

STACK_BYTES: Final = 2**21
"""Samples that are handled at a time: they and their float64 copy stay within a processor's cache."""

_SAMPLED: Final = 16
_NOTHING: Final = bytes(16)
"""In the place of any sample."""


@dataclass(frozen=True, eq=False)
class Stack:
    """b recordings at hand, of one length and one rate.

    Shapes: array [b, channels, samples]; gain [channels]; labels [b] int64 or [b, C] uint8; times [b] datetime64[s], or
    None; names, patients, parts and each of domains have b entries.
    """

    names: Sequence[str]
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

    def portion(self, begin: int, end: int) -> Stack:
        """Recordings begin..end (end excluded)."""
        part = slice(begin, end)
        return Stack(
            self.names[part],
            self.patients[part],
            self.labels[part],
            self.array[part],
            self.rate,
            self.gain,
            None if self.times is None else self.times[part],
            {name: column[part] for name, column in self.domains.items()},
            None if self.parts is None else self.parts[part],
        )

    def portions(self) -> Iterator[Stack]:
        """All recordings in their order, about `STACK_BYTES` of samples at a time."""
        many = max(1, STACK_BYTES // self.array[0].nbytes)
        for begin in range(0, len(self), many):
            yield self.portion(begin, begin + many)

    def outline(self) -> Outline:
        """What is kept of them while their samples are not at hand."""
        step = max(1, self.array.shape[2] // _SAMPLED)
        marks = _marks(np.ascontiguousarray(self.array[:, :, ::step]).reshape(len(self), -1).view(np.uint8))
        absent = np.ndarray(self.array.shape, self.array.dtype, _NOTHING, strides=(0, 0, 0))
        outlined = Stack(
            self.names, self.patients, self.labels, absent, self.rate, self.gain, self.times, self.domains, self.parts
        )
        return Outline(outlined, marks)

    @classmethod
    def of(cls, items: Sequence[Item], arrays: Sequence[InMemory]) -> Stack:
        """Recordings of the same shape and type, one after the other."""
        first = items[0]
        return cls(
            [item.name for item in items],
            [item.patient for item in items],
            np.array([item.label for item in items]),
            arrays[0].array[None] if len(items) == 1 else np.stack([each.array for each in arrays]),
            arrays[0].rate,
            arrays[0].gain,
            None if first.time is None else np.array([item.time for item in items]),
            {name: [item.domains[name] for item in items] for name in first.domains},
            None if first.part is None else [item.part for item in items if item.part is not None],
        )


@dataclass(frozen=True, eq=False)
class Outline:
    """A stack without its samples, and a mark of some samples of each recording, by which two calls are compared."""

    stack: Stack
    marks: NDArray[np.uint64]

    def portion(self, begin: int, end: int) -> Outline:
        """Recordings begin..end (end excluded)."""
        return Outline(self.stack.portion(begin, end), self.marks[begin:end])

    def first_change(self, other: Outline) -> int | None:
        """The first recording that is not the same in both; None where all are."""
        if (self.stack.array.shape[1:], self.stack.array.dtype) != (
            other.stack.array.shape[1:],
            other.stack.array.dtype,
        ):
            return 0
        if self._columns() == other._columns():
            return None
        for place, (mine, its) in enumerate(zip(self._rows(), other._rows(), strict=False)):
            if mine != its:
                return place
        shorter = min(len(self.stack), len(other.stack))
        return None if len(self.stack) == len(other.stack) else min(shorter, len(self.stack) - 1)

    def _columns(self) -> list[Sequence[Any]]:
        stack, nothing = self.stack, [None] * len(self.stack)
        columns: list[Sequence[Any]] = [stack.names, stack.patients, stack.labels.tolist(), self.marks.tolist()]
        columns += [nothing if stack.times is None else stack.times.tolist(), stack.parts or nothing]
        return [*columns, *stack.domains.values()]

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        return zip(*self._columns(), strict=True)


def _marks(content: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """A mark of each row of bytes [b, k]: its words of eight bytes, each times an odd number of its own, modulo 2^64.

    Where one word is another, so is the sum; where several are, as good as always.
    """
    words = content
    if content.shape[1] % 8:
        words = np.zeros((len(content), -(-content.shape[1] // 8) * 8), np.uint8)
        words[:, : content.shape[1]] = content
    found: NDArray[np.uint64] = (words.view(np.uint64) * _factors(words.shape[1] // 8)).sum(1, dtype=np.uint64)
    return found


@lru_cache(maxsize=64)
def _factors(count: int) -> NDArray[np.uint64]:
    return np.random.default_rng(0).integers(0, 2**63, count, dtype=np.uint64) * 2 + 1


def stacked(items: Iterable[Item]) -> Iterator[Item | Stack]:
    """Recordings in memory in stacks, as long as one is like the one before; those in files as they are."""
    waiting: list[Item] = []
    arrays: list[InMemory] = []
    for item in items:
        held = item.samples if isinstance(item.samples, InMemory) else None
        if waiting and (
            held is None or not _alike(waiting[0], item) or len(waiting) * held.array.nbytes >= STACK_BYTES
        ):
            yield Stack.of(waiting, arrays)
            waiting, arrays = [], []
        if held is None:
            yield item
        else:
            waiting.append(item)
            arrays.append(held)
    if waiting:
        yield Stack.of(waiting, arrays)


def _alike(one: Item, other: Item) -> bool:
    mine, its = one.samples, other.samples
    assert isinstance(mine, InMemory)
    assert isinstance(its, InMemory)
    same_form = mine.array.shape == its.array.shape and mine.array.dtype == its.array.dtype and mine.rate == its.rate
    return same_form and (one.part is None) == (other.part is None) and np.array_equal(mine.gain, its.gain)
