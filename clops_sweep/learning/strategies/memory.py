"""What GEM and MIR have in common: a buffer of instances that are drawn at random when a task ends."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import torch

from clops_sweep.learning.batches import EpochBatch, Replay, epoch_batches
from clops_sweep.learning.replay import storage
from clops_sweep.learning.replay.buffer import Buffer, count_of
from clops_sweep.learning.strategies.base import InstanceRecord, Strategy, Training


class RandomMemory(Strategy):
    """Stores max(1, floor(b N_k)) instances of each task at its end; subclasses say how a step makes use of them."""

    def __init__(self, training: Training) -> None:
        super().__init__(training)
        self.buffer = Buffer()

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Step by step, each with its own place in the run."""
        batches = epoch_batches(self.training.tasks[task], replay, order, self.training.config.batch_size)
        for step, batch in enumerate(batches):
            if len(self.buffer):
                self.train_with_memory(batch, dropout_keys, (task, epoch, step))
            else:
                self.training.learner.train_step(batch.plain(), dropout_keys)

    @abstractmethod
    def train_with_memory(self, batch: EpochBatch, dropout_keys: torch.Tensor, place: tuple[int, int, int]) -> None:
        """One step while something is stored. `place` is (task, epoch, step): the counters of its random streams."""

    def end_task(self, task: int) -> None:
        """The share `storage_fraction` of the task goes into the buffer, at random."""
        instances = self.training.tasks[task]
        count = count_of(self.training.config.storage_fraction, instances.rows.shape[1])
        chosen = storage.select("random", instances.rows, count, self.training.seeds, task)
        self.buffer.add(task, chosen, instances)

    def record(self, task: int) -> InstanceRecord:
        """What was stored, and how often it was used."""
        record = super().record(task)
        positions = self.buffer.portions[task].positions
        return replace(
            record,
            stored=record.stored.scatter(1, positions, True),
            times_replayed=self.buffer.times_replayed(task, record.stored.shape[1]),
        )

    def state(self) -> dict[str, Any]:
        """The buffer."""
        return {"buffer": self.buffer.state()}

    def restore(self, state: dict[str, Any], task: int) -> None:
        """Takes up a state that `state` returned during the given task."""
        del task
        self.buffer.restore(state["buffer"])
