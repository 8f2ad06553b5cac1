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

    `flat` has S * P entries, laid out parameter by parameter so that every view is contiguous.
    """

    flat: torch.Tensor
    views: dict[str, torch.Tensor]

    @classmethod
    def over(cls, flat: torch.Tensor, runs: int, shapes: Shapes) -> Parameters:
        """The views into an existing flat vector."""
        views, start = {}, 0
        for name, shape in shapes.items():
            size = runs * torch.Size(shape).numel()
            views[name] = flat[start : start + size].view(runs, *shape)
            start += size
        return cls(flat, views)

    @classmethod
    def zeros(cls, runs: int, shapes: Shapes, device: torch.device) -> Parameters:
        """Room for them."""
        size = sum(torch.Size(shape).numel() for shape in shapes.values())
        return cls.over(torch.zeros(runs * size, device=device), runs, shapes)

    def like(self, flat: torch.Tensor) -> Parameters:
        """The same networks with the parameters in another flat vector."""
        return type(self).over(flat, self.runs, {name: tuple(view.shape[1:]) for name, view in self.views.items()})

    def by_run(self, flat: torch.Tensor) -> torch.Tensor:
        """A vector laid out like `flat`, as one row a run: shape [S, P]."""
        return torch.cat([part.reshape(self.runs, -1) for part in self._split(flat)], dim=1)

    def from_runs(self, rows: torch.Tensor) -> torch.Tensor:
        """The inverse of `by_run`."""
        sizes = [view[0].numel() for view in self.views.values()]
        return torch.cat([part.reshape(-1) for part in rows.split(sizes, dim=1)])

    def of_runs(self, first: int, last: int) -> dict[str, torch.Tensor]:
        """The views of the runs first .. last - 1."""
        return {name: view[first:last] for name, view in self.views.items()}

    @property
    def runs(self) -> int:
        """S, the number of networks."""
        return next(iter(self.views.values())).shape[0]

    def _split(self, flat: torch.Tensor) -> Iterator[torch.Tensor]:
        return iter(flat.split([view.numel() for view in self.views.values()]))
