"""GEM's projections of many runs at once, without a word from the host: what a GPU needs (see `projection`).

The dual programme is tiny, one unknown a past task, and its matrix positive definite. As a linear complementarity
problem

    w = M u + q,  u >= 0,  w >= 0,  u_j w_j = 0,   with  u = v - margin,  M = P,  q = G g + P margin,

it is solved exactly, up to rounding, by exchanging u_j for w_j for the least j whose value is negative until none is
(Murty, 1974): for such a matrix that ends, usually after about as many exchanges as there are tasks. The number of
exchanges is fixed here; what is not solved after them is told, as any failure is.
"""

from __future__ import annotations

import torch

from clops_sweep.learning.projection import MARGIN, REGULARIZATION, TOLERANCE, ProjectedRuns


def project_together(
    gradients: torch.Tensor,
    memory_gradients: torch.Tensor,
    margin: float = MARGIN,
    regularization: float = REGULARIZATION,
) -> ProjectedRuns:
    """The gradients that GEM follows, for S runs on their device; formula and arguments as in `projection.project`.

    Args:
        gradients: g, [S, P].
        memory_gradients: G, [S, J, P].
        margin: lower bound of v.
        regularization: added to the diagonal of G G^T.
    """
    g, G = gradients.double(), memory_gradients.double()
    products = torch.bmm(G, g[:, :, None]).squeeze(2)
    finite = products.isfinite().all(1)
    violated = ~finite | (products < 0).any(1)
    identity = torch.eye(G.shape[1], dtype=G.dtype, device=G.device)
    quadratic = torch.bmm(G, G.transpose(1, 2)) + regularization * identity
    v, solved = _minimiser(quadratic, products, margin)
    solved = finite & (solved | ~violated)
    follows = (violated & solved)[:, None]
    projected = torch.where(follows, g + torch.bmm(v[:, None], G).squeeze(1), g)
    return ProjectedRuns(projected.to(gradients.dtype), torch.stack([violated, ~solved]))


def _minimiser(quadratic: torch.Tensor, linear: torch.Tensor, margin: float) -> tuple[torch.Tensor, torch.Tensor]:
    """min_v 1/2 v^T P v + q^T v subject to v >= margin: P [S, J, J] and q [S, J] to v [S, J] and whether it is one."""
    scale = torch.maximum(quadratic.abs().amax((1, 2)), linear.abs().amax(1)).clamp_min(torch.finfo(linear.dtype).tiny)
    M = quadratic / scale[:, None, None]
    q = linear / scale[:, None] + margin * M.sum(2)
    u = _complementary(M, q)
    w = torch.bmm(M, u[:, :, None]).squeeze(2) + q
    optimal = (u >= -TOLERANCE).all(1) & (w >= -TOLERANCE).all(1) & ((u * w).abs() <= TOLERANCE).all(1)
    return u + margin, optimal


def _complementary(M: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """u of the linear complementarity problem of M [S, J, J], positive definite, and q [S, J]."""
    size = q.shape[1]
    places = torch.arange(size, device=q.device)
    table, values = M.clone(), q.clone()
    exchanged = torch.zeros_like(q, dtype=torch.bool)
    for _ in range(4 * size + 4):
        negative = values < 0
        least = torch.where(negative, places, size).amin(1, keepdim=True)
        chosen = places == least  # nowhere true for a run that is solved
        picked = chosen.to(q.dtype)
        column = (table * picked[:, None, :]).sum(2)
        row = (table * picked[:, :, None]).sum(1)
        pivot = torch.where(negative.any(1), (column * picked).sum(1), 1.0)[:, None]
        value = (values * picked).sum(1, keepdim=True)
        # Solved for the one that was exchanged: its row and column of the table change their meaning.
        table = table - column[:, :, None] * row[:, None, :] / pivot[:, :, None]
        table = torch.where(chosen[:, None, :], (column / pivot)[:, :, None], table)
        table = torch.where(chosen[:, :, None], (-row / pivot)[:, None, :], table)
        corner = chosen[:, :, None] & chosen[:, None, :]
        table = torch.where(corner, (1 / pivot)[:, :, None], table)
        values = torch.where(chosen, -value / pivot, values - column * value / pivot)
        exchanged = exchanged ^ chosen
    return torch.where(exchanged, values, 0.0)
