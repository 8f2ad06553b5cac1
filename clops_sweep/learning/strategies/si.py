"""SI: a quadratic penalty weighted by each parameter's share in lowering the loss (Zenke et al., 2017)."""

from __future__ import annotations

from dataclasses import replace

import torch

from clops_sweep.learning.strategies.quadratic_penalty import QuadraticPenalty


class SynapticIntelligence(QuadraticPenalty):
    """L + c sum_p Omega_p (theta_p - theta~_p)^2, theta~ being the parameters at the end of the latest task.

    During a task, each step adds its expected decrease of the loss, to first order: with the gradient g of the loss
    alone and Adam's change of the parameters,

        w_p <- w_p - g_p (theta_p' - theta_p),

    and at the task's end Omega_p <- max(0, Omega_p + w_p / ((theta_p - theta~_p)^2 + xi)), as in the authors' code. c
    is `si_strength` and xi `si_damping`. The paper, and Mammoth, have no max. Mammoth clips the entries of each step's
    gradient to [-1, 1].
    """

    def setup(self) -> None:
        """Set Omega and w to 0."""
        super().setup()
        self._path = torch.zeros_like(self.penalty.importance)
        """w."""
        self.penalty = replace(self.penalty, path=self._path)

    def end_task(self, task: int) -> None:
        """Update Omega, set theta~ to theta, and w to 0. The penalty holds 2 c Omega, as its gradient needs."""
        del task
        c, xi = self.options.si_strength, self.options.si_damping
        w = self._path
        theta = self.learner.parameters.flat
        theta_before = self.penalty.centre
        damped_square = (theta - theta_before).square_().add_(xi)
        self.penalty.importance.add_(2 * c * w / damped_square).clamp_min_(0)
        theta_before.copy_(theta)
        w.zero_()
