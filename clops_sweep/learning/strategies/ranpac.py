"""RanPAC: ridge regression on randomly projected features (McDonnell et al., 2023)."""

from __future__ import annotations

import torch

from clops_sweep.learning.strategies.closed_form import Statistics
from clops_sweep.learning.strategies.slda import StreamingLDA


class RandomProjections(StreamingLDA):
    """Ridge regression of one-hot targets y on h = relu(P f), P random and fixed, [`projection_size`, F].

    From the statistics of `slda`, taken of h instead of f:

        W = (sum_i y_i h_i^T) (G + lambda I)^-1,    G = sum_i h_i h_i^T,    b = 0.

    lambda is `ranpac_ridge` times the mean of G's diagonal, so that it follows the scale of features and the number of
    instances. The authors choose lambda from 1e-8 ... 1e8 for each task, by the squared error on a fifth of its data,
    and add P after the first task; here P is part of the network from the start. See docs/training.md for the
    difference.
    """

    def solve(self, statistics: Statistics) -> tuple[torch.Tensor, torch.Tensor]:
        """Return W as above."""
        G = statistics["outer"]
        ridge = self.options.ranpac_ridge * G.diagonal().mean()
        G_plus_ridge = G.clone()
        G_plus_ridge.diagonal().add_(ridge)
        W = torch.linalg.solve(G_plus_ridge, statistics["sums"].T).T
        return W, torch.zeros(len(W), dtype=torch.float64)
