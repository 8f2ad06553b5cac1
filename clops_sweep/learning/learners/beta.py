"""Task-instance parameters beta: one scalar per instance of the current task, learned with the network."""

from __future__ import annotations

from typing import Any

import torch

from clops_sweep.learning.batches import EpochBatch
from clops_sweep.learning.learners.optimizers import Adam


class TaskInstanceParameters:
    """beta of one task (CLOPS, section 4.1).

    The loss of a batch with current instances I contains mean_I(w_i beta_i l_i) + lambda mean_I((beta_i - 1)^2), with
    class weights w_i (1 unless `class_weights` is set), so

        d L / d beta_i = w_i l_i / |I| + 2 lambda (beta_i - 1) / |I|     for i in I, and 0 for every other instance.

    Adam updates the task's whole vector: instances outside the batch still move by their momentum.

    Args:
        instances: n, the number of the task's training instances.
        penalty: lambda.
        learning_rate: eta.
        device: device of the vector.
    """

    def __init__(self, instances: int, penalty: float, learning_rate: float, device: torch.device) -> None:
        self.values = torch.ones(instances, device=device)
        self.penalty = penalty
        self.optimizer = Adam(self.values, learning_rate)
        self.history: list[torch.Tensor] = []

    def weighted(self, batch: EpochBatch) -> torch.Tensor:
        """Return the batch's weights, multiplied by beta for current instances: float32 [B]."""
        return torch.where(batch.current, batch.weights * self.values[batch.positions], batch.weights)

    def step(self, batch: EpochBatch, losses: torch.Tensor) -> None:
        """Take one Adam step on a batch with losses l_i, float32 [B]."""
        self.optimizer.step(self.gradient(batch, losses))

    def gradient(self, batch: EpochBatch, losses: torch.Tensor) -> torch.Tensor:
        """Return the gradient d L / d beta, float32 [n]; arguments as in `step`."""
        pull = (self.values[batch.positions] - 1) * (2 * self.penalty)
        terms = torch.where(batch.current, (batch.factors * losses + pull) / batch.current_count, 0)
        return torch.zeros_like(self.values).scatter_add_(0, batch.positions, terms)

    def record(self) -> None:
        """Record the vector at the end of an epoch."""
        self.history.append(self.values.clone())

    def trajectories(self) -> torch.Tensor:
        """Return the recorded vectors: float32 [epochs, n]."""
        return torch.stack(self.history)

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {"values": self.values, "optimizer": self.optimizer.state(), "history": self.history}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state from `state`."""
        self.values.copy_(state["values"])
        self.optimizer.restore(state["optimizer"])
        self.history = list(state["history"])
