"""GEM's projection of a gradient so that it opposes no past task (Lopez-Paz and Ranzato, 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from quadprog import solve_qp

MARGIN = 0.5
REGULARIZATION = 1e-3
TOLERANCE = 1e-6
"""Maximum violation of a solution's constraints, relative to the largest entry of the problem."""


@dataclass(frozen=True)
class Projected:
    """The gradient to follow. `violated`: whether a constraint was violated; `solved`: whether a solution was found."""

    gradient: NDArray[np.float64]
    violated: bool
    solved: bool


def project(
    gradient: NDArray[np.floating],
    memory_gradients: NDArray[np.floating],
    margin: float = MARGIN,
    regularization: float = REGULARIZATION,
) -> Projected:
    """Return the gradient that GEM follows.

    That is g itself if <g, g_j> >= 0 for every past task j, else g + G^T v for the v of the dual quadratic programme

        min_v 1/2 v^T P v + (G g)^T v   subject to   v >= margin,   P = G G^T + regularization I,

    in float64 by the active-set method of Goldfarb and Idnani (1983), from the package quadprog. With margin and
    regularization at zero the result is the vector nearest to g with <result, g_j> >= 0 for all j.

    On a failure (gradients that are not finite, no solution within `TOLERANCE`), the result is g with `solved` False.

    Args:
        gradient: g, [P].
        memory_gradients: G, [J, P], one row per past task.
        margin: lower bound of v.
        regularization: number added to the diagonal of G G^T.
    """
    g = gradient.astype(np.float64)
    G = np.asarray(memory_gradients, np.float64)
    G_g = G @ g
    products = G_g.tolist()  # faster than a vectorised check for so few tasks
    if not all(map(math.isfinite, products)):
        return Projected(g, violated=True, solved=False)
    if min(products) >= 0:
        return Projected(g, violated=False, solved=True)
    P = G @ G.T + regularization * np.eye(len(G))
    v = _solve(P, G_g, margin)
    if v is None:
        return Projected(g, violated=True, solved=False)
    return Projected(G.T @ v + g, violated=True, solved=True)


def projected(gradient: torch.Tensor, memory_gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `project` of tensors.

    Args:
        gradient: [P].
        memory_gradients: [J, P].

    Returns:
        The gradient to follow, float32 [P], the given tensor if it does not change; and bool [2], whether a constraint
        was violated, and whether no solution was found.
    """
    plain = gradient.cpu().numpy()
    solution = project(plain, memory_gradients.cpu().numpy())
    if solution.violated and solution.solved:
        gradient = torch.from_numpy(solution.gradient.astype(plain.dtype)).to(gradient.device)
    return gradient, torch.tensor([solution.violated, not solution.solved], device=gradient.device)


def _solve(quadratic: NDArray[np.float64], linear: NDArray[np.float64], margin: float) -> NDArray[np.float64] | None:
    """Return the solution of min_v 1/2 v^T P v + q^T v subject to v >= margin; None if the solver fails."""
    # scaling keeps the minimiser and makes the solver's absolute tolerances fit any gradient
    scale = max(float(np.abs(quadratic).max()), float(np.abs(linear).max()), np.finfo(np.float64).tiny)
    P = quadratic / scale
    q = linear / scale
    lowest = np.full(len(linear), float(margin))
    try:
        v, _, _, _, multipliers, _ = solve_qp(P, -q, np.eye(len(q)), lowest)
    except ValueError:  # not positive definite, or no solution
        return None
    # Optimal if feasible and stationary, with equal primal and dual values (Boyd and Vandenberghe, section 5.5).
    # The checks fail for values that are not finite.
    is_feasible = (lowest - v < TOLERANCE).all()
    is_stationary = (np.abs(P @ v + q - multipliers) < TOLERANCE).all()
    duality_gap = v @ P @ v + q @ v - lowest @ multipliers
    is_optimal = is_feasible and is_stationary and np.abs(duality_gap) < TOLERANCE
    return v if is_optimal else None
