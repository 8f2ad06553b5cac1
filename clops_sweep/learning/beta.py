"""Task-instance parameters beta: one scalar an instance of the current task, learned with the network."""

from __future__ import annotations

from typing import Any

import torch

from clops_sweep.learning.adam import Adam


class TaskInstanceParameters:
    """beta of one task for S runs (CLOPS, section 4.1).

    The loss of a batch whose current instances are I holds mean_I(beta_i l_i) + lambda mean_I((beta_i - 1)^2), so

        d L / d beta_i = l_i / |I| + 2 lambda (beta_i - 1) / |I|     for i in I, and 0 for every other instance.

    Adam runs over the task's whole vector: an instance outside the batch still moves by its momentum.

    Args:
        runs: S.
        instances: n, the task's training instances.
        penalty: lambda.
        learning_rate: eta.
        device: where the vectors live.
    """

    def __init__(self, runs: int, instances: int, penalty: float, learning_rate: float, device: torch.device) -> None:
        self.values = torch.ones(runs, instances, device=device)
        self.penalty = penalty
        self.optimizer = Adam(self.values, learning_rate)
        self.history: list[torch.Tensor] = []

    def step(self, positions: torch.Tensor, current: torch.Tensor, counts: torch.Tensor, losses: torch.Tensor) -> None:
        """One Adam step from one batch.

        Args:
            positions: int64 [S, B], the instances' positions in the task; any value where not current.
            current: bool [S, B], which of the batch's instances belong to the current task.
            counts: float32 [S, 1], |I|.
            losses: float32 [S, B], l_i.
        """
        self.optimizer.step(self.gradient(positions, current, counts, losses))

    def gradient(
        self, positions: torch.Tensor, current: torch.Tensor, counts: torch.Tensor, losses: torch.Tensor
    ) -> torch.Tensor:
        """d L / d beta, float32 [S, n]; arguments as in `step`."""
        inside = torch.where(current, positions, 0)
        pull = 2 * self.penalty * (self.values.gather(1, inside) - 1)
        terms = torch.where(current, (losses + pull) / counts.clamp_min(1), 0.0)
        return torch.zeros_like(self.values).scatter_add_(1, inside, terms)

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
