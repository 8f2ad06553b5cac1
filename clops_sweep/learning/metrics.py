"""Continual-learning metrics of the R matrix, R[i][j] = AUC on task j after training on task i."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def average_auc(r: ArrayLike) -> float:
    """mean_j R[N][j] (Lopez-Paz and Ranzato, 2017)."""
    return float(np.asarray(r, dtype=np.float64)[-1].mean())


def backward_transfer(r: ArrayLike) -> float:
    """BWT = mean_{j<N} (R[N][j] - R[j][j]); nan for a single task (Lopez-Paz and Ranzato, 2017)."""
    matrix = np.asarray(r, dtype=np.float64)
    return _mean(matrix[-1, :-1] - np.diag(matrix)[:-1])


def backward_transfer_after(r: ArrayLike, t: int = 1) -> float:
    """BWT_t = 1 / (N - t) sum_{j=1}^{N-t} (R[j+t][j] - R[j][j]) (CLOPS, section on metrics).

    Args:
        r: [N, N].
        t: how many tasks later; nan from N on.
    """
    matrix = np.asarray(r, dtype=np.float64)
    return _mean(np.diag(matrix, -t) - np.diag(matrix)[: max(0, len(matrix) - t)])


def backward_transfer_overall(r: ArrayLike) -> float:
    """BWT_lambda = 1 / (N - 1) sum_{j<N} 1 / (N - j) sum_{t=1}^{N-j} (R[j+t][j] - R[j][j]) (CLOPS)."""
    matrix = np.asarray(r, dtype=np.float64)
    return _mean(np.array([(matrix[j + 1 :, j] - matrix[j, j]).mean() for j in range(len(matrix) - 1)]))


def forward_transfer(r: ArrayLike, chance: float = 0.5) -> float:
    """FWT = mean_{j>1} (R[j-1][j] - chance) (Lopez-Paz and Ranzato, 2017).

    An AUC of 0.5 stands for the untrained network, whose expected AUC it is.
    """
    matrix = np.asarray(r, dtype=np.float64)
    return _mean(np.diag(matrix, 1) - chance)


def all_metrics(r: ArrayLike) -> dict[str, float]:
    """Every metric of the `runs` table by its column name."""
    return {
        "auc": average_auc(r),
        "bwt": backward_transfer(r),
        "bwt_t": backward_transfer_after(r),
        "bwt_lambda": backward_transfer_overall(r),
        "fwt": forward_transfer(r),
    }


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if values.size else float("nan")
