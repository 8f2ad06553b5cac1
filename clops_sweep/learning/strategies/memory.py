"""Common base of GEM and MIR: a buffer of instances drawn at random at the end of a task."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from clops_sweep.experiment.plugins.values import count_of
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Epoch, Replay
from clops_sweep.learning.replay import storage
from clops_sweep.learning.replay.buffer import Buffer
from clops_sweep.learning.strategies.base import InstanceRecord, LockstepStrategy, Training


class RandomMemory(LockstepStrategy):
    """Stores max(1, floor(b N_k)) instances of each task at its end; subclasses use them in their steps."""

    stores = "raw"

    def __init__(self, training: Training) -> None:
        super().__init__(training)
        self.buffer = Buffer()

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Take plain steps while the buffer is empty, then steps that use it."""
        training, instances = self.training, self.training.tasks[task]
        learner, batch_size = training.learner, training.config.batch_size
        if not len(self.buffer):
            learner.train_epoch(instances, replay, order, batch_size, dropout_keys)
            return
        current = learner.begin_epoch(instances, replay, order, batch_size, dropout_keys)
        self.draw(current, task, epoch)
        self.train_with_memory(current)

    @abstractmethod
    def draw(self, current: Epoch, task: int, epoch: int) -> None:
        """Make all random draws of an epoch's steps and keep them in the epoch; steps themselves draw nothing."""

    @abstractmethod
    def train_with_memory(self, current: Epoch) -> None:
        """Take the steps of an epoch with a non-empty buffer."""

    def keys(self, name: str, current: Epoch, *counters: int) -> torch.Tensor:
        """Return dropout keys for each step of an epoch: int32 [steps, S, 2]. Counters: task, epoch, step, others."""
        seeds, (task, epoch, *others) = self.training.seeds, counters
        words = [
            [streams.key(seed, name, task, epoch, step, *others) for seed in seeds]
            for step in range(len(current.sizes))
        ]
        return torch.from_numpy(np.array(words))

    def choices(self, name: str, current: Epoch, size: int, count: int, *counters: int) -> torch.Tensor:
        """Return `count` distinct indices below `size` for each step: int64 [steps, S, count]; streams as in `keys`."""
        seeds, (task, epoch, *others) = self.training.seeds, counters
        steps = range(len(current.sizes))
        return torch.stack([streams.choices(seeds, size, count, name, task, epoch, step, *others) for step in steps])

    def end_task(self, task: int) -> None:
        """Store a random share `storage_fraction` of the task in the buffer."""
        instances = self.training.tasks[task]
        count = count_of(self.training.config.storage_fraction, instances.rows.shape[1])
        chosen = storage.select("random", instances.rows, count, self.training.seeds, task)
        self.buffer.add(task, chosen, instances)

    def record(self, task: int) -> InstanceRecord:
        """Return the stored instances, and their numbers of uses."""
        record = super().record(task)
        positions = self.buffer.portions[task].positions
        return replace(
            record,
            stored=record.stored.scatter(1, positions, True),
            times_replayed=self.buffer.times_replayed(task, record.stored.shape[1]),
        )

    def state(self) -> dict[str, Any]:
        """Return the buffer."""
        return {"buffer": self.buffer.state()}

    def restore(self, state: dict[str, Any], task: int) -> None:
        """Restore a state from `state` during the given task."""
        del task
        self.buffer.restore(state["buffer"])
