"""A-GEM: steps never oppose the gradient of a memory batch (Chaudhry et al., "Efficient lifelong learning", 2019).

A-GEM is averaged gradient episodic memory. Let g be the gradient of the batch, and r that of the mean loss over
`agem_batch_size` instances drawn from the memory. From the second task on each step follows

    g' = g - (<g, r> / <r, r>) r   if <g, r> < 0,   else g' = g.

GEM has a constraint for each past task. A-GEM has one for their average, so it needs no quadratic programme. The memory
is shared equally among the tasks so far. As in `gem`, r is taken with dropout on and batch norm in evaluation mode, and
Adam follows g'. So the constraint holds for the gradient, not for the step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from clops_sweep.learning import streams
from clops_sweep.learning.batches import Replay
from clops_sweep.learning.replay.mini_batches import subsets
from clops_sweep.learning.strategies.base import Training
from clops_sweep.learning.strategies.fixed_memory import FixedMemory


class AveragedGEM(FixedMemory):
    """Steps along gradients that do not oppose the memory's gradient."""

    division = "task_balanced"

    def __init__(self, training: Training) -> None:
        super().__init__(training)
        if training.config.stream == "online":  # the tasks are unknown
            self.division = "reservoir"
        self._projections = torch.zeros((), dtype=torch.int64, device=training.learner.bank.device)

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Take plain steps while the memory is empty, then steps along projected gradients."""
        training, instances = self.training, self.training.tasks[task]
        learner, batch_size = training.learner, training.config.batch_size
        if not len(self.memory):
            learner.train_epoch(instances, replay, order, batch_size, dropout_keys)
            return
        current = learner.begin_epoch(instances, replay, order, batch_size, dropout_keys)
        steps, size = len(current.sizes), len(self.memory)
        count = min(training.config.options["agem_batch_size"], size)
        generator = streams.generator(training.seed, "memory batch", task, epoch)
        drawn = subsets(generator, np.full(steps, size), count)
        places = torch.from_numpy(drawn.reshape(-1)).to(self.memory.instances.device)
        keys = streams.keys(training.seed, "memory dropout", task, epoch).expand(steps, -1)
        current.keep_memory("memory", self.memory.replay(places), keys, torch.arange(steps * count).view(steps, -1))
        learner.train_along(current, ["memory"], self._projected)

    def _projected(self, gradients: torch.Tensor, references: torch.Tensor) -> torch.Tensor:
        """Return g', [P], from g, [P], and r, [1, P]. Products are in float64."""
        g, r = gradients.double(), references[0].double()
        agreement, length = r.dot(g), r.dot(r)
        violated = agreement < 0
        self._projections += violated
        share = torch.where(violated, agreement / length, 0.0).to(gradients.dtype)
        return gradients - share * references[0].to(gradients.dtype)

    def counts(self) -> dict[str, int]:
        """Return the number of violated constraints."""
        return {"projections": int(self._projections)}

    def state(self) -> dict[str, Any]:
        """Return memory and counts."""
        return super().state() | {"projections": self._projections}

    def restore(self, state: dict[str, Any], task: int) -> None:
        """Restore a state from `state` during the given task."""
        super().restore(state, task)
        self._projections.copy_(state["projections"])
