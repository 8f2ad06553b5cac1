"""Storage functions: selection of a finished task's instances for its portion of the buffer."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from clops_sweep.learning import streams


def area(trajectories: torch.Tensor) -> torch.Tensor:
    """Return s_i, the area under the trajectory of beta_i by the trapezoid rule with step 1 (CLOPS, eq. for s).

    tau recorded values give tau - 1 intervals; a single value has no area.

    Args:
        trajectories: [S, tau, n].

    Returns:
        float64 [S, n].
    """
    values = trajectories.to(torch.float64)
    return (values[:, 1:] + values[:, :-1]).sum(1) / 2


def squared_area(trajectories: torch.Tensor) -> torch.Tensor:
    """Return s_i with beta_i^2 instead of beta_i (CLOPS, appendix on the form of the storage function)."""
    return area(trajectories.to(torch.float64).square())


def highest(scores: torch.Tensor, count: int) -> torch.Tensor:
    """Return the indices of the `count` highest scores of each run; ties go to the lower index.

    Args:
        scores: [S, n].
        count: at most n.

    Returns:
        int64 [S, count], ascending.
    """
    ranked = torch.argsort(scores, dim=1, descending=True, stable=True)
    return ranked[:, :count].sort(dim=1).values


def select(order: str, scores: torch.Tensor, count: int, seeds: Sequence[int], task: int) -> torch.Tensor:
    """Return the instances to store: `top` (highest s, easy first), `bottom` (lowest s) or `random`.

    Args:
        order: `storage_order`.
        scores: s, [S, n]; `random` uses only its shape.
        count: number of instances to store.
        seeds: the runs' seeds, for `random`.
        task: index of the task, for `random`.

    Returns:
        int64 [S, count], distinct indices into the task, ascending.
    """
    if order == "random":
        return streams.choices(seeds, scores.shape[1], count, "random storage", task).to(scores.device)
    return highest(scores if order == "top" else -scores, count)
