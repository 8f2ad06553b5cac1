"""Gaussians fitted to samples, and the divergence between two of them."""

from __future__ import annotations

import torch

from clops_sweep.data.scenarios import LossKind

RIDGE = 1e-6


def gaussian_of(samples: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and covariance (divisor T - 1, plus 1e-6 I) of T samples.

    Args:
        samples: [..., T, D].

    Returns:
        float64 [..., D] and [..., D, D].
    """
    values = samples.to(torch.float64)
    mean = values.mean(-2)
    centred = values - mean.unsqueeze(-2)
    covariance = centred.transpose(-1, -2) @ centred / max(1, values.shape[-2] - 1)
    return mean, covariance + RIDGE * torch.eye(values.shape[-1], dtype=torch.float64, device=values.device)


def gaussian_kl(
    mean: torch.Tensor, covariance: torch.Tensor, other_mean: torch.Tensor, other_covariance: torch.Tensor
) -> torch.Tensor:
    """KL(N(m, S) || N(m', S')) = 1/2 [ tr(S'^-1 S) - D + (m' - m)^T S'^-1 (m' - m) + ln det S' - ln det S ].

    Args:
        mean: [..., D].
        covariance: [..., D, D], positive definite.
        other_mean: [..., D].
        other_covariance: [..., D, D], positive definite.

    Returns:
        [...], in nats.
    """
    lower = torch.linalg.cholesky(covariance)
    other_lower = torch.linalg.cholesky(other_covariance)
    ratio = torch.linalg.solve_triangular(other_lower, lower, upper=False)
    offset = torch.linalg.solve_triangular(other_lower, (other_mean - mean).unsqueeze(-1), upper=False)
    log_ratio = _log_diagonal(other_lower) - _log_diagonal(lower)
    quadratic = ratio.square().sum((-1, -2)) + offset.square().sum((-1, -2)) - mean.shape[-1]
    divergence: torch.Tensor = quadratic / 2 + log_ratio
    return divergence


def divergence_of_probabilities(kind: LossKind, clean: torch.Tensor, perturbed: torch.Tensor) -> torch.Tensor:
    """Return `gaussian_kl` of Gaussians fitted to probabilities, float64 [...].

    The last coordinate of a softmax is left out, since its coordinates sum to one. Sigmoids are summed over labels.

    Args:
        kind: kind of output.
        clean: [..., T, C], T samples.
        perturbed: [..., T, C], T samples.
    """
    if kind == "softmax":
        return gaussian_kl(*gaussian_of(clean[..., :-1]), *gaussian_of(perturbed[..., :-1]))
    labels = zip(clean.split(1, dim=-1), perturbed.split(1, dim=-1), strict=True)
    divergences = [gaussian_kl(*gaussian_of(one), *gaussian_of(other)) for one, other in labels]
    return torch.stack(divergences).sum(0)


def _log_diagonal(lower: torch.Tensor) -> torch.Tensor:
    """Return half the log-determinant of L L^T."""
    logs: torch.Tensor = lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return logs
