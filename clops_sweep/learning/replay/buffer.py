"""The replay buffer: one portion for each past task, of S runs that store equally many instances."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch


def count_of(fraction: float, size: int) -> int:
    """max(1, floor(fraction * size)), where the floor forgives rounding: 0.29 of 100 is 29."""
    return max(1, math.floor(fraction * size + 1e-9))


@dataclass(frozen=True)
class Portion:
    """What is stored of one past task.

    Attributes:
        task: position of the task in the order of training.
        positions: int64 [S, m], positions of the stored instances in the task's training set.
        rows: int64 [S, m], their rows in the frame bank.
        targets: float32 [S, m, C].
        replayed: int64 [S, m], how often each has been replayed.
    """

    task: int
    positions: torch.Tensor
    rows: torch.Tensor
    targets: torch.Tensor
    replayed: torch.Tensor


@dataclass
class Buffer:
    """Portions in the order of training."""

    portions: list[Portion] = field(default_factory=list)

    def add(self, task: int, positions: torch.Tensor, rows: torch.Tensor, targets: torch.Tensor) -> None:
        """Stores instances of a task that has ended; nothing is ever taken out again."""
        self.portions.append(Portion(task, positions, rows, targets, torch.zeros_like(positions)))

    def __len__(self) -> int:
        return len(self.portions)

    def state(self) -> list[dict[str, Any]]:
        """What a checkpoint needs."""
        return [vars(portion) for portion in self.portions]

    def restore(self, state: list[dict[str, Any]]) -> None:
        """Takes up a state that `state` returned."""
        self.portions = [Portion(**portion) for portion in state]
