"""Mini-batches of stored instances that are replayed with the batches of an epoch: their draws and their order."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.learning.batches import Batch, Instances


def replay_batch_size(ratio: float, batch_size: int, stored: int) -> int:
    """Return M, the number of instances replayed with every batch: round(ratio B), between 1 and the number stored."""
    return min(max(1, round(ratio * batch_size)), stored)


def steps_of(instances: int, batch_size: int) -> int:
    """Return the number of batches of an epoch."""
    return math.ceil(instances / batch_size)


def with_replay(order: torch.Tensor, batch_size: int, replayed: int) -> torch.Tensor:
    """Return the order of an epoch in which replayed instances follow every batch of the task's instances.

    Args:
        order: int64 [n], the order of the task's instances alone.
        batch_size: B.
        replayed: M.

    Returns:
        int64 [n + steps * M], where replayed instances have the indices from n: B of the task, then
        n ... n + M - 1, the next B of the task, then n + M ..., so that each batch holds B + M instances.
    """
    size = len(order)
    steps = steps_of(size, batch_size)
    in_whole_batches = (steps - 1) * batch_size  # all but the last batch, which may be smaller
    whole_batches = order[:in_whole_batches].view(-1, batch_size)
    last_batch = order[in_whole_batches:]
    replayed_indices = torch.arange(size, size + steps * replayed, device=order.device)
    of_step = replayed_indices.view(-1, replayed)
    joined_batches = torch.cat([whole_batches, of_step[:-1]], dim=1)
    return torch.cat([joined_batches.flatten(), last_batch, of_step[-1]])


def subsets(generator: np.random.Generator, sizes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return a uniform subset of 0 .. size - 1 for each size, by Floyd's algorithm (Bentley and Floyd, 1987).

    For j = size - count ... size - 1: t is drawn from 0 .. j; t is added, or j if the subset already contains t.

    Args:
        generator: source of `count` draws for each size.
        sizes: int64 [n], at least `count`.
        count: size of each subset.

    Returns:
        int64 [n, count].
    """
    j = (sizes - count)[:, None] + np.arange(count)
    t = generator.random(j.shape) * (j + 1)
    chosen = t.astype(np.int64)
    ascending = np.sort(chosen, axis=1)
    has_duplicates = (ascending[:, 1:] == ascending[:, :-1]).any(axis=1)
    for row in np.flatnonzero(has_duplicates):
        subset: set[int] = set()
        for column, drawn in enumerate(chosen[row].tolist()):
            added = int(j[row, column]) if drawn in subset else drawn
            chosen[row, column] = added
            subset.add(added)
    return chosen


_FIRST_REPLAY_DRAW = 1 << 20  # beyond the indices of any epoch, so that no two instances share a dropout mask


def joined(batch: Batch, replayed: Instances, earlier: int) -> Batch:
    """Return a batch followed by replayed instances, whose losses have the factor 1 / |J| and their own weights.

    Args:
        batch: the current instances.
        replayed: the replayed ones.
        earlier: maximum number of instances replayed in the earlier batches of the epoch.
    """
    count = len(replayed.rows)
    weights = replayed.loss_weights * (1 / count)
    draws = _FIRST_REPLAY_DRAW + earlier + torch.arange(count, device=replayed.rows.device)
    return Batch(
        rows=torch.cat([batch.rows, replayed.rows]),
        targets=torch.cat([batch.targets, replayed.targets]),
        weights=torch.cat([batch.weights, weights]),
        draws=torch.cat([batch.draws, draws]),
    )
