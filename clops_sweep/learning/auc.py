"""AUC of S runs at once, where their scores are: nothing leaves a GPU but the result."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.errors import BadInput


def binary_auc(scores: torch.Tensor, positives: torch.Tensor) -> torch.Tensor:
    """Area under the ROC curve: the share of (positive, negative) pairs in the right order, ties counting half.

    (Mann-Whitney: (sum of the positives' mid-ranks - P (P + 1) / 2) / (P N). Ranks are halves of integers, so the sums
    are exact.)

    Args:
        scores: [..., n], finite.
        positives: bool [..., n], true for the positive class.

    Returns:
        float64 [...]; nan where one of the two classes is absent.
    """
    scores = scores.contiguous()
    ordered = scores.sort(-1).values
    below, up_to = (torch.searchsorted(ordered, scores, right=right) for right in (False, True))
    mid_ranks = (below + up_to + 1).to(torch.float64) / 2
    positive = positives.sum(-1).to(torch.float64)
    negative = positives.shape[-1] - positive
    return ((mid_ranks * positives).sum(-1) - positive * (positive + 1) / 2) / (positive * negative)


class TaskAuc:
    """The AUC of one split of one task: of the one score, or the mean over classes (one against the rest) or labels.

    A class or label that has only one value in the split is left out and counted.

    Args:
        targets: [n, C] of zeros and ones.
        where: names task and split in an error.
        device: where scores will be.

    Attributes:
        left_out: how many classes or labels have no AUC.

    Raises:
        BadInput: no class is left.
    """

    def __init__(self, targets: NDArray[np.floating], where: str, device: torch.device) -> None:
        positives = targets > 0.5
        kept = np.flatnonzero(positives.any(0) & ~positives.all(0))
        if not len(kept):
            raise BadInput(f"{where}: no class has both positive and negative instances, so there is no AUC")
        self.left_out = targets.shape[1] - len(kept)
        self._kept = torch.from_numpy(kept).to(device)
        self._positives = torch.from_numpy(positives[:, kept].T.copy()).to(device)

    def __call__(self, scores: torch.Tensor) -> torch.Tensor:
        """The AUC of each run: scores [S, n, C], of which only the order within a column matters, to float64 [S]."""
        columns = scores.index_select(2, self._kept).transpose(1, 2)
        return binary_auc(columns, self._positives.expand(len(scores), -1, -1)).mean(1)
