"""ER-ACE: a softmax over the classes of the batch, and one over all classes for replay (Caccia et al., 2022).

Asymmetric cross-entropy: from the second task on each step minimises

    L = mean_I CE(z_i, y_i; classes of the batch I) + mean_J CE(z_j, y_j; all classes seen so far),

where the softmax runs only over the named classes, so that a batch of new classes does not lower the logits of the old
ones. J is drawn from a memory as in ER. The first task has only the first term, since nothing is stored yet. The method
needs one output per class.
"""

from __future__ import annotations

import torch

from clops_sweep.learning.batches import EpochBatch, Replay
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
        if len(self.memory):
            places = self.draws(task, epoch)
            replay, order = self.drawn_replay(places), with_replay(order, size, places.shape[2])
            size += places.shape[2]
        current = learner.begin_epoch(self.training.tasks[task], replay, order, size, dropout_keys)
        seen = [(part.targets > 0).any(1) for part in self.training.tasks[: task + 1]]
        current.keep("seen", torch.stack(seen).any(0))

        def given(batch: EpochBatch) -> tuple[torch.Tensor, ...]:
            return batch.targets, batch.weights, _classes(batch, current.kept("seen"))

        learner.train_by_logits(current, _by_logits, given)


def _classes(batch: EpochBatch, seen: torch.Tensor) -> torch.Tensor:
    """Return the softmax classes of each instance, bool [S, B, C], given the classes seen so far, bool [S, C]."""
    current = batch.current[:, :, None]
    own = ((batch.targets > 0) & current).any(1)
    return torch.where(current, own[:, None], seen[:, None])


def _by_logits(
    logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor, classes: torch.Tensor
) -> torch.Tensor:
    """Return dL / dz: each instance's weight times softmax over its classes - y."""
    return weights[:, :, None] * (logits.masked_fill(~classes, -torch.inf).softmax(-1) - targets)
