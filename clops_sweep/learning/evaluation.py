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
from clops_sweep.learning.auc import TaskAucs
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
        judged = [
            subset.targets[:, [2 * task + 1]] if self._pairs else subset.targets for task, subset in enumerate(subsets)
        ]
        self._aucs = TaskAucs(judged, self._names, device)
        rows, targets = (np.concatenate([getattr(subset, name) for subset in subsets]) for name in ("rows", "targets"))
        self._union = TaskAucs([targets], [f"{scenario.name}, all tasks, {split}"], device) if joint else None
        self._rows = torch.from_numpy(rows).to(device).expand(runs, -1)
        self._targets = torch.from_numpy(targets).to(device).expand(runs, -1, -1)

    def evaluate(self) -> Evaluation:
        """Every task of the split, for every run, with the networks as they are.

        Raises:
            Diverged: some networks' outputs are no numbers any more.
        """
        logits = self._learner.logits(self._rows)
        # In the order of the probabilities, which saturate: two that are both 1 to the last digit would be a tie.
        scores = losses.log_odds(logits) if self._kind == "softmax" else logits
        auc_by_task = self._aucs(self._of_pairs(logits) if self._pairs else scores)
        loss_by_task = losses.instance_losses(self._kind, logits, self._targets).double().split(self._sizes, dim=1)
        finite_by_task = logits.isfinite().all(2).split(self._sizes, dim=1)
        union = self._union(scores) if self._union else torch.full_like(auc_by_task[:, :1], torch.nan)
        # One transfer for everything: on a GPU this is where the host waits for the epoch.
        found = torch.stack(
            [
                auc_by_task,
                torch.stack([part.mean(1) for part in loss_by_task], dim=1),
                torch.stack([part.all(1) for part in finite_by_task], dim=1).double(),
                union.expand_as(auc_by_task),
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
        left_out = np.array(self._aucs.left_out, dtype=np.int64)
        return Evaluation(auc, loss, np.tile(left_out, (len(auc), 1)), union_auc[:, 0].copy())

    def _of_pairs(self, logits: torch.Tensor) -> torch.Tensor:
        """How much more each instance looks like the second class of its task's pair: [S, n, 1]."""
        parts = logits.split(self._sizes, dim=1)
        return torch.cat([part[:, :, 2 * task : 2 * task + 2].diff() for task, part in enumerate(parts)], dim=1)
