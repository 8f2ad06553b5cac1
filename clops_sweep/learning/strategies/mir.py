"""MIR: each step replays the instances that it would harm most (Aljundi et al., 2019; as adapted by CLOPS)."""

from __future__ import annotations

import torch

from clops_sweep.experiment.plugins.values import count_of
from clops_sweep.learning.batches import Epoch, EpochBatch, Instances
from clops_sweep.learning.replay import storage
from clops_sweep.learning.replay.mini_batches import joined
from clops_sweep.learning.strategies.memory import RandomMemory


class MaximallyInterferedRetrieval(RandomMemory):
    """Every step after the first task replays the instances whose loss a virtual step would raise most.

    The virtual step is plain SGD on the current batch, theta' = theta - lr grad, with dropout and batch statistics, but
    without updating the running statistics. Candidates are a random floor(a |M_j|) of each past task; their score is
    l(theta') - l(theta) with dropout off and batch norm in evaluation mode.
    """

    def train_with_memory(self, current: Epoch, task: int, epoch: int) -> None:
        """Take steps with instances retrieved for each batch, from random candidates of each past task."""
        current.keep("virtual dropout", self.keys("virtual dropout", current, task, epoch))
        for past, places in self.places.items():
            count = count_of(self.training.config.acquisition_fraction, len(places))
            current.keep(f"candidates {past}", self.choices("candidates", current, places, count, task, epoch, past))
        self.training.learner.run_epoch(current, lambda batch: self._step(current, batch))

    def _step(self, current: Epoch, batch: EpochBatch) -> None:
        """Take one step on mean_I(l_i) + mean_J(l_j), where J is retrieved for this batch."""
        plain = batch.plain()
        replayed = self._retrieve(current, batch)
        if replayed is not None:
            most = round(self.training.config.replay_ratio * self.training.config.batch_size)
            plain = joined(plain, replayed, batch.number * most)
        self.training.learner.train_step(plain, current.kept("dropout keys"))

    def _retrieve(self, current: Epoch, batch: EpochBatch) -> Instances | None:
        """Return the most interfered instances, round(replay_ratio |I|) in total, or all candidates if fewer."""
        counts = self._shares(round(self.training.config.replay_ratio * len(batch.rows)), batch.number)
        if not any(counts):
            return None
        learner = self.training.learner
        keys = current.kept_for("virtual dropout", batch)
        _, gradient = learner.gradient(batch.plain(), keys, track_statistics=False)
        shift = -learner.learning_rate * gradient
        found = [
            self._most_interfered(current.kept_for(f"candidates {past}", batch), count, shift)
            for past, count in zip(self.places, counts, strict=True)
            if count
        ]
        return self.memory.replay(torch.cat(found))

    def _most_interfered(self, candidates: torch.Tensor, count: int, shift: torch.Tensor) -> torch.Tensor:
        """Return the places of the highest scores among candidates of a task, int64 [m]: int64 [count]."""
        learner, it = self.training.learner, self.memory.looked_up(self.memory.instances[candidates])
        scores = learner.losses(it.rows, it.targets, shift=shift) - learner.losses(it.rows, it.targets)
        return candidates[storage.highest(scores, min(count, len(candidates)))]

    def _shares(self, total: int, step: int) -> list[int]:
        """Return even shares of `total` for the past tasks; the remainder rotates from step to step."""
        tasks = len(self.places)
        return [total // tasks + ((index - step) % tasks < total % tasks) for index in range(tasks)]
