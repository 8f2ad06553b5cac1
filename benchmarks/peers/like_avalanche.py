"""DER++ as Avalanche has it, as a plug-in: to see whether what differs from the authors' is all that differs."""

from __future__ import annotations

import torch

from clops_sweep import strategy
from clops_sweep.learning.batches import Epoch, EpochBatch, Replay
from clops_sweep.learning.losses import instance_losses
from clops_sweep.learning.replay.beside import beside
from clops_sweep.learning.replay.division import kept, random_priorities
from clops_sweep.learning.strategies.fixed_memory import FixedMemory


@strategy("derpp_of_avalanche")
class DERppOfAvalanche(FixedMemory):
    """mean_I(l_i) + alpha mean_J(|z_j - z_j(stored)|^2 / C) + beta mean_J(l_j), J drawn from a class-balanced memory.

    A task is offered to the memory at its end, with the logits that it has then in evaluation mode. The options are
    those of `derpp`, and have to be given.
    """

    division = "class_balanced"

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Each batch with one mini-batch beside it, once something is stored."""
        if not len(self.memory):
            super().train_epoch(task, epoch, replay, order, dropout_keys)
            return
        training, size = self.training, self.training.config.batch_size
        places = self.draws(task, epoch)
        count = places.shape[2]
        current = training.learner.begin_epoch(
            training.tasks[task], self.drawn_replay(places), beside(order, size, count), size + count, dropout_keys
        )
        current.keep("places", places.transpose(0, 1).contiguous())
        training.learner.run_epoch(current, lambda batch, phase: self._step(current, batch))

    def _step(self, current: Epoch, batch: EpochBatch) -> None:
        learner, config, places = self.training.learner, self.training.config, current.kept_for("places", batch)
        new = batch.rows.shape[1] - places.shape[1]

        def loss(logits: torch.Tensor, targets: torch.Tensor, stored: torch.Tensor) -> torch.Tensor:
            each, apart = instance_losses(learner.kind, logits, targets), (logits[:, new:] - stored).square()
            replayed = config.derpp_alpha * apart.mean((1, 2)) + config.derpp_beta * each[:, new:].mean(1)
            return each[:, :new].mean(1) + replayed

        given = (batch.targets, self.memory.carried_at("logits", places))
        learner.apply(learner.loss_gradient(batch.rows, batch.draws, current.kept("dropout keys"), loss, *given)[1])

    def end_task(self, task: int) -> None:
        """Offers the task's instances to the memory."""
        learner, memory, new = self.training.learner, self.memory, self.memory.of_task(task)
        priority = random_priorities(self.training.seeds, new.shape[1], task)
        memory.add(new, priority=priority, logits=learner.logits(self.training.tasks[task].rows))
        memory.keep(kept(memory.carried["priority"], self.groups(), self.capacity))
