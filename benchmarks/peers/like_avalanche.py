"""Avalanche's variant of DER++ as a plug-in, to check that its known deviations from the authors' are all."""

from __future__ import annotations

import torch

from clops_sweep import strategy
from clops_sweep.learning.batches import Replay
from clops_sweep.learning.losses import loss_gradient
from clops_sweep.learning.replay.division import random_priorities
from clops_sweep.learning.replay.mini_batches import with_replay
from clops_sweep.learning.strategies.fixed_memory import FixedMemory


@strategy("derpp_of_avalanche", options=("memory_fraction", "memory_size", "replay_ratio", "derpp_alpha", "derpp_beta"))
class DERppOfAvalanche(FixedMemory):
    """mean_I(l_i) + alpha mean_J(|z_j - z_j(stored)|^2 / C) + beta mean_J(l_j), J drawn from a class-balanced memory.

    At the end of a task, its instances are offered to the memory, with their logits in evaluation mode. The options are
    those of `derpp`.
    """

    division = "class_balanced"

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Train each batch together with a mini-batch from the memory, once it is not empty."""
        if not len(self.memory):
            super().train_epoch(task, epoch, replay, order, dropout_keys)
            return
        training, size = self.training, self.training.config.batch_size
        places, learner, options = self.draws(task, epoch), training.learner, training.config.options
        count, outputs = places.shape[1], learner.outputs
        drawn = self.drawn_replay(places)
        replayed = Replay(drawn.instances, options["derpp_beta"] * drawn.factors)
        order = with_replay(order, size, count)
        current = learner.begin_epoch(training.tasks[task], replayed, order, size + count, dropout_keys)
        current.keep("stored", self.memory.columns["logits"][places])
        pull = 2 * options["derpp_alpha"] / (count * outputs)

        def by_logits(
            logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor, stored: torch.Tensor
        ) -> torch.Tensor:
            by = loss_gradient(learner.kind, logits, targets).mul_(weights)
            by[-count:].add_(logits[-count:] - stored, alpha=pull)
            return by

        learner.train_by_logits(
            current,
            by_logits,
            lambda batch: (batch.targets, batch.weights.unsqueeze(1), current.kept_for("stored", batch)),
        )

    def end_task(self, task: int) -> None:
        """Offer the task's instances to the memory."""
        new = self.instances(task)
        priority = random_priorities(self.training.seed, len(new), task)
        self.memory.offer(new, priority=priority, logits=self.training.learner.logits(new.instances.rows))
