"""One epoch's instances, shuffled together and cut into batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Instances:
    """n instances of each of S runs: rows int64 [S, n], targets float32 [S, n, C]."""

    rows: torch.Tensor
    targets: torch.Tensor


@dataclass(frozen=True)
class Replay:
    """Instances to be replayed in an epoch, and the factor of each one's loss: float32 [S, m]."""

    instances: Instances
    factors: torch.Tensor


@dataclass(frozen=True)
class EpochBatch:
    """A batch of current instances I and replayed instances J, which differ in number from run to run.

    Attributes:
        rows: int64 [S, B].
        targets: float32 [S, B, C].
        positions: int64 [S, B], positions in the task's training set where `current`.
        current: bool [S, B].
        current_count: float32 [S, 1], |I|.
        weights: float32 [S, B], 1 / |I| for current and factor / |J| for replayed instances, so that the sum of
            weights times losses is mean_I(l) + mean_J(factor l), a term whose set is empty being absent.
        draws: int64 [B], places in the epoch, counters of the dropout masks.
    """

    rows: torch.Tensor
    targets: torch.Tensor
    positions: torch.Tensor
    current: torch.Tensor
    current_count: torch.Tensor
    weights: torch.Tensor
    draws: torch.Tensor


def epoch_batches(task: Instances, replay: Replay | None, order: torch.Tensor, batch_size: int) -> Iterator[EpochBatch]:
    """The union of a task's instances and the replayed ones in the given order, the last batch possibly smaller.

    Args:
        task: the current task's n training instances.
        replay: m instances to go with them, if any.
        order: int64 [S, n + m], permutations of the union, the task's instances coming first in it.
        batch_size: B.
    """
    size = task.rows.shape[1]
    rows, targets = task.rows, task.targets
    factors = torch.ones(rows.shape, device=rows.device)
    if replay is not None:
        rows = torch.cat([rows, replay.instances.rows], dim=1)
        targets = torch.cat([targets, replay.instances.targets], dim=1)
        factors = torch.cat([factors, replay.factors], dim=1)
    rows = rows.gather(1, order)
    targets = targets.gather(1, order[:, :, None].expand(-1, -1, targets.shape[2]))
    factors = factors.gather(1, order)
    is_current = order < size
    for start in range(0, order.shape[1], batch_size):
        part = slice(start, start + batch_size)
        current = is_current[:, part]
        current_count = current.sum(1, keepdim=True).to(torch.float32)
        replayed_count = current.shape[1] - current_count
        shares = torch.where(current, 1 / current_count, 1 / replayed_count)
        yield EpochBatch(
            rows=rows[:, part],
            targets=targets[:, part],
            positions=order[:, part],
            current=current,
            current_count=current_count,
            weights=factors[:, part] * shares,
            draws=torch.arange(start, start + current.shape[1], device=rows.device),
        )
