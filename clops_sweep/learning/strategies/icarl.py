"""iCaRL: exemplars by herding, distillation, and the nearest mean of exemplars (Rebuffi et al., 2017)."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import normalize

from clops_sweep.learning.batches import EpochBatch, Replay
from clops_sweep.learning.replay.division import herding
from clops_sweep.learning.strategies.base import Training
from clops_sweep.learning.strategies.feature_head import FeatureHead
from clops_sweep.learning.strategies.fixed_memory import FixedMemory


class IncrementalClassifier(FixedMemory):
    """Training on the current task and all exemplars with sigmoids and binary cross-entropy.

    Targets are one-hot for the classes of the current task. For classes of past tasks they are the network's sigmoids
    before the task.

    Predictions come from the nearest mean of exemplars. Let f(x) be the input of the last layer, phi(x) = f(x) /
    |f(x)|, and mu_c the mean of phi over the exemplars of class c, scaled to length 1. The logit of class c is mu_c .
    f(x), which ranks classes by the distance |phi(x) - mu_c|.

    At the end of a task each class keeps an equal share of the memory, chosen by herding: exemplar k is the instance
    that brings the mean of the first k closest to the mean of all. Until then, the means of its classes are over all of
    its instances.
    """

    division = "class_balanced"
    needs_head = "write"

    def __init__(self, training: Training) -> None:
        super().__init__(training)
        self._head = FeatureHead(training.learner, training.config.network)
        self._trained = self._head.weights()
        """Weight and bias of the trained head; between epochs the network's head holds the means of exemplars."""
        self._answers = torch.empty(0)
        """Targets of the task's instances, then of the exemplars: [n + m, C]."""

    def begin_task(self, task: int) -> None:
        """Compute the network's sigmoids on the task's instances and the exemplars."""
        training = self.training
        self._head.write(*self._trained)
        instances = training.tasks[task], self.memory.looked_up(self.memory.instances)
        targets = torch.cat([part.targets for part in instances])
        if task:
            known = torch.cat([past.targets for past in training.tasks[:task]]).amax(0) > 0
            before = torch.cat([training.learner.logits(part.rows) for part in instances]).sigmoid()
            targets = torch.where(known, before, targets)
        self._answers = targets

    def replay(self, task: int, epoch: int) -> Replay | None:
        """Return all exemplars, once per epoch."""
        del task, epoch
        if not len(self.memory):
            return None
        places = torch.arange(len(self.memory), device=self.memory.instances.device)
        return self.drawn_replay(places[None])

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Take steps on the task's instances and the exemplars, then replace the trained head by the means."""
        del epoch
        learner, config = self.training.learner, self.training.config
        self._head.write(*self._trained)
        current = learner.begin_epoch(self.training.tasks[task], replay, order, config.batch_size, dropout_keys)
        current.keep("answers", self._answers[order])

        def given(batch: EpochBatch) -> tuple[torch.Tensor, ...]:
            return (current.kept("answers").index_select(0, batch.draws),)

        learner.train_by_logits(current, _by_logits, given)
        self._trained = self._head.weights()
        self._write_means(task, self._features(task))

    def end_training(self, task: int) -> None:
        """Choose exemplars by herding; later means are over exemplars alone."""
        classes = self.training.tasks[task].targets.argmax(1).cpu()
        priorities = herding(normalize(self._features(task), dim=1), classes)
        self.offer(task, priorities.to(self.memory.instances.device))
        self._write_means(task)

    def end_task(self, task: int) -> None:
        """Do nothing: `end_training` has offered the task's instances."""

    def _features(self, task: int) -> torch.Tensor:
        """Return the features of a task's instances, [n, F]."""
        return self._head.features(self.training.tasks[task].rows)

    def _write_means(self, task: int, current: torch.Tensor | None = None) -> None:
        """Write the means of the exemplars into the head, and of the task's instances given their features."""
        features, targets = [], []
        if len(self.memory):
            stored = self.memory.looked_up(self.memory.instances)
            features.append(self._head.features(stored.rows))
            targets.append(stored.targets)
        if current is not None:
            features.append(current)
            targets.append(self.training.tasks[task].targets)
        phi = normalize(torch.cat(features), dim=1)
        one_hot = torch.cat(targets).double().cpu()
        means = normalize(one_hot.T @ phi, dim=1)
        bias = torch.where(one_hot.sum(0) > 0, 0.0, self._head.NOT_SEEN)
        device = self.training.learner.bank.device
        self._head.write(means.to(device), bias.to(device))

    def state(self) -> dict[str, Any]:
        """Return the memory, the trained head, and the targets of the task."""
        return super().state() | {"trained": self._trained, "answers": self._answers}

    def restore(self, state: dict[str, Any], task: int) -> None:
        """As `Method.restore`."""
        super().restore(state, task)
        self._trained, self._answers = state["trained"], state["answers"]


def _by_logits(logits: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
    """Return dL / dz, [B, C], for the binary cross-entropy averaged over the batch and its outputs."""
    return (logits.sigmoid() - answers) / logits.numel()
