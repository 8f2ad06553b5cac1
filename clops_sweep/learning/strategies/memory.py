"""What GEM and MIR have in common: a buffer of instances that are drawn at random when a task ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clops_sweep.learning.replay import storage
from clops_sweep.learning.replay.buffer import Buffer, count_of
from clops_sweep.learning.strategies.base import InstanceRecord, Strategy, Training


class RandomMemory(Strategy):
    """Stores max(1, floor(b N_k)) instances of each task at its end; subclasses say what becomes of them.

    Where a step is within the run is kept here, as the counters of the random streams of a step.
    """

    def __init__(self, training: Training) -> None:
        super().__init__(training)
        self.buffer = Buffer()
        self._task = self._epoch = self._step = 0

    def begin_task(self, task: int) -> None:
        """Counts from the beginning of the task."""
        self._task, self._epoch, self._step = task, 0, 0

    def next_step(self) -> tuple[int, int, int]:
        """Task, epoch and step of the batch at hand, each from 0."""
        counters = (self._task, self._epoch, self._step)
        self._step += 1
        return counters

    def end_epoch(self) -> None:
        """Steps count from 0 in every epoch."""
        self._epoch, self._step = self._epoch + 1, 0

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
        """Buffer and place in the run."""
        return {"buffer": self.buffer.state(), "epoch": self._epoch}

    def restore(self, state: dict[str, Any], task: int) -> None:
        """Takes up a state that `state` returned during the given task."""
        self.buffer.restore(state["buffer"])
        self._task, self._epoch = task, state["epoch"]
