"""GDumb: a greedily balanced memory, and a network trained from scratch on the memory alone (Prabhu et al., 2020).

With every task the memory is rebalanced, so that it holds equally many random instances of each class, if available.
Then a new network is trained on the memory alone, for as many epochs as other methods train on the task. Its initial
weights come from a stream of the run's seed and the task. The result shows how much of a benchmark a memory alone
solves.

The authors train with SGD, cosine annealing and cutmix; here training is the same for all methods. Their sampler keeps
the first instances of a class that come. Mammoth trains only after the last task, on a reservoir.
"""

from __future__ import annotations

import torch

from clops_sweep.learning import streams
from clops_sweep.learning.batches import Replay
from clops_sweep.learning.strategies.fixed_memory import FixedMemory


class GreedyDumb(FixedMemory):
    """Balanced memory, and a new network for every task."""

    division = "class_balanced"

    def begin_task(self, task: int) -> None:
        """Offer the task's instances to the memory, and start a new network."""
        self.offer(task)
        self.learner.begin_anew(task)

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Train one epoch on the memory."""
        del replay
        seed = self.training.seed
        size = len(self.memory)
        stored = self.memory.all().instances
        past = self.ledger.task_of(self.memory.index) < task
        self.ledger.count(self.memory.index, past)
        order = streams.permutation(seed, size, "memory order", task, epoch).to(order.device)
        batch_size = self.config.batch_size
        self.learner.train_epoch(stored, None, order, batch_size, dropout_keys)

    def end_task(self, task: int) -> None:
        """Do nothing: the memory was updated at the start of the task."""
