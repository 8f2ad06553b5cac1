"""Optimisers on one flat tensor, and schedules of the learning rate."""

from __future__ import annotations

import math

import numpy as np
import torch

FIRST_DECAY = 0.9
SECOND_DECAY = 0.999
EPSILON = 1e-8


class Adam:
    """Adam (Kingma and Ba, 2015), by default without weight decay lambda.

    m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2;  x <- x - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps).

    Coupled decay, as in `torch.optim.Adam`: g <- g + lambda x. Decoupled, as in `torch.optim.AdamW` (Loshchilov and
    Hutter, 2019): x <- x - lr lambda x before the step.

    Args:
        values: the optimised tensor, modified in place by `step`.
        learning_rate: lr.
        weight_decay: lambda.
        decoupled: whether the decay is kept out of the gradient.

    Attributes:
        learning_rate: lr of the next step.
    """

    def __init__(
        self,
        values: torch.Tensor,
        learning_rate: float,
        weight_decay: float = 0.0,
        *,
        decoupled: bool = False,
    ) -> None:
        self._weight_decay = weight_decay
        self._decoupled = decoupled
        self.values = values
        self.learning_rate = learning_rate
        self.first = torch.zeros_like(values)
        self.second = torch.zeros_like(values)
        self.steps = 0
        """t, the number of steps taken."""

    @property
    def rule(self) -> str:
        """The name of the formula: adam, adamw (decoupled decay) or sgd."""
        return "adamw" if self._decoupled else "adam"

    @property
    def weight_decay(self) -> float:
        """The factor lambda of the weight decay."""
        return self._weight_decay

    def step(self, gradient: torch.Tensor) -> None:
        """Take one step along `gradient`, of the same shape as `values`."""
        if self._weight_decay and self._decoupled:
            self.values.mul_(1 - self.learning_rate * self._weight_decay)
        elif self._weight_decay:
            gradient = torch.add(gradient, self.values, alpha=self._weight_decay)
        self.steps += 1
        root = float(np.float32((1 - SECOND_DECAY**self.steps) ** 0.5))
        rate = float(np.float32(self.learning_rate / (1 - FIRST_DECAY**self.steps)))
        self.first.lerp_(gradient, 1 - FIRST_DECAY)
        self.second.mul_(SECOND_DECAY).addcmul_(gradient, gradient, value=1 - SECOND_DECAY)
        denominator = self.second.sqrt().div_(root).add_(EPSILON)
        step = (self.first * rate).div_(denominator)
        self.values.sub_(step)

    def forget(self) -> None:
        """Reset the state to that before the first step; the values are kept."""
        self.first.zero_()
        self.second.zero_()
        self.steps = 0

    def state(self) -> dict[str, torch.Tensor | int]:
        """Return the state for a checkpoint, without `values`."""
        return {"first": self.first, "second": self.second, "steps": self.steps}

    def restore(self, state: dict[str, torch.Tensor | int]) -> None:
        """Restore a state from `state`."""
        self.first.copy_(torch.as_tensor(state["first"]))
        self.second.copy_(torch.as_tensor(state["second"]))
        self.steps = int(state["steps"])


class SGD(Adam):
    """Stochastic gradient descent without momentum, x <- x - lr (g + lambda x); keeps no state."""

    @property
    def rule(self) -> str:
        """As `Adam.rule`."""
        return "sgd"

    def step(self, gradient: torch.Tensor) -> None:
        """As `Adam.step`."""
        self.steps += 1
        decayed = torch.add(gradient, self.values, alpha=self._weight_decay)
        self.values.sub_(decayed, alpha=self.learning_rate)


def make_optimizer(name: str, values: torch.Tensor, learning_rate: float, weight_decay: float) -> Adam:
    """Return the optimiser of a config's `optimizer` and `weight_decay`."""
    if name == "sgd":
        return SGD(values, learning_rate, weight_decay)
    return Adam(values, learning_rate, weight_decay, decoupled=name == "adamw")


def scheduled(schedule: str, epoch: int, epochs: int) -> float:
    """Return the factor of the learning rate in an epoch, from 0, of a task with `epochs` epochs.

    constant: 1. cosine: (1 + cos(pi epoch / epochs)) / 2 (Loshchilov and Hutter, 2017). step: 1, then 0.1 after half
    and 0.01 after three quarters of the epochs.
    """
    if schedule == "cosine":
        return (1 + math.cos(math.pi * epoch / epochs)) / 2
    if schedule == "step" and 4 * epoch >= 3 * epochs:
        return 0.01
    if schedule == "step" and 2 * epoch >= epochs:
        return 0.1
    return 1.0
