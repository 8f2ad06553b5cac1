"""Parameters of S networks as one vector, so that optimisers and strategies work with any network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

Shapes = Mapping[str, tuple[int, ...]]
"""Name and shape of every parameter of one network, in memory order."""


@dataclass(frozen=True)
class Parameters:
    """Parameters of S networks: one flat vector, and a view [S, ...] into it for each parameter.

    Attributes:
        flat: S * P entries, laid out parameter by parameter.
        views: views by name.
        multiple: each parameter of a run is padded with zeros to a multiple of this number of entries. With 1, every
            view is contiguous. The rounding of matrix products may depend on the alignment within a cache line: with 32
            the alignment is always the same.
    """

    flat: torch.Tensor
    views: dict[str, torch.Tensor]
    multiple: int = 1

    @classmethod
    def over(cls, flat: torch.Tensor, runs: int, shapes: Shapes, multiple: int = 1) -> Parameters:
        """Return parameters that are views into an existing flat vector."""
        views, start = {}, 0
        for name, shape in shapes.items():
            entries = torch.Size(shape).numel()
            size = runs * _rounded_up(entries, multiple)
            views[name] = flat[start : start + size].view(runs, -1)[:, :entries].view(runs, *shape)
            start += size
        return cls(flat, views, multiple)

    @classmethod
    def zeros(cls, runs: int, shapes: Shapes, device: torch.device, multiple: int = 1) -> Parameters:
        """Return parameters that are all zero."""
        size = sum(_rounded_up(torch.Size(shape).numel(), multiple) for shape in shapes.values())
        return cls.over(torch.zeros(runs * size, device=device), runs, shapes, multiple)

    def like(self, flat: torch.Tensor) -> Parameters:
        """Return the same layout over another flat vector."""
        shapes = {name: tuple(view.shape[1:]) for name, view in self.views.items()}
        return type(self).over(flat, self.runs, shapes, self.multiple)

    @property
    def entries(self) -> int:
        """Return the number of trainable entries of each network."""
        return sum(view[0].numel() for view in self.views.values())

    def by_run(self, flat: torch.Tensor) -> torch.Tensor:
        """Return a vector laid out like `flat` with one row per run: shape [S, P]."""
        if self.runs == 1:
            return flat[None].clone()
        parts = flat.split([self.runs * size for size in self._sizes])
        return torch.cat([part.reshape(self.runs, -1) for part in parts], dim=1)

    def from_runs(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the inverse of `by_run`."""
        if self.runs == 1:
            return rows[0]
        return torch.cat([part.reshape(-1) for part in rows.split(self._sizes, dim=1)])

    @property
    def runs(self) -> int:
        """S, the number of networks."""
        return next(iter(self.views.values())).shape[0]

    @property
    def _sizes(self) -> list[int]:
        """Return the padded size of each parameter of a run."""
        return [_rounded_up(view[0].numel(), self.multiple) for view in self.views.values()]


def _rounded_up(entries: int, multiple: int) -> int:
    return -(-entries // multiple) * multiple
