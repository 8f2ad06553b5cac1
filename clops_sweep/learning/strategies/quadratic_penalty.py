"""Common base of EWC, SI and MAS: parameters that matter to past tasks are pulled back to their old values."""

from __future__ import annotations

import torch

from clops_sweep.learning.batches import Replay
from clops_sweep.learning.learners.penalty import Penalty
from clops_sweep.learning.method.strategy import Strategy


class QuadraticPenalty(Strategy):
    """Training on L + 1/2 sum_p a_p (theta_p - c_p)^2; subclasses update a and c at the end of a task.

    The gradient of the penalty, a (theta - c), is added to that of the loss, and Adam follows the sum. Batch norm's
    running statistics are not parameters, and follow the current task.

    Attributes:
        penalty: its `importance` is a, including the strength of the method; its `centre` is c.
    """

    stores = "statistics"

    def setup(self) -> None:
        """Set a to 0."""
        parameters = self.learner.parameters.flat
        self.penalty = Penalty(torch.zeros_like(parameters), parameters.clone())

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Take penalised steps; in the first task the penalty is 0."""
        del epoch
        training, size = self.training, self.config.batch_size
        training.learner.train_epoch(training.tasks[task], replay, order, size, dropout_keys, penalty=self.penalty)
