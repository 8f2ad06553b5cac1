"""One epoch's instances, shuffled together and cut into batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Batch:
    """One training batch of S runs.

    Attributes:
        rows: int64 [S, B], rows of the frame bank.
        targets: float32 [S, B, C].
        weights: float32 [S, B]; the loss is sum_i weights_i l_i.
        draws: int64 [B], counters of the dropout masks.
    """

    rows: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor
    draws: torch.Tensor


@dataclass(frozen=True)
class Instances:
    """n instances of each of S runs: rows int64 [S, n], targets float32 [S, n, C]."""

    rows: torch.Tensor
    targets: torch.Tensor

    @classmethod
    def union(cls, parts: Sequence[Instances]) -> Instances:
        """Several sets as one, in their order."""
        return cls(torch.cat([part.rows for part in parts], dim=1), torch.cat([part.targets for part in parts], dim=1))


def gather_targets(targets: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Targets at some positions: float32 [S, n, C] and int64 [S, m] to [S, m, C]."""
    return targets.gather(1, positions[:, :, None].expand(-1, -1, targets.shape[2]))


@dataclass(frozen=True)
class Replay:
    """Instances to be replayed, and the factor of each one's loss: float32 [S, m]."""

    instances: Instances
    factors: torch.Tensor

    @classmethod
    def union(cls, parts: Sequence[Replay]) -> Replay:
        """Several sets as one."""
        return cls(
            Instances.union([part.instances for part in parts]),
            torch.cat([part.factors for part in parts], dim=1),
        )


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

    def plain(self) -> Batch:
        """The batch as a learner takes it."""
        return Batch(self.rows, self.targets, self.weights, self.draws)


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
    targets = gather_targets(targets, order)
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
