"""Streaming linear discriminant analysis (Hayes and Kanan, 2020)."""

from __future__ import annotations

import torch

from clops_sweep.learning.strategies.closed_form import Statistics
from clops_sweep.learning.strategies.ncm import NearestClassMean, class_means


class StreamingLDA(NearestClassMean):
    """Gaussian classes with means mu_c and one shrunk covariance Sigma.

        W = L mu,    b_c = -mu_c . L mu_c / 2,
        L = ((1 - eps) Sigma + eps I)^-1,    Sigma = sum_i (f_i - mu_{y_i})(f_i - mu_{y_i})^T / n,

    with eps = `slda_shrinkage`. Sigma is that of all instances so far, exactly; the authors update an approximation of
    it instance by instance. So the order of tasks and instances does not matter.
    """

    def begin(self, classes: int, features: int) -> Statistics:
        """As `NearestClassMean.begin`, with a zero sum of outer products of features."""
        return super().begin(classes, features) | {"outer": torch.zeros(features, features, dtype=torch.float64)}

    def update(self, statistics: Statistics, features: torch.Tensor, targets: torch.Tensor) -> None:
        """As `ClosedForm.update`."""
        super().update(statistics, features, targets)
        statistics["outer"] += features.T @ features

    def solve(self, statistics: Statistics) -> tuple[torch.Tensor, torch.Tensor]:
        """Return W and b as above."""
        mu = class_means(statistics)
        counts = statistics["counts"]
        eps = self.options.slda_shrinkage
        n_sigma = statistics["outer"] - mu.T @ (counts[:, None] * mu)
        inverse_of_L = (1 - eps) * n_sigma / counts.sum()
        inverse_of_L.diagonal().add_(eps)
        W = torch.linalg.solve(inverse_of_L, mu.T).T
        b = -(W * mu).sum(1) / 2
        return W, b
