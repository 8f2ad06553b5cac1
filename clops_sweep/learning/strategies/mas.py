"""MAS: a quadratic penalty weighted by the sensitivity of the outputs to each parameter (Aljundi et al., 2018)."""

from __future__ import annotations

import torch

from clops_sweep.learning.strategies.quadratic_penalty import QuadraticPenalty


class MemoryAwareSynapses(QuadraticPenalty):
    """L + lambda sum_p Omega_p (theta_p - theta*_p)^2, theta* being the parameters at the end of the latest task.

    Omega is the sum over the past tasks of the sensitivity of the logits z,

        1 / n sum_i |d ||z(x_i)||^2 / d theta_p|

    over a task's n training instances, in evaluation mode; it needs no labels. lambda is `mas_strength`. Avalanche has
    ||z|| instead of its square, takes the absolute value of a batch's mean, and averages old and new Omega.
    """

    def end_task(self, task: int) -> None:
        """Add the sensitivity of the task's outputs to the parameters."""
        if task + 1 == len(self.training.tasks):
            return  # nothing is trained after the last task
        learner = self.learner
        rows = self.training.tasks[task].rows
        sensitivity = learner.mean_of_instance_gradients(rows, _squared_norm, of_each="abs")
        # The penalty holds 2 lambda Omega, as its gradient needs.
        self.penalty.importance.add_(sensitivity.mul_(2 * self.options.mas_strength))
        self.penalty.centre.copy_(learner.parameters.flat)


def _squared_norm(logits: torch.Tensor) -> torch.Tensor:
    """Return ||z||^2 of each instance, [B], from its logits z, [B, C]."""
    return logits.square().sum(1)
