"""The parameters of S networks as one vector, so that optimisers and strategies need not know which network it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

Shapes = Mapping[str, tuple[int, ...]]
"""Name and shape of every parameter of one network, in the order in which they are laid out."""


@dataclass(frozen=True)
class Parameters:
    """The parameters of S networks: one flat vector, and a view [S, ...] into it for each of them.

    Attributes:
        flat: S * P entries, laid out parameter by parameter.
        views: by name.
        multiple: of so many entries each parameter of a run takes up a multiple, zeros behind it. Where it is 1, every
            view is contiguous. Products of matrices may be rounded otherwise where these begin elsewhere within a line
            of the cache: with 32 they never do.
    """

    flat: torch.Tensor
    views: dict[str, torch.Tensor]
    multiple: int = 1

    @classmethod
    def over(cls, flat: torch.Tensor, runs: int, shapes: Shapes, multiple: int = 1) -> Parameters:
        """The views into an existing flat vector."""
        views, start = {}, 0
        for name, shape in shapes.items():
            entries = torch.Size(shape).numel()
            size = runs * _rounded_up(entries, multiple)
            views[name] = flat[start : start + size].view(runs, -1)[:, :entries].view(runs, *shape)
            start += size
        return cls(flat, views, multiple)

    @classmethod
    def zeros(cls, runs: int, shapes: Shapes, device: torch.device, multiple: int = 1) -> Parameters:
        """Room for them."""
        size = sum(_rounded_up(torch.Size(shape).numel(), multiple) for shape in shapes.values())
        return cls.over(torch.zeros(runs * size, device=device), runs, shapes, multiple)

    def like(self, flat: torch.Tensor) -> Parameters:
        """The same networks with the parameters in another flat vector."""
        shapes = {name: tuple(view.shape[1:]) for name, view in self.views.items()}
        return type(self).over(flat, self.runs, shapes, self.multiple)

    @property
    def entries(self) -> int:
        """How many trainable numbers each network has."""
        return sum(view[0].numel() for view in self.views.values())

    def by_run(self, flat: torch.Tensor) -> torch.Tensor:
        """A vector laid out like `flat`, as one row a run: shape [S, P]."""
        if self.runs == 1:
            return flat[None].clone()
        return torch.cat([part.reshape(self.runs, -1) for part in self._split(flat)], dim=1)

    def from_runs(self, rows: torch.Tensor) -> torch.Tensor:
        """The inverse of `by_run`."""
        if self.runs == 1:
            return rows[0]
        return torch.cat([part.reshape(-1) for part in rows.split(self._sizes, dim=1)])

    @property
    def runs(self) -> int:
        """S, the number of networks."""
        return next(iter(self.views.values())).shape[0]

    @property
    def _sizes(self) -> list[int]:
        """What each parameter of a run takes up."""
        return [_rounded_up(view[0].numel(), self.multiple) for view in self.views.values()]

    def _split(self, flat: torch.Tensor) -> Iterator[torch.Tensor]:
        return iter(flat.split([self.runs * size for size in self._sizes]))


def _rounded_up(entries: int, multiple: int) -> int:
    return -(-entries // multiple) * multiple
