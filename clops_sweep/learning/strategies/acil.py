"""ACIL: ridge regression by recursive least squares (Zhuang et al., 2022)."""

from __future__ import annotations

import torch

from clops_sweep.learning.strategies.closed_form import ClosedForm, Statistics

_ROWS = 256
"""Maximum number of instances in an update of R."""


class AnalyticLearning(ClosedForm):
    """Ridge regression on h = relu(P f), P random and fixed, [`projection_size`, F], updated without past instances.

    R and W start as I / gamma and 0, with gamma = `acil_ridge`. For instances H [n, M] with one-hot targets Y:

        R <- R - R H^T (I + H R H^T)^-1 H R,    W <- W + R H^T (Y - H W).

    After all tasks W = (sum H^T H + gamma I)^-1 sum H^T Y: the solution on all data at once, in any order.

    P is uniform on +-1 / sqrt(F), as in the authors' code. They train the first task with a linear layer on f, and add
    P afterwards, with 8,192 rows; here P is part of the network from the start, with 1,000 rows by default. See
    docs/training.md for the difference.
    """

    def begin(self, classes: int, features: int) -> Statistics:
        """Return R and W before the first instance."""
        return {
            "counts": torch.zeros(classes, dtype=torch.float64),
            "inverse": torch.eye(features, dtype=torch.float64) / self.options.acil_ridge,
            "weight": torch.zeros(features, classes, dtype=torch.float64),
        }

    def update(self, statistics: Statistics, features: torch.Tensor, targets: torch.Tensor) -> None:
        """As `ClosedForm.update`."""
        statistics["counts"] += targets.sum(0)
        R, W = statistics["inverse"], statistics["weight"]
        for H, Y in zip(features.split(_ROWS), targets.split(_ROWS), strict=True):
            R_Ht = R @ H.T
            I_plus_H_R_Ht = H @ R_Ht
            I_plus_H_R_Ht.diagonal().add_(1)
            R -= R_Ht @ torch.linalg.solve(I_plus_H_R_Ht, R_Ht.T)
            W += R @ (H.T @ (Y - H @ W))

    def solve(self, statistics: Statistics) -> tuple[torch.Tensor, torch.Tensor]:
        """Return W^T and a bias of zero."""
        W = statistics["weight"]
        _, classes = W.shape
        return W.T, torch.zeros(classes, dtype=torch.float64)
