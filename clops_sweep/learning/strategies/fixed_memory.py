"""Common base of methods with a memory of fixed size: selection of its instances at the end of a task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.learning import streams
from clops_sweep.learning.batches import Replay
from clops_sweep.learning.method.memory import Memory, Policy
from clops_sweep.learning.method.strategy import Strategy
from clops_sweep.learning.method.training import InstanceRecord, MemoryUse
from clops_sweep.learning.replay.division import random_priorities
from clops_sweep.learning.replay.mini_batches import replay_batch_size, steps_of, subsets


class FixedMemory(Strategy):
    """Memory of `memory_size` instances, or of `memory_fraction` of all tasks' instances, from the first task on.

    At the end of a task all its instances are offered, each with a random priority that never changes. The division
    decides which ones are kept (see `division`). Once the memory is full, its size never changes.
    """

    stores = "raw"

    division: Policy = "reservoir"

    def setup(self) -> None:
        """Create the memory."""
        self.capacity = self.memory_size
        self.memory = Memory(self.capacity, self.division)

    def offer(self, task: int, priorities: torch.Tensor | None = None, positions: torch.Tensor | None = None) -> None:
        """Offer a task's instances; the memory keeps some of them and of its own.

        Args:
            task: index of the task.
            priorities: [n], of all its instances; random by default.
            positions: int64 [k], the offered instances; all by default.
        """
        new = self.instances(task)
        if priorities is None:
            priorities = random_priorities(self.training.seed, len(new), task).to(self.device)
        if positions is not None:
            new = new.at(positions)
            priorities = priorities[positions]
        self.memory.offer(new, priority=priorities)

    def end_task(self, task: int) -> None:
        """Offer the task's instances to the memory."""
        self.offer(task)

    def draws(self, task: int, epoch: int, sizes: NDArray[np.int64] | None = None) -> torch.Tensor:
        """Return the places to replay with each batch of an epoch, distinct within a batch: int64 [steps, M].

        Args:
            task: index of the current task.
            epoch: epoch of the task.
            sizes: int64 [steps], size of the memory at each step if it grows; by default its present size.
        """
        config = self.config
        size = len(self.memory)
        if sizes is None:
            sizes = np.full(steps_of(len(self.training.tasks[task].rows), config.batch_size), size)
        count = replay_batch_size(config.replay_ratio, config.batch_size, size)
        drawn = subsets(streams.generator(config.seed, "replay", task, epoch), sizes, count)
        return torch.from_numpy(drawn).to(self.memory.index.device)

    def drawn_replay(self, places: torch.Tensor) -> Replay:
        """Return the instances at the places of an epoch's batches, int64 [steps, M], batch by batch."""
        instances = self.memory.replay(places.flatten()).instances
        return Replay(instances, torch.ones(instances.rows.shape, device=instances.rows.device))

    def memory_use(self, records: Sequence[InstanceRecord]) -> MemoryUse:
        """Return the use of the memory, for all its instances."""
        del records
        return MemoryUse(len(self.memory), self.instance_bytes)
