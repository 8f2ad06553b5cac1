"""ER-ACE: a softmax over the classes of the batch, and one over all classes for replay (Caccia et al., 2022).

Asymmetric cross-entropy: from the second task on each step minimises

    L = mean_I CE(z_i, y_i; classes of the batch I) + mean_J CE(z_j, y_j; all classes seen so far),

where the softmax runs only over the named classes, so that a batch of new classes does not lower the logits of the old
ones. The first task has only the first term. The method needs one output per class.

J is drawn from a memory as in ER, but the memory also holds the current task: in a task's first epoch every batch is
offered after its step. Only J contrasts new classes with old ones, so without them the new classes are not learned. The
authors see every instance once; here later epochs offer nothing. Their code also replays in the first task, and its
first softmax includes the classes not seen yet (so does Mammoth's). Their last layer is `head="cosine"`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.learning.batches import EpochBatch, Replay
from clops_sweep.learning.replay.division import random_priorities
from clops_sweep.learning.replay.mini_batches import with_replay
from clops_sweep.learning.strategies.fixed_memory import FixedMemory


class AsymmetricCrossEntropy(FixedMemory):
    """Experience replay with a different set of softmax classes for current and for replayed instances."""

    def setup(self) -> None:
        """Create the memory."""
        self.division = self.options.memory_division
        super().setup()

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Train on each batch and the instances drawn for it, each with the cross-entropy over its classes."""
        learner = self.learner
        size = self.config.batch_size
        drawn = self._draw_and_offer(task, epoch, order.split(size))
        if task:
            count = drawn.shape[1]
            replay = self._replay(drawn)
            order = with_replay(order, size, count)
            size += count
        current = learner.begin_epoch(self.training.tasks[task], replay, order, size, dropout_keys)
        classes_of_tasks = [(instances.targets > 0).any(0) for instances in self.training.tasks[: task + 1]]
        current.keep("seen", torch.stack(classes_of_tasks).any(0))

        def given(batch: EpochBatch) -> tuple[torch.Tensor, ...]:
            return batch.targets, batch.weights, _classes(batch, current.kept("seen"))

        learner.train_by_logits(current, _by_logits, given)

    def _draw_and_offer(self, task: int, epoch: int, batches: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the instances J of each step, int64 [steps, M]; a first epoch offers each batch after its step.

        Both can be done before the first step, since they do not depend on the network. M is 0 in the first task.

        Args:
            task: index of the task.
            epoch: epoch of the task.
            batches: positions of the task's instances, int64 [B] each.
        """
        device = batches[0].device
        steps = len(batches)
        places = torch.zeros(steps, 0, dtype=torch.int64, device=device)
        if task:
            places = self.draws(task, epoch, sizes=self._stored_at_step(epoch, batches))
        priorities = random_priorities(self.training.seed, len(self.training.tasks[task].rows), task).to(device)
        drawn = []
        for step, batch in enumerate(batches):
            drawn.append(self.memory.index[places[step]])
            if not epoch:
                self.offer(task, priorities, batch)
        return torch.stack(drawn)

    def _stored_at_step(self, epoch: int, batches: Sequence[torch.Tensor]) -> NDArray[np.int64]:
        """Return the size of the memory at each step, int64 [steps]; it grows in a first epoch."""
        sizes = []
        stored = len(self.memory)
        for batch in batches:
            sizes.append(min(stored, self.capacity))
            if not epoch:
                stored += len(batch)
        return np.array(sizes)

    def _replay(self, drawn: torch.Tensor) -> Replay:
        """Return drawn instances, int64 [steps, M], as those of an epoch."""
        instances = drawn.flatten()
        self.ledger.count(instances)
        return Replay(self.ledger.at(instances), torch.ones(len(instances), device=drawn.device))

    def end_task(self, task: int) -> None:
        """Do nothing: the task's instances were offered during training."""


def _classes(batch: EpochBatch, seen: torch.Tensor) -> torch.Tensor:
    """Return the softmax classes of each instance, bool [B, C], given the classes seen so far, bool [C]."""
    is_current = batch.current[:, None]
    of_batch = ((batch.targets > 0) & is_current).any(0)
    return torch.where(is_current, of_batch, seen)


def _by_logits(
    logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor, classes: torch.Tensor
) -> torch.Tensor:
    """Return dL / dz: each instance's weight times softmax over its classes - y."""
    return weights[:, None] * (logits.masked_fill(~classes, -torch.inf).softmax(-1) - targets)
