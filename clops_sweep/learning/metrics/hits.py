"""Accuracy, balanced accuracy and macro F1, from counts on the device of the logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.data.scenarios import LossKind

Floats = NDArray[np.float64]


class HitScores(NamedTuple):
    """Classification scores on each task, each float64 [N]."""

    accuracy: Floats
    balanced_accuracy: Floats
    f1: Floats


class TaskHits:
    """Metrics of predicted classes on one split of each task, as in scikit-learn.

    A sigmoid predicts its class above a probability of 1/2 (a logit of 0), a softmax the most probable class. Let tp_c
    be the number of instances of class c that are predicted as c, p_c those of class c, and n_c those predicted as c.

    - Accuracy is the share of correct predictions (`accuracy_score`); with several labels, all must be correct.
    - Balanced accuracy is the mean of tp_c / p_c over the classes that occur (`balanced_accuracy_score`); with several
      labels, the mean over labels of the balanced accuracy of presence and absence.
    - Macro F1 is the mean of 2 tp_c / (p_c + n_c) over the classes that occur (`f1_score` with `average="macro"` and
      `labels` those that occur); with several labels, the mean F1 of their presence.

    Labels with a single value in the split are left out, as for the AUC; nan if none is left.

    Args:
        kind: kind of the outputs.
        targets: targets of each task, [n, C] of zeros and ones; the tasks' instances are concatenated.
        device: device of the logits.
    """

    def __init__(self, kind: LossKind, targets: Sequence[NDArray[np.floating]], device: torch.device) -> None:
        self._kind = kind
        truth = np.concatenate(targets) > 0.5
        self._truth = torch.from_numpy(truth).to(device)
        sizes = [len(of_task) for of_task in targets]
        self._count = np.array(sizes, dtype=np.float64)
        self._positive = np.stack([(of_task > 0.5).sum(0) for of_task in targets]).astype(np.float64)
        self._is_scored = self._positive > 0
        if kind != "softmax":
            self._is_scored &= self._positive < self._count[:, None]
        tasks = np.arange(len(sizes))
        task_of_instance = np.repeat(tasks, sizes)
        is_member = task_of_instance == tasks[:, None]
        # Sums of zeros and ones are exact in float32 up to 2^24, in any order.
        self._member = torch.from_numpy(is_member.astype(np.float32)).to(device)

    def counts(self, logits: torch.Tensor) -> torch.Tensor:
        """Return counts [N, 2 C] of logits [n of all tasks, C]: tp_c, n_c; with labels also exact matches."""
        if self._kind == "softmax":
            most_probable = logits.argmax(1, keepdim=True)
            predicted = torch.zeros_like(logits, dtype=torch.bool)
            predicted.scatter_(1, most_probable, True)
        else:
            predicted = logits > 0
        indicators = [predicted & self._truth, predicted]
        if self._kind == "multilabel":
            all_correct = (predicted == self._truth).all(1, keepdim=True)
            indicators.append(all_correct)
        return torch.matmul(self._member, torch.cat(indicators, dim=1).to(torch.float32))

    def scores(self, counts: Floats) -> HitScores:
        """Return the metrics of counts on the host."""
        classes = self._positive.shape[1]
        count = self._count[:, None]
        positive = self._positive
        hits = counts[..., :classes]
        predicted = counts[..., classes : 2 * classes]
        recall = hits / np.maximum(positive, 1)
        f1 = 2 * hits / np.maximum(positive + predicted, 1)
        correct = counts[..., -1] if self._kind == "multilabel" else hits.sum(1)
        negative = count - positive
        correctly_absent = negative - predicted + hits
        if self._kind != "softmax":
            recall_of_absence = correctly_absent / np.maximum(negative, 1)
            recall = (recall + recall_of_absence) / 2
        if self._kind == "binary":
            predicted_absent = count - predicted
            f1_of_absence = 2 * correctly_absent / np.maximum(negative + predicted_absent, 1)
            f1 = (f1 + f1_of_absence) / 2
            correct = correct + correctly_absent[..., 0]
        accuracy = correct / self._count
        return HitScores(accuracy, self._mean_of_classes(recall), self._mean_of_classes(f1))

    def _mean_of_classes(self, scores: Floats) -> Floats:
        """Return the mean of scores [N, C] over the classes of each task that are not left out, [N]; nan for none."""
        with np.errstate(invalid="ignore"):
            mean: Floats = (scores * self._is_scored).sum(1) / self._is_scored.sum(1)
        return mean
