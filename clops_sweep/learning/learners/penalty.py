"""Quadratic penalty on the parameters, added to the loss: the common part of EWC, SI and MAS."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, eq=False)
class Penalty:
    """Penalty 1/2 sum_p a_p (theta_p - c_p)^2. Each step adds its gradient a (theta - c) to that of the loss.

    All attributes are laid out like `Parameters.flat`.

    Attributes:
        importance: a.
        centre: c.
        path: if given, each step adds its expected decrease of the loss, -g (theta' - theta).
    """

    importance: torch.Tensor
    centre: torch.Tensor
    path: torch.Tensor | None = None
