"""The replay buffer: one portion for each past task, of S runs that store equally many instances."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from clops_sweep.learning.batches import Instances, Replay, gather_targets


@dataclass(frozen=True)
class Portion:
    """What is stored of one past task.

    Attributes:
        task: position of the task in the order of training.
        positions: int64 [S, m], positions of the stored instances in the task's training set.
        rows: int64 [S, m], their rows in the frame bank.
        targets: float32 [S, m, C].
        factors: float32 [S, m], what each loss is multiplied by when it is replayed, beside its weight.
        replayed: int64 [S, m], how often each has been replayed.
        weights: float32 [S, m], of their losses; None for ones.
    """

    task: int
    positions: torch.Tensor
    rows: torch.Tensor
    targets: torch.Tensor
    factors: torch.Tensor
    replayed: torch.Tensor
    weights: torch.Tensor | None = None

    def targets_at(self, places: torch.Tensor) -> torch.Tensor:
        """Targets of the instances at some places, int64 [S, m'] to float32 [S, m', C]."""
        return gather_targets(self.targets, places)

    def replay(self, chosen: torch.Tensor) -> Replay:
        """The instances at the chosen places, int64 [S, m'], counted as replayed once more."""
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
        """Stores instances of a task that has ended; nothing is ever taken out again.

        Args:
            task: position of the task in the order of training.
            positions: int64 [S, m], which of the task's training instances.
            instances: all of the task's training instances.
            factors: float32 [S, m], replayed losses are multiplied by these; ones if not given.
        """
        stored = instances.at(positions)
        if factors is None:
            factors = torch.ones(positions.shape, device=positions.device)
        replayed = torch.zeros_like(positions)
        self.portions.append(Portion(task, positions, stored.rows, stored.targets, factors, replayed, stored.weights))

    def times_replayed(self, task: int, instances: int) -> torch.Tensor:
        """How often each of a task's training instances has been replayed: int64 [S, n]."""
        portion = self.portions[task]
        zeros = torch.zeros(len(portion.rows), instances, dtype=torch.int64, device=portion.rows.device)
        return zeros.scatter(1, portion.positions, portion.replayed)

    def __len__(self) -> int:
        return len(self.portions)

    def state(self) -> list[dict[str, Any]]:
        """What a checkpoint needs."""
        return [vars(portion) for portion in self.portions]

    def restore(self, state: list[dict[str, Any]]) -> None:
        """Takes up a state that `state` returned."""
        self.portions = [Portion(**portion) for portion in state]
