"""Evaluation of S networks on one split of every task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.data.scenarios import Scenario, Subset
from clops_sweep.errors import Diverged
from clops_sweep.learning import losses
from clops_sweep.learning.auc import TaskAuc
from clops_sweep.learning.learner import Learner

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
        self._kind, self._learner = scenario.kind, learner
        self._sizes = [len(subset.rows) for subset in subsets]
        device = learner.bank.device
        # A pair of the softmax's classes is judged by one score, the difference of their logits.
        self._pairs = joint and scenario.name == "class_il"
        self._aucs = [
            TaskAuc(subset.targets[:, [2 * task + 1]] if self._pairs else subset.targets, name, device)
            for task, (subset, name) in enumerate(zip(subsets, self._names, strict=True))
        ]
        rows, targets = (np.concatenate([getattr(subset, name) for subset in subsets]) for name in ("rows", "targets"))
        self._union = TaskAuc(targets, f"{scenario.name}, all tasks, {split}", device) if joint else None
        self._rows = torch.from_numpy(rows).to(device).expand(runs, -1)
        self._targets = torch.from_numpy(targets).to(device).expand(runs, -1, -1)

    def evaluate(self) -> Evaluation:
        """Every task of the split, for every run, with the networks as they are.

        Raises:
            Diverged: some networks' outputs are no numbers any more.
        """
        logits = self._learner.logits(self._rows)
        losses_by_task = losses.instance_losses(self._kind, logits, self._targets).split(self._sizes, dim=1)
        # A sigmoid keeps the order of logits, and does not saturate as probabilities do.
        scores = losses.probabilities(self._kind, logits) if self._kind == "softmax" else logits
        logits_by_task, scores_by_task = logits.split(self._sizes, dim=1), scores.split(self._sizes, dim=1)
        judged = [part[:, :, 2 * task : 2 * task + 2].diff() for task, part in enumerate(logits_by_task)]
        aucs = [auc(part) for auc, part in zip(self._aucs, judged if self._pairs else scores_by_task, strict=True)]
        union = self._union(scores) if self._union else torch.full_like(aucs[0], torch.nan)
        # One transfer for everything: on a GPU this is where the host waits for the epoch.
        found = torch.stack(
            [
                torch.stack(aucs, dim=1),
                torch.stack([part.double().mean(1) for part in losses_by_task], dim=1),
                torch.stack(
                    [part.all(1).double() for part in logits.isfinite().all(2).split(self._sizes, dim=1)], dim=1
                ),
                union[:, None].expand(-1, len(aucs)),
            ]
        )
        auc, loss, finite, union_auc = found.cpu().numpy()
        diverged = np.flatnonzero(~finite.astype(bool).all(1))
        if diverged.size:
            task = int(np.argmin(finite[diverged[0]]))
            raise Diverged(
                f"{self._names[task]}: the network's outputs are not finite, training has diverged; a smaller "
                "learning_rate may help",
                diverged.tolist(),
            )
        left_out = np.array([each.left_out for each in self._aucs], dtype=np.int64)
        return Evaluation(auc, loss, np.tile(left_out, (len(auc), 1)), union_auc[:, 0].copy())
