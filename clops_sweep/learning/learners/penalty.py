"""A quadratic penalty on the parameters, beside the loss: what EWC, SI and MAS have in common."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, eq=False)
class Penalty:
    """1/2 sum_p a_p (theta_p - c_p)^2, whose gradient a (theta - c) each step adds to that of the loss.

    All are laid out like `Parameters.flat`.

    Attributes:
        importance: a.
        centre: c.
        path: what each step should lower the loss by, -g (theta' - theta), is added to it, if it is there.
    """

    importance: torch.Tensor
    centre: torch.Tensor
    path: torch.Tensor | None = None
