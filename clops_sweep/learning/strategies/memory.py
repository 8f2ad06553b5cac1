"""Common base of GEM and MIR, which fill a memory at random at the end of a task."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import torch

from clops_sweep.experiment.plugins.values import count_of
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Epoch, Replay
from clops_sweep.learning.method.memory import Memory
from clops_sweep.learning.method.strategy import Strategy
from clops_sweep.learning.replay import storage


class RandomMemory(Strategy):
    """Stores max(1, floor(b N_k)) instances of each task at its end; subclasses use them in their steps.

    Attributes:
        places: places of the stored instances of each past task, int64 [m], during an epoch that uses them.
    """

    stores = "raw"

    def setup(self) -> None:
        """Create the memory."""
        self.memory = Memory(None)
        self.places: dict[int, torch.Tensor] = {}

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Take plain steps while the memory is empty, then steps that use it."""
        learner = self.learner
        instances = self.training.tasks[task]
        batch_size = self.config.batch_size
        self.places = self.memory.places_by_task()
        if not self.places:
            learner.train_epoch(instances, replay, order, batch_size, dropout_keys)
            return
        current = learner.begin_epoch(instances, replay, order, batch_size, dropout_keys)
        self.train_with_memory(current, task, epoch)

    @abstractmethod
    def train_with_memory(self, current: Epoch, task: int, epoch: int) -> None:
        """Take the steps of an epoch with a non-empty memory.

        All random draws are made before the first step, and kept in the epoch; steps themselves draw nothing.
        """

    def keys(self, name: str, current: Epoch, *counters: int) -> torch.Tensor:
        """Return dropout keys for each step of an epoch: int32 [steps, 2]. Counters: task, epoch, step, others."""
        seed = self.training.seed
        task, epoch, *others = counters
        words = [streams.key(seed, name, task, epoch, step, *others) for step in range(len(current.sizes))]
        return torch.from_numpy(np.array(words))

    def choices(self, name: str, current: Epoch, places: torch.Tensor, count: int, *counters: int) -> torch.Tensor:
        """Return `count` distinct places of [m] for each step: int64 [steps, count]; streams as in `keys`."""
        seed = self.training.seed
        task, epoch, *others = counters
        steps = range(len(current.sizes))
        drawn = [streams.choice(seed, len(places), count, name, task, epoch, step, *others) for step in steps]
        return places[torch.stack(drawn).to(places.device)]

    def end_task(self, task: int) -> None:
        """Store a random share `storage_fraction` of the task in the memory."""
        rows = self.training.tasks[task].rows
        count = count_of(self.config.storage_fraction, len(rows))
        chosen = storage.select("random", rows, count, self.training.seed, task)
        self.memory.add(self.instances(task).at(chosen))
