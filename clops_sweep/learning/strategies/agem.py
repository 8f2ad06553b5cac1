"""A-GEM: steps never oppose the gradient of a memory batch (Chaudhry et al., "Efficient lifelong learning", 2019).

A-GEM is averaged gradient episodic memory. Let g be the gradient of the batch, and r that of the mean loss over
`agem_batch_size` instances drawn from the memory. From the second task on each step follows

    g' = g - (<g, r> / <r, r>) r   if <g, r> < 0,   else g' = g.

GEM has a constraint for each past task. A-GEM has one for their average, so it needs no quadratic programme. The memory
is shared equally among the tasks so far. As in `gem`, r is taken with dropout on and batch norm in evaluation mode, and
Adam follows g'. So the constraint holds for the gradient, not for the step. Mammoth stores one batch of each task, and
takes r with batch norm in training mode.
"""

from __future__ import annotations

import numpy as np
import torch

from clops_sweep.learning import streams
from clops_sweep.learning.batches import Epoch, Replay
from clops_sweep.learning.method.memory import Policy
from clops_sweep.learning.replay.mini_batches import subsets
from clops_sweep.learning.strategies.fixed_memory import FixedMemory


class AveragedGEM(FixedMemory):
    """Steps along gradients that do not oppose the memory's gradient."""

    division: Policy = "task_balanced"

    def setup(self) -> None:
        """Create the memory."""
        if self.config.stream == "online":  # the tasks are unknown
            self.division = "reservoir"
        super().setup()
        self._projections = torch.zeros((), dtype=torch.int64, device=self.device)

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Take plain steps while the memory is empty, then steps along projected gradients."""
        learner = self.learner
        instances = self.training.tasks[task]
        batch_size = self.config.batch_size
        if not len(self.memory):
            learner.train_epoch(instances, replay, order, batch_size, dropout_keys)
            return
        current = learner.begin_epoch(instances, replay, order, batch_size, dropout_keys)
        self._keep_memory_batches(current, task, epoch)
        learner.train_along(current, ["memory"], self._projected)

    def _keep_memory_batches(self, current: Epoch, task: int, epoch: int) -> None:
        """Draw the instances behind r of each step, distinct within a step, and their dropout masks."""
        seed = self.training.seed
        steps = len(current.sizes)
        stored = len(self.memory)
        count = min(self.options.agem_batch_size, stored)
        drawn = subsets(streams.generator(seed, "memory batch", task, epoch), np.full(steps, stored), count)
        places = torch.from_numpy(drawn.flatten()).to(self.memory.index.device)
        keys = streams.keys(seed, "memory dropout", task, epoch).expand(steps, -1)
        draws = torch.arange(steps * count).view(steps, count)
        current.keep_memory("memory", self.memory.replay(places).instances, keys, draws)

    def _projected(self, g: torch.Tensor, memory_gradients: torch.Tensor) -> torch.Tensor:
        """Return g', [P], from g, [P], and r, [1, P]. Products are in float64."""
        r = memory_gradients[0]
        g_r = g.double().dot(r.double())
        r_r = r.double().dot(r.double())
        is_violated = g_r < 0
        self._projections += is_violated
        share = torch.where(is_violated, g_r / r_r, 0.0).to(g.dtype)
        return g - share * r.to(g.dtype)

    def counts(self) -> dict[str, int]:
        """Return the number of violated constraints."""
        return {"projections": int(self._projections)}
