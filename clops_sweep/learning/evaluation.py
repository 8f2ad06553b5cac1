"""Evaluation of S networks on one split of every task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.data.scenarios import Scenario, Subset
from clops_sweep.learning import losses
from clops_sweep.learning.learner import Learner
from clops_sweep.learning.metrics import TaskAuc, task_auc

SplitName = Literal["validation", "test"]


@dataclass(frozen=True)
class Evaluation:
    """How S runs do on one split.

    Attributes:
        auc: float64 [S, N], on each task.
        loss: float64 [S, N], mean loss on each task.
        left_out: int64 [S, N], classes or labels without an AUC.
        union_auc: float64 [S], on all tasks' instances together; nan unless asked for.
    """

    auc: NDArray[np.float64]
    loss: NDArray[np.float64]
    left_out: NDArray[np.int64]
    union_auc: NDArray[np.float64]


class Evaluator:
    """One split of all tasks, evaluated in one pass through the network.

    Args:
        scenario: the tasks.
        split: which of their splits.
        learner: the networks.
        runs: S.
        joint: whether the networks are trained on all tasks at once. The AUC over the union of the tasks is then
            computed too, and where each task is a pair of the softmax's classes, a task's AUC is that of telling
            its two classes apart: of the difference of their logits.
    """

    def __init__(self, scenario: Scenario, split: SplitName, learner: Learner, runs: int, *, joint: bool) -> None:
        subsets: list[Subset] = [getattr(task, split) for task in scenario.tasks]
        self._names = [f"{scenario.name}, task {task.name}, {split}" for task in scenario.tasks]
        self._scenario, self._split = scenario, split
        self._learner = learner
        self._joint = joint
        self._sizes = [len(subset.rows) for subset in subsets]
        device = learner.bank.device
        self._targets = [subset.targets for subset in subsets]
        rows = np.concatenate([subset.rows for subset in subsets])
        self._rows = torch.from_numpy(rows).to(device).expand(runs, -1)
        self._all_targets = torch.from_numpy(np.concatenate(self._targets)).to(device).expand(runs, -1, -1)

    def evaluate(self) -> Evaluation:
        """Every task of the split, for every run, with the networks as they are."""
        kind = self._scenario.kind
        logits = self._learner.logits(self._rows)
        instance_losses = losses.instance_losses(kind, logits, self._all_targets)
        task_losses = [part.double().mean(1) for part in instance_losses.split(self._sizes, dim=1)]
        # A sigmoid keeps the order of logits, and does not saturate as probabilities do.
        scores = losses.probabilities(kind, logits) if kind == "softmax" else logits
        host_logits = [part.numpy() for part in logits.cpu().split(self._sizes, dim=1)]
        host_scores = [part.numpy() for part in scores.cpu().split(self._sizes, dim=1)]
        runs = range(len(logits))
        results = [
            [self._task(task, host_logits[task][run], host_scores[task][run]) for task in range(len(self._sizes))]
            for run in runs
        ]
        return Evaluation(
            auc=np.array([[result.auc for result in row] for row in results]),
            loss=torch.stack(task_losses, dim=1).cpu().numpy(),
            left_out=np.array([[result.left_out for result in row] for row in results]),
            union_auc=np.array([self._union(np.concatenate([part[run] for part in host_scores])) for run in runs]),
        )

    def _task(self, task: int, logits: NDArray[np.float32], scores: NDArray[np.float32]) -> TaskAuc:
        kind, targets = self._scenario.kind, self._targets[task]
        if self._joint and self._scenario.name == "class_il":
            pair = slice(2 * task, 2 * task + 2)
            difference = np.diff(logits[:, pair], axis=1)
            return task_auc("binary", difference, targets[:, pair][:, 1:], self._names[task])
        return task_auc(kind, scores, targets, self._names[task])

    def _union(self, scores: NDArray[np.float32]) -> float:
        if not self._joint:
            return float("nan")
        where = f"{self._scenario.name}, all tasks, {self._split}"
        return task_auc(self._scenario.kind, scores, np.concatenate(self._targets), where).auc
