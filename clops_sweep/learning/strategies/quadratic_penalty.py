"""What EWC, SI and MAS have in common: parameters that past tasks need are pulled back to where they were."""

from __future__ import annotations

from typing import Any

import torch

from clops_sweep.learning.batches import EpochBatch, Replay
from clops_sweep.learning.strategies.base import Strategy, Training


class QuadraticPenalty(Strategy):
    """Training on L + 1/2 sum_p a_p (theta_p - c_p)^2; subclasses say what a and c become when a task ends.

    The gradient of the penalty, a (theta - c), is added to that of the loss, and Adam follows the sum. Batch norm's
    running statistics are no parameters, and go where the current task takes them.

    Attributes:
        importance: a, with the strength of the method in it, laid out like `Parameters.flat`.
        centre: c.
    """

    def __init__(self, training: Training) -> None:
        super().__init__(training)
        self.importance = torch.zeros_like(training.learner.parameters.flat)
        self.centre = training.learner.parameters.flat.clone()

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Plain steps in the first task, of which nothing is known before it ends; then penalised ones."""
        if not task:
            super().train_epoch(task, epoch, replay, order, dropout_keys)
            return
        self.train_penalised(task, replay, order, dropout_keys)

    def train_penalised(
        self, task: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """An epoch of penalised steps."""
        training = self.training
        current = training.learner.begin_epoch(
            training.tasks[task], replay, order, training.config.batch_size, dropout_keys
        )
        keys = current.kept("dropout keys")
        training.learner.run_epoch(current, lambda batch, phase: self.step(batch, keys))

    def step(self, batch: EpochBatch, dropout_keys: torch.Tensor) -> None:
        """One step along the gradient of the sum."""
        learner = self.training.learner
        _, gradient = learner.gradient(batch.plain(), dropout_keys)
        learner.apply_penalised(gradient, self.importance, self.centre)

    def of_each_run(self, option: str) -> torch.Tensor:
        """The value that an option has in each run, laid out like the parameters."""
        parameters, configs = self.training.learner.parameters, self.training.configs
        values = torch.tensor([config.options[option] for config in configs], device=parameters.flat.device)
        return parameters.from_runs(values[:, None].expand(-1, parameters.flat.numel() // len(configs)))

    def state(self) -> dict[str, Any]:
        """Importance and centre."""
        return {"importance": self.importance, "centre": self.centre}

    def restore(self, state: dict[str, Any], task: int) -> None:
        """Takes up a state that `state` returned during the given task."""
        del task
        self.importance.copy_(state["importance"])
        self.centre.copy_(state["centre"])
