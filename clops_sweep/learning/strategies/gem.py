"""GEM: gradients that would undo a past task are projected (Lopez-Paz and Ranzato, 2017; as adapted by CLOPS)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from clops_sweep.learning import streams
from clops_sweep.learning.batches import Batch, EpochBatch
from clops_sweep.learning.projection import project
from clops_sweep.learning.replay.buffer import Portion
from clops_sweep.learning.strategies.base import Training
from clops_sweep.learning.strategies.memory import RandomMemory

_MEMORY_BATCH = 256


class GradientEpisodicMemory(RandomMemory):
    """Every step after the first task follows a gradient that agrees with each past task's memory gradient.

    Adam follows the projected gradient. Its step is not parallel to it, so the constraints hold for the gradient and
    not for the step: with a plain-SGD step they would hold for both.
    """

    def __init__(self, training: Training) -> None:
        super().__init__(training)
        self._projections = torch.zeros(len(training.seeds), dtype=torch.int64)
        self._failures = torch.zeros(len(training.seeds), dtype=torch.int64)

    def train_with_memory(self, batch: EpochBatch, dropout_keys: torch.Tensor, place: tuple[int, int, int]) -> None:
        """One step along the projected gradient, or along the plain one where nothing objects or the solver fails."""
        learner = self.training.learner
        rows = learner.parameters.by_run
        memory = torch.stack([rows(self._memory_gradient(portion, place)) for portion in self.buffer.portions], dim=1)
        _, gradient = learner.gradient(batch.plain(), dropout_keys)
        learner.apply(learner.parameters.from_runs(self._projected(rows(gradient), memory)))

    def _memory_gradient(self, portion: Portion, place: tuple[int, int, int]) -> torch.Tensor:
        """g_j: the gradient of the mean loss over a past task's memory, at most 256 of it drawn afresh."""
        runs, size = portion.rows.shape
        count = min(size, _MEMORY_BATCH)
        chosen = torch.arange(size).repeat(runs, 1)
        if count < size:
            chosen = streams.choices(self.training.seeds, size, count, "memory batch", *place, portion.task)
        chosen = chosen.to(portion.rows.device)
        used = portion.replay(chosen)
        weights = torch.full(chosen.shape, 1 / count, device=chosen.device)
        keys = streams.keys(self.training.seeds, "memory dropout", *place, portion.task).to(chosen.device)
        draws = torch.arange(count, device=chosen.device)
        return self.training.learner.memory_gradient(
            Batch(used.instances.rows, used.instances.targets, weights, draws), keys
        )

    def _projected(self, gradients: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        """Each run's projection: gradients [S, P] and memory gradients [S, J, P] to [S, P]."""
        results = []
        host_memory = memory.cpu().numpy()
        for run, gradient in enumerate(gradients.cpu().numpy()):
            projected = project(gradient, host_memory[run])
            self._projections[run] += projected.violated
            self._failures[run] += not projected.solved
            results.append(projected.gradient.astype(np.float32))
        return torch.from_numpy(np.stack(results)).to(gradients.device)

    def counts(self) -> dict[str, list[int]]:
        """How often a past task objected, and how often no projection could be found."""
        return {"projections": self._projections.tolist(), "projection_failures": self._failures.tolist()}

    def state(self) -> dict[str, Any]:
        """Buffer and counts."""
        return super().state() | {"projections": self._projections, "failures": self._failures}

    def restore(self, state: dict[str, Any], task: int) -> None:
        """Takes up a state that `state` returned during the given task."""
        super().restore(state, task)
        self._projections.copy_(state["projections"])
        self._failures.copy_(state["failures"])
