"""RanPAC: ridge regression on randomly projected features (McDonnell et al., 2023)."""

from __future__ import annotations

import torch

from clops_sweep.learning.strategies.closed_form import ClosedForm, Statistics


class RandomProjections(ClosedForm):
    """Ridge regression of one-hot targets y on h = relu(P f), P random and fixed, [`projection_size`, F].

        W = (sum_i y_i h_i^T) (G + lambda I)^-1,    G = sum_i h_i h_i^T,    b = 0.

    lambda is `ranpac_ridge` times the mean of G's diagonal, so that it follows the scale of features and the number of
    instances. The authors choose lambda from 1e-8 ... 1e8 for each task, by the squared error on a fifth of its data,
    and add P after the first task; here P is part of the network from the start. See docs/training.md for the
    difference.
    """

    def begin(self, classes: int, features: int) -> Statistics:
        """Return zero G and zero feature sums of each class."""
        return {
            "counts": torch.zeros(classes, dtype=torch.float64),
            "sums": torch.zeros(classes, features, dtype=torch.float64),
            "outer": torch.zeros(features, features, dtype=torch.float64),
        }

    def update(self, statistics: Statistics, features: torch.Tensor, targets: torch.Tensor) -> None:
        """As `ClosedForm.update`."""
        statistics["counts"] += targets.sum(0)
        statistics["sums"] += targets.T @ features
        statistics["outer"] += features.T @ features

    def solve(self, statistics: Statistics) -> tuple[torch.Tensor, torch.Tensor]:
        """Return W as above."""
        outer = statistics["outer"].clone()
        diagonal = outer.diagonal()
        diagonal += self.training.config.options["ranpac_ridge"] * diagonal.mean()
        weight = torch.linalg.solve(outer, statistics["sums"].T).T
        return weight, torch.zeros(len(weight), dtype=torch.float64)
