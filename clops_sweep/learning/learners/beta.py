"""Task-instance parameters beta: one scalar an instance of the current task, learned with the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from clops_sweep.learning.batches import EpochBatch
from clops_sweep.learning.learners.optimizers import Adam


class TaskInstanceParameters:
    """beta of one task for S runs (CLOPS, section 4.1).

    The loss of a batch whose current instances are I holds mean_I(w_i beta_i l_i) + lambda mean_I((beta_i - 1)^2), w_i
    being the weight of its class (1 unless `class_weights` is set), so

        d L / d beta_i = w_i l_i / |I| + 2 lambda (beta_i - 1) / |I|     for i in I, and 0 for every other instance.

    Adam runs over the task's whole vector: an instance outside the batch still moves by its momentum.

    Args:
        instances: n, the task's training instances.
        penalties: lambda of each run.
        learning_rates: eta of each run. With 0 beta stays at 1, and the run is as one without beta.
        device: where the vectors live.
    """

    def __init__(
        self, instances: int, penalties: Sequence[float], learning_rates: Sequence[float], device: torch.device
    ) -> None:
        self.values = torch.ones(len(penalties), instances, device=device)
        self.learning_rates = learning_rates
        self.penalties = penalties
        self._twice_penalties = 2 * torch.tensor(penalties, dtype=torch.float32, device=device)[:, None]
        self.optimizer = Adam(self.values, learning_rates)
        self.history: list[torch.Tensor] = []

    def weighted(self, batch: EpochBatch) -> torch.Tensor:
        """The batch's weights with those of current instances multiplied by beta: float32 [S, B]."""
        return torch.where(batch.current, batch.weights * self.values.gather(1, batch.positions), batch.weights)

    def step(self, batch: EpochBatch, losses: torch.Tensor) -> None:
        """One Adam step from one batch and its losses l_i, float32 [S, B]."""
        self.optimizer.step(self.gradient(batch, losses))

    def gradient(self, batch: EpochBatch, losses: torch.Tensor) -> torch.Tensor:
        """The gradient d L / d beta, float32 [S, n]; arguments as in `step`."""
        pull = (self.values.gather(1, batch.positions) - 1) * self._twice_penalties
        terms = torch.where(batch.current, (batch.factors * losses + pull) / batch.current_count, 0)
        return torch.zeros_like(self.values).scatter_add_(1, batch.positions, terms)

    def record(self) -> None:
        """Takes down the vector at the end of an epoch."""
        self.history.append(self.values.clone())

    def trajectories(self) -> torch.Tensor:
        """The recorded vectors: float32 [S, epochs, n]."""
        return torch.stack(self.history, dim=1)

    def state(self) -> dict[str, Any]:
        """What a checkpoint needs."""
        return {"values": self.values, "optimizer": self.optimizer.state(), "history": self.history}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes up a state that `state` returned."""
        self.values.copy_(state["values"])
        self.optimizer.restore(state["optimizer"])
        self.history = list(state["history"])
