"""AUC of S runs at once, where their scores are: nothing leaves a GPU but the result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.errors import BadInput


def binary_auc(scores: torch.Tensor, positives: torch.Tensor, sizes: torch.Tensor | None = None) -> torch.Tensor:
    """Area under the ROC curve: the share of (positive, negative) pairs in the right order, ties counting half.

    (Mann-Whitney: (sum of the positives' mid-ranks - P (P + 1) / 2) / (P N). Ranks are halves of integers, so the sums
    are exact.)

    Args:
        scores: [..., n], finite.
        positives: bool [..., n], true for the positive class.
        sizes: [...], how many of the n there are, where the others are filled up with scores of infinity.

    Returns:
        float64 [...]; nan where one of the two classes is absent.
    """
    scores = scores.contiguous()
    ordered = scores.sort(-1).values
    below, up_to = (torch.searchsorted(ordered, scores, right=right) for right in (False, True))
    mid_ranks = (below + up_to + 1).to(torch.float64) / 2
    positive = positives.sum(-1).to(torch.float64)
    negative = (positives.shape[-1] if sizes is None else sizes) - positive
    return ((mid_ranks * positives).sum(-1) - positive * (positive + 1) / 2) / (positive * negative)


class TaskAucs:
    """The AUC of one split of each task: of the one score, or the mean over classes (one against the rest) or labels.

    A class or label that has only one value in the split is left out and counted.

    Args:
        targets: of each task, [n, C] of zeros and ones; the tasks' instances follow one another.
        where: names each task and the split in an error.
        device: where scores will be.
        own: of each task, how many of the C may be its own; all where it is 0.

    Attributes:
        left_out: how many classes or labels of each task have no AUC.

    Raises:
        BadInput: of a task no class is left.
    """

    def __init__(
        self,
        targets: Sequence[NDArray[np.floating]],
        where: Sequence[str],
        device: torch.device,
        own: Sequence[int] = (),
    ) -> None:
        first, width = 0, max(map(len, targets))
        places, positives, sizes = [], [], []
        self._kept: list[int] = []
        self.left_out: list[int] = []
        for task, name, count in zip(targets, where, own or [0] * len(targets), strict=True):
            truth = task > 0.5
            kept = np.flatnonzero(truth.any(0) & ~truth.all(0))
            if not len(kept):
                raise BadInput(f"{name}: no class has both positive and negative instances, so there is no AUC")
            padding = ((0, 0), (0, width - len(task)))
            rows = np.arange(first, first + len(task))
            # -1 is the place of the infinity that the scores are given at their end.
            places.append(np.pad(rows * task.shape[1] + kept[:, None], padding, constant_values=-1))
            positives.append(np.pad(truth[:, kept].T, padding))
            sizes += [len(task)] * len(kept)
            self._kept.append(len(kept))
            self.left_out.append((count or task.shape[1]) - len(kept))
            first += len(task)
        self._places = torch.from_numpy(np.concatenate(places)).to(device)
        self._places[self._places < 0] = first * targets[0].shape[1]
        self._positives = torch.from_numpy(np.concatenate(positives)).to(device)
        self._sizes = torch.tensor(sizes, dtype=torch.float64, device=device)

    def __call__(self, scores: torch.Tensor) -> torch.Tensor:
        """The AUC of each run on each task: scores [S, n of all tasks, C], judged by their order, to float64 [S, N]."""
        flat = torch.cat([scores.flatten(1), scores.new_full((len(scores), 1), torch.inf)], dim=1)
        found = binary_auc(flat[:, self._places], self._positives.expand(len(scores), -1, -1), self._sizes)
        return torch.stack([part.mean(1) for part in found.split(self._kept, dim=1)], dim=1)
