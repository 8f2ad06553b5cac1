"""Adam on one flat tensor (Kingma and Ba, 2015), without weight decay."""

from __future__ import annotations

import torch

FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2;  x <- x - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps).

    Elementwise, so that the parameters of S runs are advanced by one call, each as if it were alone.

    Args:
        values: what is optimised, changed in place by `step`.
        learning_rate: lr.
    """

    def __init__(self, values: torch.Tensor, learning_rate: float) -> None:
        self.values = values
        self.learning_rate = learning_rate
        self.first = torch.zeros_like(values)
        self.second = torch.zeros_like(values)
        self.steps = 0

    def step(self, gradient: torch.Tensor) -> None:
        """Advances `values` by one step along `gradient`, of the same shape."""
        self.steps += 1
        self.first.lerp_(gradient, 1 - FIRST_DECAY)
        self.second.mul_(SECOND_DECAY).addcmul_(gradient, gradient, value=1 - SECOND_DECAY)
        correction = 1 - SECOND_DECAY**self.steps
        denominator = self.second.sqrt().div_(correction**0.5).add_(EPSILON)
        self.values.addcdiv_(self.first, denominator, value=-self.learning_rate / (1 - FIRST_DECAY**self.steps))

    def state(self) -> dict[str, torch.Tensor | int]:
        """What a checkpoint needs besides `values`."""
        return {"first": self.first, "second": self.second, "steps": self.steps}

    def restore(self, state: dict[str, torch.Tensor | int]) -> None:
        """Takes up a state that `state` returned."""
        self.first.copy_(torch.as_tensor(state["first"]))
        self.second.copy_(torch.as_tensor(state["second"]))
        self.steps = int(state["steps"])
