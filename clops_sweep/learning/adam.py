"""Adam on one flat tensor (Kingma and Ba, 2015), without weight decay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2;  x <- x - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps).

    Elementwise, so that the parameters of S runs are advanced by one call, each as if it were alone.

    The factors that depend on t are looked up on the device: steps that were announced by `prepare` need nothing from
    the host, and may be captured once and replayed.

    Args:
        values: what is optimised, changed in place by `step`.
        learning_rate: lr, a number, or one for each row of `values`, [S, n].
    """

    def __init__(self, values: torch.Tensor, learning_rate: float | Sequence[float]) -> None:
        self.values = values
        self.learning_rate = learning_rate
        self.first = torch.zeros_like(values)
        self.second = torch.zeros_like(values)
        self.steps = 0
        """t, the steps that have been taken or announced."""
        self._factors_of: dict[int, torch.Tensor] = {}
        self._factors = torch.empty(0)
        self._place = torch.zeros(1, dtype=torch.int64, device=values.device)

    def prepare(self, steps: int) -> None:
        """Announces the next steps. The factors of equally many lie at the same address."""
        t = np.arange(self.steps + 1, self.steps + steps + 1, dtype=np.float64)[:, None]
        rates = np.atleast_1d(self.learning_rate) / (1 - FIRST_DECAY**t)
        factors = np.concatenate([np.sqrt(1 - SECOND_DECAY**t), rates], axis=1).astype(np.float32)
        if steps not in self._factors_of:
            self._factors_of[steps] = torch.empty(factors.shape, device=self.values.device)
        self._factors = self._factors_of[steps]
        self._factors.copy_(torch.from_numpy(factors))
        self._place.zero_()
        self.steps += steps

    def step(self, gradient: torch.Tensor) -> None:
        """Takes the next of the announced steps along `gradient`, of the same shape as `values`."""
        root, rate = self._factors.index_select(0, self._place).T.split([1, self._factors.shape[1] - 1])
        self._place += 1
        self.first.lerp_(gradient, 1 - FIRST_DECAY)
        self.second.mul_(SECOND_DECAY).addcmul_(gradient, gradient, value=1 - SECOND_DECAY)
        denominator = self.second.sqrt().div_(root[0]).add_(EPSILON)
        self.values.sub_((self.first * (rate[0] if len(rate) == 1 else rate)).div_(denominator))

    def forget(self) -> None:
        """Is as it was before the first step; the values stay."""
        self.first.zero_()
        self.second.zero_()
        self.steps = 0

    def state(self) -> dict[str, torch.Tensor | int]:
        """What a checkpoint needs besides `values`."""
        return {"first": self.first, "second": self.second, "steps": self.steps}

    def restore(self, state: dict[str, torch.Tensor | int]) -> None:
        """Takes up a state that `state` returned."""
        self.first.copy_(torch.as_tensor(state["first"]))
        self.second.copy_(torch.as_tensor(state["second"]))
        self.steps = int(state["steps"])
