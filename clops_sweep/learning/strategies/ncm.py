"""NCM: the class whose mean feature is nearest (Mensink et al., 2013)."""

from __future__ import annotations

import torch

from clops_sweep.learning.strategies.closed_form import ClosedForm, Statistics


class NearestClassMean(ClosedForm):
    """Logit of class c: -|f - mu_c|^2 + |f|^2 = 2 mu_c . f - |mu_c|^2, with mu_c the mean feature of its instances."""

    def begin(self, classes: int, features: int) -> Statistics:
        """Return zero counts and feature sums of each class."""
        return {
            "counts": torch.zeros(classes, dtype=torch.float64),
            "sums": torch.zeros(classes, features, dtype=torch.float64),
        }

    def update(self, statistics: Statistics, features: torch.Tensor, targets: torch.Tensor) -> None:
        """As `ClosedForm.update`."""
        statistics["counts"] += targets.sum(0)
        statistics["sums"] += targets.T @ features

    def solve(self, statistics: Statistics) -> tuple[torch.Tensor, torch.Tensor]:
        """Return W = 2 mu, b = -|mu|^2."""
        mu = class_means(statistics)
        return 2 * mu, -mu.square().sum(1)


def class_means(statistics: Statistics) -> torch.Tensor:
    """Return the mean feature of each class, float64 [C, F]; zeros for a class without instances."""
    counts = statistics["counts"].clamp(min=1)
    return statistics["sums"] / counts[:, None]
