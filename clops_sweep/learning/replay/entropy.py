"""Entropies in nats, exact at the edges: 0 log 0 = 0."""

from __future__ import annotations

import torch

from clops_sweep.data.scenarios import LossKind


def categorical_entropy(probabilities: torch.Tensor) -> torch.Tensor:
    """Return -sum_c p_c ln p_c over the last axis: [..., C] to [...]."""
    entropy: torch.Tensor = torch.special.entr(probabilities).sum(-1)
    return entropy


def bernoulli_entropy(probabilities: torch.Tensor) -> torch.Tensor:
    """Return -p ln p - (1 - p) ln(1 - p), elementwise."""
    entropy: torch.Tensor = torch.special.entr(probabilities) + torch.special.entr(1 - probabilities)
    return entropy


def predictive_entropy(kind: LossKind, probabilities: torch.Tensor) -> torch.Tensor:
    """Return the entropy of one prediction: [..., C] to [...].

    Categorical for `softmax`, Bernoulli for `binary`, the mean of the labels' Bernoulli entropies for `multilabel`.
    """
    if kind == "softmax":
        return categorical_entropy(probabilities)
    return bernoulli_entropy(probabilities).mean(-1)


def mutual_information(kind: LossKind, probabilities: torch.Tensor) -> torch.Tensor:
    """Return BALD: H(mean_t p_t) - mean_t H(p_t), never negative (Houlsby et al., 2011; Gal et al., 2017).

    Args:
        kind: the scenario's kind of output.
        probabilities: [..., T, C], the predictions of T samples; taken in float64.

    Returns:
        float64 [...].
    """
    samples = probabilities.to(torch.float64)
    total = predictive_entropy(kind, samples.mean(-2))
    expected = predictive_entropy(kind, samples).mean(-1)
    return (total - expected).clamp_min(0)
