"""MIR: each step replays the instances that it would harm most (Aljundi et al., 2019; as adapted by CLOPS)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from clops_sweep.experiment.plugins.values import count_of
from clops_sweep.learning.batches import Epoch, EpochBatch, Instances
from clops_sweep.learning.replay import storage
from clops_sweep.learning.replay.mini_batches import joined
from clops_sweep.learning.strategies.memory import RandomMemory


class MaximallyInterferedRetrieval(RandomMemory):
    """Every step after the first task replays the instances whose loss a virtual step would raise most.

    The virtual step is plain SGD on the current batch I, with dropout and batch statistics, but without updating the
    running statistics:

        theta' = theta - eta grad mean_I(l_i).

    Candidates are a random floor(a |M_j|) of each past task. J are those with the highest

        s(x) = l(x; theta') - l(x; theta),

    with dropout off and batch norm in evaluation mode, and the step minimises mean_I(l_i) + mean_J(l_j). The authors
    draw candidates from all past tasks together.
    """

    def train_with_memory(self, current: Epoch, task: int, epoch: int) -> None:
        """Take steps with instances retrieved for each batch, from random candidates of each past task."""
        current.keep("virtual dropout", self.keys("virtual dropout", current, task, epoch))
        for past, places in self.places.items():
            count = count_of(self.config.acquisition_fraction, len(places))
            current.keep(f"candidates {past}", self.choices("candidates", current, places, count, task, epoch, past))
        self.learner.run_epoch(current, lambda batch: self._step(current, batch))

    def _step(self, current: Epoch, batch: EpochBatch) -> None:
        """Take one step on mean_I(l_i) + mean_J(l_j), where J is retrieved for this batch."""
        config = self.config
        step_on = batch.plain()
        counts = self._shares(round(config.replay_ratio * len(batch.rows)), batch.number)
        if any(counts):
            most = round(config.replay_ratio * config.batch_size)
            step_on = joined(step_on, self._retrieve(current, batch, counts), batch.number * most)
        self.learner.train_step(step_on, current.kept("dropout keys"))

    def _retrieve(self, current: Epoch, batch: EpochBatch, counts: Sequence[int]) -> Instances:
        """Return J: of the candidates of each past task as many as `counts` says, or all if they are fewer."""
        learner = self.learner
        keys = current.kept_for("virtual dropout", batch)
        _, gradient = learner.gradient(batch.plain(), keys, track_statistics=False)
        virtual_step = -learner.learning_rate * gradient
        retrieved = []
        for past, count in zip(self.places, counts, strict=True):
            if count:
                candidates = current.kept_for(f"candidates {past}", batch)
                retrieved.append(self._most_interfered(candidates, count, virtual_step))
        return self.memory.replay(torch.cat(retrieved)).instances

    def _most_interfered(self, candidates: torch.Tensor, count: int, virtual_step: torch.Tensor) -> torch.Tensor:
        """Return the places of the highest scores among candidates of a task, int64 [m]: int64 [count]."""
        learner = self.learner
        instances = self.memory.at(candidates).instances
        after = learner.losses(instances.rows, instances.targets, shift=virtual_step)
        before = learner.losses(instances.rows, instances.targets)
        return candidates[storage.highest(after - before, min(count, len(candidates)))]

    def _shares(self, total: int, step: int) -> list[int]:
        """Return even shares of `total` for the past tasks; the remainder rotates from step to step."""
        tasks = len(self.places)
        share, remainder = divmod(total, tasks)
        return [share + ((task - step) % tasks < remainder) for task in range(tasks)]
