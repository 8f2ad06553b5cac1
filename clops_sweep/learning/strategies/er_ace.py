"""ER-ACE: a softmax over the classes of the batch, and one over all classes for replay (Caccia et al., 2022).

Asymmetric cross-entropy: from the second task on each step minimises

    L = mean_I CE(z_i, y_i; classes of the batch I) + mean_J CE(z_j, y_j; all classes seen so far),

where the softmax runs only over the named classes, so that a batch of new classes does not lower the logits of the old
ones. The first task has only the first term. The method needs one output per class.

J is drawn from a memory as in ER, but the memory also holds the current task: in a task's first epoch every batch is
offered after its step. Only J contrasts new classes with old ones, so without them the new classes are not learned. The
authors see every instance once; here later epochs offer nothing. Their code also replays in the first task, and its
first softmax includes the classes not seen yet.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from clops_sweep.learning.batches import EpochBatch, Replay
from clops_sweep.learning.replay.division import random_priorities
from clops_sweep.learning.replay.mini_batches import with_replay
from clops_sweep.learning.strategies.base import Training
from clops_sweep.learning.strategies.fixed_memory import FixedMemory


class AsymmetricCrossEntropy(FixedMemory):
    """Experience replay with a different set of softmax classes for current and for replayed instances."""

    def __init__(self, training: Training) -> None:
        super().__init__(training)
        self.division = training.config.options["memory_division"]

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Train on each batch and the instances drawn for it, each with the cross-entropy over its classes."""
        learner, size = self.training.learner, self.training.config.batch_size
        drawn = self._drawn(task, epoch, order.split(size))
        if drawn is not None:
            self.memory.count(drawn.flatten())
            instances = self.memory.looked_up(drawn.flatten())
            replay = Replay(instances, torch.ones(instances.rows.shape, device=order.device))
            order, size = with_replay(order, size, drawn.shape[1]), size + drawn.shape[1]
        current = learner.begin_epoch(self.training.tasks[task], replay, order, size, dropout_keys)
        seen = [(part.targets > 0).any(0) for part in self.training.tasks[: task + 1]]
        current.keep("seen", torch.stack(seen).any(0))

        def given(batch: EpochBatch) -> tuple[torch.Tensor, ...]:
            return batch.targets, batch.weights, _classes(batch, current.kept("seen"))

        learner.train_by_logits(current, _by_logits, given)

    def _drawn(self, task: int, epoch: int, batches: Sequence[torch.Tensor]) -> torch.Tensor | None:
        """Return the instances to replay with each batch, int64 [steps, M]; a first epoch also updates the memory.

        Both can be done before the first step, since they do not depend on the networks.

        Args:
            task: index of the task.
            epoch: epoch of the task.
            batches: positions of the task's instances, int64 [B] each.
        """
        new = [0 if epoch else len(batch) for batch in batches]
        sizes = np.minimum(len(self.memory) + np.cumsum([0, *new[:-1]]), self.capacity)
        places = self.draws(task, epoch, sizes=sizes) if task else None
        count = len(self.training.tasks[task].rows)
        priorities = random_priorities(self.training.seed, count, task).to(batches[0].device)
        drawn = []
        for step, batch in enumerate(batches):
            if places is not None:
                drawn.append(self.memory.instances[places[step]])
            if not epoch:
                self.offer(task, priorities, batch)
        return torch.stack(drawn) if drawn else None

    def end_task(self, task: int) -> None:
        """Do nothing: the task's instances were offered during training."""


def _classes(batch: EpochBatch, seen: torch.Tensor) -> torch.Tensor:
    """Return the softmax classes of each instance, bool [B, C], given the classes seen so far, bool [C]."""
    current = batch.current[:, None]
    own = ((batch.targets > 0) & current).any(0)
    return torch.where(current, own, seen)


def _by_logits(
    logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor, classes: torch.Tensor
) -> torch.Tensor:
    """Return dL / dz: each instance's weight times softmax over its classes - y."""
    return weights[:, None] * (logits.masked_fill(~classes, -torch.inf).softmax(-1) - targets)
