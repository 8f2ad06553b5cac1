"""AUC, and the continual-learning metrics of the R matrix, R[i][j] = AUC on task j after training on task i."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from clops_sweep.data.scenarios import LossKind
from clops_sweep.errors import BadInput


def binary_auc(scores: ArrayLike, positives: ArrayLike) -> float:
    """Area under the ROC curve: the share of (positive, negative) pairs in the right order, ties counting half.

    (Mann-Whitney: (sum of the positives' mid-ranks - P (P + 1) / 2) / (P N).)

    Args:
        scores: [n].
        positives: [n], true for the positive class.

    Returns:
        The AUC, or nan where one of the two classes is absent.
    """
    truth = np.asarray(positives, dtype=bool)
    positive, negative = int(truth.sum()), int((~truth).sum())
    if not positive or not negative:
        return float("nan")
    ranks = rankdata(np.asarray(scores))
    return float((ranks[truth].sum() - positive * (positive + 1) / 2) / (positive * negative))


@dataclass(frozen=True)
class TaskAuc:
    """The AUC of a task in a split, and how many of its classes or labels had to be left out."""

    auc: float
    left_out: int


def task_auc(kind: LossKind, scores: NDArray[np.floating], targets: NDArray[np.floating], where: str) -> TaskAuc:
    """Binary AUC, macro one-vs-rest over classes (`softmax`) or macro over labels (`multilabel`).

    A class or label that has only one value in the split is left out and counted.

    Args:
        kind: the scenario's kind of output.
        scores: [n, C]; only their order within a column matters.
        targets: [n, C] of zeros and ones.
        where: names task and split in an error.

    Raises:
        BadInput: no class is left, or the network's outputs are no numbers any more.
    """
    if not np.isfinite(scores).all():
        raise BadInput(
            f"{where}: the network's outputs are not finite, training has diverged; a smaller learning_rate may help"
        )
    aucs = np.array([binary_auc(scores[:, c], targets[:, c] > 0.5) for c in range(targets.shape[1])])
    left_out = int(np.isnan(aucs).sum())
    if left_out == len(aucs):
        raise BadInput(f"{where}: no class has both positive and negative instances, so there is no AUC")
    return TaskAuc(float(np.nanmean(aucs)), left_out)


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
