"""Other optimisers than plain Adam, on the same flat tensor, and schedules of the learning rate."""

from __future__ import annotations

import math

import torch

from clops_sweep.learning.learners.adam import Adam


class DecayedAdam(Adam):
    """Adam with weight decay lambda.

    Coupled, as in `torch.optim.Adam`: g <- g + lambda x. Decoupled, as in `torch.optim.AdamW` (Loshchilov and Hutter,
    2019): x <- x - lr lambda x before the step.

    Args:
        values: what is optimised, changed in place by `step`.
        learning_rate: lr.
        weight_decay: lambda.
        decoupled: whether the decay is kept out of the gradient.
    """

    def __init__(self, values: torch.Tensor, learning_rate: float, weight_decay: float, *, decoupled: bool) -> None:
        super().__init__(values, learning_rate)
        self._weight_decay, self._decoupled = weight_decay, decoupled

    def step(self, gradient: torch.Tensor) -> None:
        """As `Adam.step`."""
        if self._decoupled:
            assert isinstance(self.learning_rate, float)
            self.values.mul_(1 - self.learning_rate * self._weight_decay)
        else:
            gradient = torch.add(gradient, self.values, alpha=self._weight_decay)
        super().step(gradient)


class SGD(Adam):
    """x <- x - lr (g + lambda x): stochastic gradient descent without momentum; keeps no state.

    Args:
        values: what is optimised, changed in place by `step`.
        learning_rate: lr.
        weight_decay: lambda.
    """

    def __init__(self, values: torch.Tensor, learning_rate: float, weight_decay: float) -> None:
        super().__init__(values, learning_rate)
        self._weight_decay = weight_decay

    def step(self, gradient: torch.Tensor) -> None:
        """As `Adam.step`."""
        assert isinstance(self.learning_rate, float)
        self.steps += 1
        self.values.sub_(torch.add(gradient, self.values, alpha=self._weight_decay), alpha=self.learning_rate)


def make_optimizer(name: str, values: torch.Tensor, learning_rate: float, weight_decay: float) -> Adam:
    """The optimiser that `optimizer` and `weight_decay` of a config name."""
    if name == "sgd":
        return SGD(values, learning_rate, weight_decay)
    if weight_decay:
        return DecayedAdam(values, learning_rate, weight_decay, decoupled=name == "adamw")
    return Adam(values, learning_rate)


def scheduled(schedule: str, epoch: int, epochs: int) -> float:
    """The factor of the learning rate in an epoch, counted from 0, of a task's `epochs`.

    constant: 1. cosine: (1 + cos(pi epoch / epochs)) / 2 (Loshchilov and Hutter, 2017). step: 1, from half of the
    epochs on 0.1, from three quarters on 0.01.
    """
    if schedule == "cosine":
        return (1 + math.cos(math.pi * epoch / epochs)) / 2
    if schedule == "step":
        return 0.01 if 4 * epoch >= 3 * epochs else 0.1 if 2 * epoch >= epochs else 1.0
    return 1.0
