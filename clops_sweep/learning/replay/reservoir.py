"""A reservoir that is filled while an epoch is trained on: what is in it at which step, worked out beforehand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clops_sweep.learning.replay.beside import steps_of, subsets


@dataclass(frozen=True)
class ReservoirEpoch:
    """One run's epoch, in which every instance that is trained on is offered to the reservoir (Vitter, 1985).

    The instance that is the t-th to be offered, from 0, goes into place t while there is room, and later into a place j
    that is drawn from 0 .. t, if there is such a place. What a step draws was there before its batch was offered.

    Attributes:
        replayed: int64 [steps, sets, M], the instances that each step replays.
        drawn: int64 [steps, sets, M], their places.
        places: int64 [steps, B], where the instances of each batch go; `capacity` for those that are not kept, or whose
            place another of the batch takes after them.
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
        batch_size: int,
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
            batch_size: B.
            sets: mini-batches that each step draws, independently of each other.
            count: M, instances in each of these, at most m.
            offering: decides who stays.
            replaying: decides what is drawn.
        """
        steps, size = steps_of(len(new), batch_size), len(new)
        turns = offered + np.arange(size)
        places = np.where(turns < capacity, turns, (offering.random(size) * (turns + 1)).astype(np.int64))
        padded = np.full(steps * batch_size, capacity, np.int64)
        padded[:size] = np.minimum(places, capacity)
        by_step = padded.reshape(steps, batch_size)
        later = np.triu(np.ones((batch_size, batch_size), bool), 1)
        by_step[((by_step[:, :, None] == by_step[:, None, :]) & later).any(2)] = capacity
        filled = np.minimum(offered + batch_size * np.arange(steps), capacity)
        drawn = subsets(replaying, filled.repeat(sets), count).reshape(steps, sets, count)
        inside = np.zeros(capacity + 1, np.int64)
        inside[: len(held)] = held
        replayed = np.empty_like(drawn)
        for step, start in enumerate(range(0, size, batch_size)):
            replayed[step] = inside[drawn[step]]
            batch = new[start : start + batch_size]
            inside[by_step[step, : len(batch)]] = batch
        return cls(replayed, drawn, by_step, inside[: min(offered + size, capacity)])
