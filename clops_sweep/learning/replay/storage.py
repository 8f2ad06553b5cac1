"""Storage functions: selection of a finished task's instances for its portion of the buffer."""

from __future__ import annotations

import torch

from clops_sweep.learning import streams


def area(trajectories: torch.Tensor) -> torch.Tensor:
    """Return s_i, the area under the trajectory of beta_i by the trapezoid rule with step 1 (CLOPS, eq. for s).

    tau recorded values give tau - 1 intervals; a single value has no area.

    Args:
        trajectories: [tau, n].

    Returns:
        float64 [n].
    """
    values = trajectories.to(torch.float64)
    return (values[1:] + values[:-1]).sum(0) / 2


def squared_area(trajectories: torch.Tensor) -> torch.Tensor:
    """Return s_i with beta_i^2 instead of beta_i (CLOPS, appendix on the form of the storage function)."""
    return area(trajectories.to(torch.float64).square())


def highest(scores: torch.Tensor, count: int) -> torch.Tensor:
    """Return the indices of the `count` highest scores; ties go to the lower index.

    Args:
        scores: [n].
        count: at most n.

    Returns:
        int64 [count], ascending.
    """
    ranked = torch.argsort(scores, descending=True, stable=True)
    return ranked[:count].sort().values


def select(order: str, scores: torch.Tensor, count: int, seed: int, task: int) -> torch.Tensor:
    """Return the instances to store: `top` (highest s, easy first), `bottom` (lowest s) or `random`.

    Args:
        order: `storage_order`.
        scores: s, [n]; `random` uses only its shape.
        count: number of instances to store.
        seed: the run's seed, for `random`.
        task: index of the task, for `random`.

    Returns:
        int64 [count], distinct indices into the task, ascending.
    """
    if order == "random":
        return streams.choice(seed, len(scores), count, "random storage", task).to(scores.device)
    return highest(scores if order == "top" else -scores, count)
