"""Replay buffer of S runs: one portion for each past task. All runs store the same number of instances."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from clops_sweep.learning.batches import Instances, Replay, gather_targets


@dataclass(frozen=True)
class Portion:
    """Stored instances of one past task.

    Attributes:
        task: index of the task in the order of training.
        positions: int64 [S, m], indices of the stored instances in the task's training set.
        rows: int64 [S, m], their rows in the frame bank.
        targets: float32 [S, m, C].
        factors: float32 [S, m], factors of the replayed losses, in addition to their weights.
        replayed: int64 [S, m], number of replays of each instance.
        weights: float32 [S, m], weights of the losses; None for ones.
    """

    task: int
    positions: torch.Tensor
    rows: torch.Tensor
    targets: torch.Tensor
    factors: torch.Tensor
    replayed: torch.Tensor
    weights: torch.Tensor | None = None

    def targets_at(self, places: torch.Tensor) -> torch.Tensor:
        """Return the targets at indices int64 [S, m']: float32 [S, m', C]."""
        return gather_targets(self.targets, places)

    def replay(self, chosen: torch.Tensor) -> Replay:
        """Return the instances at indices int64 [S, m'], and count them as replayed once more."""
        self.replayed.scatter_add_(1, chosen, torch.ones_like(chosen))
        stored = Instances(self.rows, self.targets).weighted(self.weights)
        return Replay(stored.at(chosen), self.factors.gather(1, chosen))


@dataclass
class Buffer:
    """Portions in the order of training."""

    portions: list[Portion] = field(default_factory=list)

    def add(
        self, task: int, positions: torch.Tensor, instances: Instances, factors: torch.Tensor | None = None
    ) -> None:
        """Store instances of a finished task. Nothing is ever removed.

        Args:
            task: index of the task in the order of training.
            positions: int64 [S, m], indices of the stored instances in the task's training set.
            instances: all training instances of the task.
            factors: float32 [S, m], factors of the replayed losses; ones by default.
        """
        stored = instances.at(positions)
        if factors is None:
            factors = torch.ones(positions.shape, device=positions.device)
        replayed = torch.zeros_like(positions)
        self.portions.append(Portion(task, positions, stored.rows, stored.targets, factors, replayed, stored.weights))

    def times_replayed(self, task: int, instances: int) -> torch.Tensor:
        """Return the number of replays of each training instance of a task: int64 [S, n]."""
        portion = self.portions[task]
        zeros = torch.zeros(len(portion.rows), instances, dtype=torch.int64, device=portion.rows.device)
        return zeros.scatter(1, portion.positions, portion.replayed)

    def __len__(self) -> int:
        return len(self.portions)

    def state(self) -> list[dict[str, Any]]:
        """Return the state for a checkpoint."""
        return [vars(portion) for portion in self.portions]

    def restore(self, state: list[dict[str, Any]]) -> None:
        """Restore a state from `state`."""
        self.portions = [Portion(**portion) for portion in state]
