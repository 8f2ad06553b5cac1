"""Reservoir that is filled during an epoch. Its contents at every step are computed before the epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clops_sweep.learning.replay.mini_batches import subsets


@dataclass(frozen=True)
class ReservoirEpoch:
    """Epoch of one run, in which every training instance is offered to the reservoir (Vitter, 1985).

    The t-th instance offered, from 0, goes into place t while there is room. Later it goes into a place j drawn from
    0 .. t if j is below the capacity. A step draws from the reservoir before its batch is offered.

    Attributes:
        replayed: int64 [steps, sets, M], the instances that each step replays.
        drawn: int64 [steps, sets, M], places of the replayed instances.
        places: int64 [steps, largest size], new places of the instances of each batch; `capacity` for instances that
            are dropped or overwritten within the batch, and as padding of smaller batches.
        held: int64 [m], instances in the reservoir after the epoch.
    """

    replayed: NDArray[np.int64]
    drawn: NDArray[np.int64]
    places: NDArray[np.int64]
    held: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        held: NDArray[np.int64],
        offered: int,
        new: NDArray[np.int64],
        capacity: int,
        sizes: Sequence[int],
        sets: int,
        count: int,
        offering: np.random.Generator,
        replaying: np.random.Generator,
    ) -> ReservoirEpoch:
        """Make all random draws of the epoch.

        Args:
            held: int64 [m], instances in the reservoir.
            offered: number of instances offered before.
            new: int64 [n], the epoch's instances in their order.
            capacity: capacity of the reservoir.
            sizes: sizes of the epoch's batches.
            sets: number of mini-batches that each step draws, independently of each other.
            count: M, number of instances in each mini-batch, at most m.
            offering: generator for the places of offered instances.
            replaying: generator for the mini-batches.
        """
        steps, ends = len(sizes), np.cumsum(sizes)
        turns = offered + np.arange(len(new))
        places = np.where(turns < capacity, turns, (offering.random(len(new)) * (turns + 1)).astype(np.int64))
        by_step, turn = np.full((steps, max(sizes)), capacity), np.arange(max(sizes))
        by_step[turn < np.array(sizes)[:, None]] = np.minimum(places, capacity)
        later = turn[:, None] < turn
        by_step[((by_step[:, :, None] == by_step[:, None, :]) & later).any(2)] = capacity
        filled = np.minimum(offered + ends - sizes, capacity)
        drawn = subsets(replaying, filled.repeat(sets), count).reshape(steps, sets, count)
        inside = np.zeros(capacity + 1, np.int64)
        inside[: len(held)] = held
        replayed = np.empty_like(drawn)
        for step, (end, size) in enumerate(zip(ends, sizes, strict=True)):
            inside.take(drawn[step], out=replayed[step], mode="clip")  # the only mode that does not copy `out`
            inside[by_step[step, :size]] = new[end - size : end]
        return cls(replayed, drawn, by_step, inside[: min(offered + len(new), capacity)])
