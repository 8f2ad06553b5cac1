"""Parameters of a network as one vector, so that optimisers and strategies work with any network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

Shapes = Mapping[str, tuple[int, ...]]
"""Name and shape of every parameter, in memory order."""


@dataclass(frozen=True)
class Parameters:
    """Parameters of a network: one flat vector, and a view into it for each parameter.

    Attributes:
        flat: float32 [P], laid out parameter by parameter.
        views: views by name.
        multiple: each parameter is padded with zeros to a multiple of this number of entries. The rounding of matrix
            products may depend on the alignment within a cache line: with 32 the alignment is always the same.
    """

    flat: torch.Tensor
    views: dict[str, torch.Tensor]
    multiple: int = 1

    @classmethod
    def over(cls, flat: torch.Tensor, shapes: Shapes, multiple: int = 1) -> Parameters:
        """Return parameters that are views into an existing flat vector."""
        views, start = {}, 0
        for name, shape in shapes.items():
            entries = torch.Size(shape).numel()
            views[name] = flat[start : start + entries].view(shape)
            start += _rounded_up(entries, multiple)
        return cls(flat, views, multiple)

    @classmethod
    def zeros(cls, shapes: Shapes, device: torch.device, multiple: int = 1) -> Parameters:
        """Return parameters that are all zero."""
        size = sum(_rounded_up(torch.Size(shape).numel(), multiple) for shape in shapes.values())
        return cls.over(torch.zeros(size, device=device), shapes, multiple)

    def like(self, flat: torch.Tensor) -> Parameters:
        """Return the same layout over another flat vector."""
        shapes = {name: tuple(view.shape) for name, view in self.views.items()}
        return type(self).over(flat, shapes, self.multiple)

    @property
    def entries(self) -> int:
        """Return the number of trainable entries."""
        return sum(view.numel() for view in self.views.values())


def _rounded_up(entries: int, multiple: int) -> int:
    return -(-entries // multiple) * multiple
