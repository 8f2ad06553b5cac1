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
    count, dimensions = values.shape[-2:]
    mean = values.mean(-2)
    centred = values - mean.unsqueeze(-2)
    scatter = centred.transpose(-1, -2) @ centred
    covariance = scatter / max(1, count - 1)
    identity = torch.eye(dimensions, dtype=torch.float64, device=values.device)
    return mean, covariance + RIDGE * identity


def gaussian_kl(
    mean: torch.Tensor, covariance: torch.Tensor, other_mean: torch.Tensor, other_covariance: torch.Tensor
) -> torch.Tensor:
    """Return KL(N(m, S) || N(m', S')), the divergence of two Gaussians in D dimensions, in nats.

        KL = 1/2 [ tr(S'^-1 S) - D + (m' - m)^T S'^-1 (m' - m) + ln det S' - ln det S ].

    With the Cholesky factors S = L L^T and S' = L' L'^T, the trace is |L'^-1 L|^2 and the square |L'^-1 (m' - m)|^2.

    Args:
        mean: m, [..., D].
        covariance: S, [..., D, D], positive definite.
        other_mean: m', [..., D].
        other_covariance: S', [..., D, D], positive definite.

    Returns:
        float64 [...].
    """
    dimensions = mean.shape[-1]
    lower = torch.linalg.cholesky(covariance)
    other_lower = torch.linalg.cholesky(other_covariance)
    difference = (other_mean - mean).unsqueeze(-1)
    ratio = torch.linalg.solve_triangular(other_lower, lower, upper=False)
    offset = torch.linalg.solve_triangular(other_lower, difference, upper=False)
    trace = ratio.square().sum((-1, -2))
    square = offset.square().sum((-1, -2))
    half_log_ratio = _half_log_determinant(other_lower) - _half_log_determinant(lower)
    divergence: torch.Tensor = (trace + square - dimensions) / 2 + half_log_ratio
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
        return _fitted_divergence(clean[..., :-1], perturbed[..., :-1])
    divergences = []
    for label in range(clean.shape[-1]):
        of_label = slice(label, label + 1)
        divergences.append(_fitted_divergence(clean[..., of_label], perturbed[..., of_label]))
    return torch.stack(divergences).sum(0)


def _fitted_divergence(samples: torch.Tensor, other_samples: torch.Tensor) -> torch.Tensor:
    """Return the divergence of the Gaussians fitted to two sets of samples, each [..., T, D]: float64 [...]."""
    mean, covariance = gaussian_of(samples)
    other_mean, other_covariance = gaussian_of(other_samples)
    return gaussian_kl(mean, covariance, other_mean, other_covariance)


def _half_log_determinant(lower: torch.Tensor) -> torch.Tensor:
    """Return half the log-determinant of L L^T."""
    logs: torch.Tensor = lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return logs
