"""A reservoir that is filled while an epoch is trained on: what is in it at which step, worked out beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clops_sweep.learning.replay.mini_batches import subsets


@dataclass(frozen=True)
class ReservoirEpoch:
    """One run's epoch, in which every instance that is trained on is offered to the reservoir (Vitter, 1985).

    The instance that is the t-th to be offered, from 0, goes into place t while there is room, and later into a place j
    that is drawn from 0 .. t, if there is such a place. What a step draws was there before its batch was offered.

    Attributes:
        replayed: int64 [steps, sets, M], the instances that each step replays.
        drawn: int64 [steps, sets, M], their places.
        places: int64 [steps, largest size], where the instances of each batch go; `capacity` for those that are not
            kept, or whose place another of the batch takes after them, and behind the last of a smaller batch.
        held: int64 [m], what is in the reservoir after the epoch.
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
        """Draws all that the epoch needs.

        Args:
            held: int64 [m], what is in the reservoir.
            offered: how many have been offered before.
            new: int64 [n], the epoch's instances in their order.
            capacity: of the reservoir.
            sizes: of its batches.
            sets: mini-batches that each step draws, independently of each other.
            count: M, instances in each of these, at most m.
            offering: decides who stays.
            replaying: decides what is drawn.
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
            inside.take(drawn[step], out=replayed[step], mode="clip")  # of all modes this alone copies no `out`
            inside[by_step[step, :size]] = new[end - size : end]
        return cls(replayed, drawn, by_step, inside[: min(offered + len(new), capacity)])
