"""Mini-batches of stored instances beside the batches of an epoch: which are drawn, and where they go."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray


def replay_batch_size(ratio: float, batch_size: int, stored: int) -> int:
    """M, how many are replayed beside every batch: round(ratio B), at least 1 and at most what is stored."""
    return min(max(1, round(ratio * batch_size)), stored)


def steps_of(instances: int, batch_size: int) -> int:
    """Batches of an epoch."""
    return math.ceil(instances / batch_size)


def with_replay(order: torch.Tensor, batch_size: int, replayed: int) -> torch.Tensor:
    """The order of an epoch in which every batch of the task's instances has others behind it.

    Args:
        order: int64 [S, n], of the task's instances alone.
        batch_size: B.
        replayed: M.

    Returns:
        int64 [S, n + steps * M], in which the others count from n: B of the task, then n ... n + M - 1, the next B of
        the task, then n + M ..., so that each batch holds B + M instances.
    """
    runs, size = order.shape
    steps = steps_of(size, batch_size)
    others = torch.arange(size, size + steps * replayed, device=order.device).view(-1, replayed).expand(runs, -1, -1)
    whole, rest = order.split([(steps - 1) * batch_size, size - (steps - 1) * batch_size], dim=1)
    batches = torch.cat([whole.unflatten(1, (-1, batch_size)), others[:, :-1]], dim=2)
    return torch.cat([batches.flatten(1), rest, others[:, -1]], dim=1)


def subsets(generator: np.random.Generator, sizes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """A uniform subset of 0 .. size - 1 for each of some sizes, by Floyd's algorithm (Bentley and Floyd, 1987).

    For j = size - count ... size - 1: t is drawn from 0 .. j; t goes in, or j where t is in already.

    Args:
        generator: `count` draws for each size.
        sizes: int64 [n], at least `count`.
        count: how many of each.

    Returns:
        int64 [n, count].
    """
    last = (sizes - count)[:, None] + np.arange(count)
    chosen = (generator.random(last.shape) * (last + 1)).astype(np.int64)
    ascending = np.sort(chosen, axis=1)
    for row in np.flatnonzero((ascending[:, 1:] == ascending[:, :-1]).any(axis=1)):  # elsewhere nothing is in twice
        there: set[int] = set()
        for place, new in enumerate(chosen[row].tolist()):
            if new in there:
                chosen[row, place] = new = int(last[row, place])
            there.add(new)
    return chosen
