"""ER: every batch is joined by a mini-batch from a small memory (Chaudhry et al., "On tiny episodic memories", 2019).

This is standard experience replay. From the second task on each step minimises

    L = mean_I(l_i) + mean_J(l_j),

where I is a batch of the task, and J holds `replay_ratio` times as many distinct instances, drawn from the memory anew
for each batch. `memory_division` selects the kind of memory: a reservoir of all instances so far, or equal shares of
the tasks or of the classes so far.

The authors average over I and J together. With equal sizes that is L / 2, and a step of Adam does not depend on the
factor. They see every instance once and store it during the task, so that J also holds the current task; here the task
is offered at its end. Mammoth stores during the task, too, and offers an instance again in each epoch.
"""

from __future__ import annotations

import torch

from clops_sweep.learning.batches import Replay
from clops_sweep.learning.replay.mini_batches import with_replay
from clops_sweep.learning.strategies.fixed_memory import FixedMemory


class TinyEpisodicMemory(FixedMemory):
    """Experience replay from a memory of fixed size, with one mini-batch per batch."""

    def setup(self) -> None:
        """Create the memory."""
        self.division = self.options.memory_division
        super().setup()

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Train on each batch I and, once the memory is filled, the J drawn for it; steps average each apart."""
        instances = self.training.tasks[task]
        size = self.config.batch_size
        if len(self.memory):
            places = self.draws(task, epoch)
            count = places.shape[1]
            replay = self.drawn_replay(places)
            order = with_replay(order, size, count)
            size += count
        self.learner.train_epoch(instances, replay, order, size, dropout_keys)
