"""Entropies in nats, exact at the edges: 0 log 0 = 0."""

from __future__ import annotations

import torch

from clops_sweep.data.scenarios import LossKind


def predictive_entropy(kind: LossKind, probabilities: torch.Tensor) -> torch.Tensor:
    """Return the entropy of one prediction: [..., C] to [...].

    Categorical for `softmax`, -sum_c p_c ln p_c; Bernoulli for `binary`, -p ln p - (1 - p) ln(1 - p); the mean of the
    labels' Bernoulli entropies for `multilabel`.
    """
    entropies: torch.Tensor = torch.special.entr(probabilities)
    if kind == "softmax":
        return entropies.sum(-1)
    entropies += torch.special.entr(1 - probabilities)
    return entropies.mean(-1)


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
