"""AUC of tasks on the device of their scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.errors import UsageError


class TaskAucs:
    """AUC of each task on one split. With several classes or labels, the mean over them, each against the rest.

    An AUC is the share of (positive, negative) pairs in the right order; ties count half. Pairs are counted exactly, as
    integers. A class or label with a single value in the split is left out and counted.

    Args:
        targets: targets of each task, [n, C] of zeros and ones; the tasks' instances are concatenated.
        where: name of each task and the split, for errors.
        device: device of the scores.
        own: number of the C outputs that belong to each task; 0 for all.
        undefined: whether the AUC of a task without such a class is nan.

    Attributes:
        left_out: number of classes or labels of each task without an AUC.
        classes: classes of each task with an AUC, ascending.

    Raises:
        UsageError: a task has no class with an AUC, unless `undefined`.
    """

    def __init__(
        self,
        targets: Sequence[NDArray[np.floating]],
        where: Sequence[str],
        device: torch.device,
        own: Sequence[int] = (),
        *,
        undefined: bool = False,
    ) -> None:
        first = 0
        end = sum(map(np.size, targets))  # the index of the infinity at the end of the scores
        negative: list[NDArray[np.int64]] = []
        positive: list[NDArray[np.int64]] = []
        self._numbers_of_classes: list[int] = []
        self.classes: list[NDArray[np.int64]] = []
        self.left_out: list[int] = []
        for task, name, count in zip(targets, where, own or [0] * len(targets), strict=True):
            truth = task > 0.5
            with_auc = np.flatnonzero(truth.any(0) & ~truth.all(0))
            if not len(with_auc) and not undefined:
                raise UsageError(f"{name}: no class has both positive and negative instances, so there is no AUC")
            rows = first + np.arange(len(task))
            outputs = task.shape[1]
            for output in with_auc:
                is_positive = truth[:, output]
                negative.append(rows[~is_positive] * outputs + output)
                positive.append(rows[is_positive] * outputs + output)
            self._numbers_of_classes.append(len(with_auc))
            self.classes.append(with_auc)
            self.left_out.append((count or outputs) - len(with_auc))
            first += len(task)
        self._negative = torch.from_numpy(_padded(negative, end)).to(device)
        self._positive = torch.from_numpy(_padded(positive, end)).to(device)
        self._counts = (self._positive < end).to(torch.int64)
        pairs = 2 * _lengths(negative) * _lengths(positive)
        self._pairs = torch.from_numpy(pairs).to(device)

    def __call__(self, scores: torch.Tensor) -> torch.Tensor:
        """Return the AUC on each task: scores [n of all tasks, C] to float64 [N]."""
        by_class = self.by_class(scores)
        if set(self._numbers_of_classes) == {1}:
            return by_class
        means = [of_task.mean() for of_task in by_class.split(self._numbers_of_classes)]
        return torch.stack(means)

    def by_class(self, scores: torch.Tensor) -> torch.Tensor:
        """Return the AUC of each class or label of `classes`, concatenated over tasks: float64 [classes]."""
        flat = torch.cat([scores.flatten(), scores.new_full((1,), torch.inf)])
        negative = flat[self._negative].sort(-1).values
        positive = flat[self._positive]
        below = torch.searchsorted(negative, positive)
        not_above = torch.searchsorted(negative, positive, right=True)
        twice = (below + not_above) * self._counts
        return twice.sum(-1).double() / self._pairs


class SeenAucs:
    """The AUC over all classes seen so far, if every task has its own classes.

    Each class seen so far is compared with all others seen so far, one against the rest, among the instances of all
    tasks trained so far (`roc_auc_score` of scikit-learn with `multi_class="ovr"`). The AUC of a task is the mean over
    its classes. A class that does not occur in the split is left out.

    Args:
        targets: targets of each task in training order, one-hot [n, C].
        own: indices of each task's classes.
        where: name of the tasks and the split, for errors.
        device: device of the scores.
    """

    def __init__(
        self, targets: Sequence[NDArray[np.floating]], own: Sequence[Sequence[int]], where: str, device: torch.device
    ) -> None:
        self._targets = targets
        self._own = own
        self._where = where
        self._device = device
        self._made: tuple[int, TaskAucs] | None = None

    def __call__(self, scores: torch.Tensor, seen: int) -> torch.Tensor:
        """Return the AUC on each task, float64 [N]; nan for later tasks.

        Args:
            scores: scores of the classes, [n of all tasks, C].
            seen: number of tasks trained.
        """
        targets = np.concatenate(self._targets[:seen])
        if self._made is None or self._made[0] != seen:  # cached for one stage only, to save memory
            self._made = seen, TaskAucs([targets], [self._where], self._device)
        aucs = self._made[1]
        by_class = aucs.by_class(scores[: len(targets)])
        of_tasks = by_class.new_full((len(self._own),), torch.nan)
        for task, own in enumerate(self._own[:seen]):
            is_own = np.isin(aucs.classes[0], own)
            of_tasks[task] = by_class[np.flatnonzero(is_own)].mean()
        return of_tasks


def _padded(rows: Sequence[NDArray[np.int64]], value: int) -> NDArray[np.int64]:
    """Return rows of different lengths as one array, filled up with a value: int64 [rows, longest]."""
    longest = max(map(len, rows), default=0)
    padded = np.full((len(rows), longest), value)
    for row, values in zip(padded, rows, strict=True):
        row[: len(values)] = values
    return padded


def _lengths(rows: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    return np.array([len(row) for row in rows], np.float64)
