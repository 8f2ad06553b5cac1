"""GDumb: a greedily balanced memory, and a network that is trained from scratch on nothing else (Prabhu et al., 2020).

With every task the memory takes up what keeps its classes in balance: equally many instances of each, as far as there
are so many, chosen at random. Then a new network, its initial weights from a stream of the run's seed and the task, is
trained on the memory alone, for as many epochs as other methods train on the task. What it comes to says how much of a
benchmark needs nothing but a memory. (The authors train with SGD, cosine annealing and cutmix; here training is what it
is for all methods.)
"""

from __future__ import annotations

from typing import Any

import torch

from clops_sweep.learning import streams
from clops_sweep.learning.batches import Instances, Replay
from clops_sweep.learning.strategies.base import Training
from clops_sweep.learning.strategies.fixed_memory import FixedMemory


class GreedyDumb(FixedMemory):
    """A balanced memory, and a network of its own for every task."""

    division = "class_balanced"

    def __init__(self, training: Training) -> None:
        super().__init__(training)
        self._stored: Instances | None = None

    def begin_task(self, task: int) -> None:
        """The task's instances are offered to the memory, and the network begins anew."""
        self.offer(task)
        self._stored = None
        self.training.learner.begin_anew(task)

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """One epoch on the memory."""
        del replay
        seeds, size = self.training.seeds, len(self.memory)
        if self._stored is None:
            self._stored = self.memory.looked_up(self.memory.instances)
        past = self.memory.task_of(self.memory.instances) < task
        self.memory.count(self.memory.instances, past)
        order = streams.permutations(seeds, size, "memory order", task, epoch).to(order.device)
        batch_size = self.training.config.batch_size
        self.training.learner.train_epoch(self._stored, None, order, batch_size, dropout_keys)

    def end_task(self, task: int) -> None:
        """Nothing: the memory has what it keeps of the task already."""

    def restore(self, state: dict[str, Any], task: int) -> None:
        """Takes up a state that `state` returned during the given task."""
        super().restore(state, task)
        self._stored = None
