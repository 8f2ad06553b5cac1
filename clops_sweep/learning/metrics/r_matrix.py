"""Continual-learning metrics of R, R[i][j] = a measure (AUC, accuracy, ...) on task j after training on task i."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clops_sweep.data.scenarios import LossKind
from clops_sweep.experiment.metrics import metrics_of


def average(r: ArrayLike) -> float:
    """Return mean_j R[N][j] (Lopez-Paz and Ranzato, 2017)."""
    return float(np.asarray(r, dtype=np.float64)[-1].mean())


def backward_transfer(r: ArrayLike) -> float:
    """Return BWT = mean_{j<N} (R[N][j] - R[j][j]); nan for a single task (Lopez-Paz and Ranzato, 2017)."""
    matrix = np.asarray(r, dtype=np.float64)
    at_first = np.diag(matrix)
    return _mean(matrix[-1, :-1] - at_first[:-1])


def backward_transfer_after(r: ArrayLike, t: int = 1) -> float:
    """Return BWT_t = 1 / (N - t) sum_{j=1}^{N-t} (R[j+t][j] - R[j][j]) (CLOPS, section on metrics).

    Args:
        r: [N, N].
        t: number of tasks later; the result is nan from N on.
    """
    matrix = np.asarray(r, dtype=np.float64)
    at_first = np.diag(matrix)
    later = np.diag(matrix, -t)
    return _mean(later - at_first[: max(0, len(matrix) - t)])


def backward_transfer_overall(r: ArrayLike) -> float:
    """Return BWT_lambda = 1 / (N - 1) sum_{j<N} 1 / (N - j) sum_{t=1}^{N-j} (R[j+t][j] - R[j][j]) (CLOPS)."""
    matrix = np.asarray(r, dtype=np.float64)
    of_tasks = []
    for j in range(len(matrix) - 1):
        change = matrix[j + 1 :, j] - matrix[j, j]
        of_tasks.append(change.mean())
    return _mean(np.array(of_tasks))


def forward_transfer(r: ArrayLike, chance: float = 0.5) -> float:
    """Return FWT = mean_{j>1} (R[j-1][j] - chance) (Lopez-Paz and Ranzato, 2017).

    Chance replaces the untrained network, whose expected AUC is 0.5; see `chance_of`.
    """
    matrix = np.asarray(r, dtype=np.float64)
    return _mean(np.diag(matrix, 1) - chance)


def forgetting(r: ArrayLike) -> float:
    """Return 1 / (N - 1) sum_{j<N} (max_{i<N} R[i][j] - R[N][j]); nan for a single task (Chaudhry et al., 2018).

    The maximum is over all earlier rows without nan, so a task that got worse has positive forgetting.
    """
    matrix = np.asarray(r, dtype=np.float64)
    best = np.fmax.reduce(matrix[:-1, :-1], axis=0, initial=-np.inf)
    return _mean(best - matrix[-1, :-1])


def average_incremental(r: ArrayLike) -> float:
    """Return 1 / N sum_i 1 / i sum_{j<=i} R[i][j] (Rebuffi et al., 2017).

    It is the mean over stages of the mean over the tasks so far.
    """
    matrix = np.asarray(r, dtype=np.float64)
    of_stages = [row[: i + 1].mean() for i, row in enumerate(matrix)]
    return _mean(np.array(of_stages))


def chance_of(measure: str, kind: LossKind, outputs: int) -> float:
    """Return the score of guessing uniformly.

    1/2 for AUC. For the others, 1/C with C >= 2 exclusive classes (C = 2 for a sigmoid). With C labels guessed by fair
    coins, accuracy is 2^-C, balanced accuracy 1/2 and, for labels present in half of the instances, F1 1/2.
    """
    if measure.startswith("auc") or kind == "binary":
        return 0.5
    if kind == "softmax":
        return 1 / outputs
    return 0.5**outputs if measure == "accuracy" else 0.5


def all_metrics(r: ArrayLike, measure: str = "auc", chance: float = 0.5) -> dict[str, float]:
    """Return all metrics of one measure by column of the `runs` table."""
    values = (
        average(r),
        backward_transfer(r),
        backward_transfer_after(r),
        backward_transfer_overall(r),
        forward_transfer(r, chance),
        forgetting(r),
        average_incremental(r),
    )
    return dict(zip(metrics_of(measure), values, strict=True))


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if values.size else float("nan")
