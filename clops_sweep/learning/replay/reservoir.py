"""Reservoir that is filled during an epoch. Its contents at every step are computed before the epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clops_sweep.learning.replay.mini_batches import subsets


@dataclass(frozen=True)
class Contents:
    """Contents of a reservoir (Vitter, 1985).

    The t-th instance offered, from 0, goes into place t while there is room. Later it goes into a place j drawn from
    0 .. t if j is below the capacity, and is dropped otherwise.

    Attributes:
        stored: int64 [m], the instance at each place.
        offered: number of instances offered so far.
        capacity: maximum number of instances.
    """

    stored: NDArray[np.int64]
    offered: int
    capacity: int


@dataclass(frozen=True)
class ReservoirEpoch:
    """Epoch of one run: each step draws from the reservoir, and then its batch is offered.

    Attributes:
        replayed: int64 [steps, sets, M], the instances that each step replays.
        drawn: int64 [steps, sets, M], places of the replayed instances.
        places: int64 [steps, largest size], new places of the instances of each batch; `capacity` for instances that
            are dropped or overwritten within the batch, and as padding of smaller batches.
        after: the reservoir after the epoch.
    """

    replayed: NDArray[np.int64]
    drawn: NDArray[np.int64]
    places: NDArray[np.int64]
    after: Contents

    @classmethod
    def of(
        cls,
        before: Contents,
        new: NDArray[np.int64],
        sizes: Sequence[int],
        *,
        sets: int,
        count: int,
        offering: np.random.Generator,
        replaying: np.random.Generator,
    ) -> ReservoirEpoch:
        """Return all random draws of an epoch.

        Args:
            before: the reservoir before the epoch.
            new: int64 [n], the epoch's instances in their order.
            sizes: sizes of the epoch's batches.
            sets: number of mini-batches that each step draws, independently of each other.
            count: M, number of instances in each mini-batch, at most m.
            offering: generator for the places of offered instances.
            replaying: generator for the mini-batches.
        """
        capacity = before.capacity
        steps = len(sizes)
        ends = np.cumsum(sizes)
        starts = ends - sizes
        places = _places_by_batch(_places(before, len(new), offering), sizes, capacity)
        sizes_at_steps = np.minimum(before.offered + starts, capacity)
        drawn = subsets(replaying, sizes_at_steps.repeat(sets), count).reshape(steps, sets, count)
        stored = np.zeros(capacity + 1, np.int64)  # the last place takes dropped instances
        stored[: len(before.stored)] = before.stored
        replayed = np.empty_like(drawn)
        for step, (start, end) in enumerate(zip(starts, ends, strict=True)):
            stored.take(drawn[step], out=replayed[step], mode="clip")  # the only mode that does not copy `out`
            stored[places[step, : end - start]] = new[start:end]
        offered = before.offered + len(new)
        after = Contents(stored[: min(offered, capacity)], offered, capacity)
        return cls(replayed, drawn, places, after)


def _places(before: Contents, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return the places of the next instances offered, `capacity` for those that are dropped: int64 [count]."""
    turns = before.offered + np.arange(count)
    drawn = (generator.random(count) * (turns + 1)).astype(np.int64)
    places = np.where(turns < before.capacity, turns, drawn)
    return np.minimum(places, before.capacity)


def _places_by_batch(places: NDArray[np.int64], sizes: Sequence[int], capacity: int) -> NDArray[np.int64]:
    """Return the places of each batch, as `ReservoirEpoch.places` has them."""
    position = np.arange(max(sizes))
    by_batch = np.full((len(sizes), len(position)), capacity)
    by_batch[position < np.array(sizes)[:, None]] = places
    is_later = position[:, None] < position
    is_overwritten = ((by_batch[:, :, None] == by_batch[:, None, :]) & is_later).any(2)
    by_batch[is_overwritten] = capacity
    return by_batch
