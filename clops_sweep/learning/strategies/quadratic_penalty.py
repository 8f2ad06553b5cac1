"""Common base of EWC, SI and MAS: parameters that matter to past tasks are pulled back to their old values."""

from __future__ import annotations

from typing import Any

import torch

from clops_sweep.learning.batches import Replay
from clops_sweep.learning.learners.penalty import Penalty
from clops_sweep.learning.strategies.base import Method, Training


class QuadraticPenalty(Method):
    """Training on L + 1/2 sum_p a_p (theta_p - c_p)^2; subclasses update a and c at the end of a task.

    The gradient of the penalty, a (theta - c), is added to that of the loss, and Adam follows the sum. Batch norm's
    running statistics are not parameters, and follow the current task.

    Attributes:
        importance: a, including the strength of the method, laid out like `Parameters.flat`.
        centre: c.
    """

    stores = "statistics"

    def __init__(self, training: Training) -> None:
        super().__init__(training)
        parameters = training.learner.parameters.flat
        self.importance, self.centre = torch.zeros_like(parameters), parameters.clone()
        self.penalty = Penalty(self.importance, self.centre)

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Take penalised steps; in the first task the penalty is 0."""
        del epoch
        training, size = self.training, self.training.config.batch_size
        training.learner.train_epoch(training.tasks[task], replay, order, size, dropout_keys, penalty=self.penalty)

    def state(self) -> dict[str, Any]:
        """Return importance and centre."""
        return {"importance": self.importance, "centre": self.centre}

    def restore(self, state: dict[str, Any], task: int) -> None:
        """Restore a state from `state` during the given task."""
        del task
        self.importance.copy_(state["importance"])
        self.centre.copy_(state["centre"])
