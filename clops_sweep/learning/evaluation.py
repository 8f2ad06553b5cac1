"""Evaluation of S networks on one split of every task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.data.scenarios import Scenario
from clops_sweep.learning import losses
from clops_sweep.learning.learner import Learner
from clops_sweep.learning.metrics import task_auc

SplitName = Literal["validation", "test"]


@dataclass(frozen=True)
class Evaluation:
    """AUC and mean loss of every run on every task: float64 [S, N] each; `left_out` counts classes, int64 [S, N]."""

    auc: NDArray[np.float64]
    loss: NDArray[np.float64]
    left_out: NDArray[np.int64]


class Evaluator:
    """One split of all tasks, evaluated in one pass through the network.

    Args:
        scenario: the tasks.
        split: which of their splits.
        learner: the networks.
        runs: S.
    """

    def __init__(self, scenario: Scenario, split: SplitName, learner: Learner, runs: int) -> None:
        subsets = [getattr(task, split) for task in scenario.tasks]
        self._names = [f"{scenario.name}, task {task.name}, {split}" for task in scenario.tasks]
        self._kind = scenario.kind
        self._learner = learner
        self._sizes = [len(subset.rows) for subset in subsets]
        device = learner.bank.device
        self._rows = torch.from_numpy(np.concatenate([s.rows for s in subsets])).to(device).expand(runs, -1)
        self._targets = torch.from_numpy(np.concatenate([s.targets for s in subsets])).to(device).expand(runs, -1, -1)
        self._host_targets: Sequence[NDArray[np.float32]] = [subset.targets for subset in subsets]

    def evaluate(self) -> Evaluation:
        """Every task of the split, for every run, with the networks as they are."""
        logits = self._learner.logits(self._rows)
        instance_losses = losses.instance_losses(self._kind, logits, self._targets)
        # A sigmoid keeps the order of logits, and does not saturate as probabilities do.
        scores = losses.probabilities("softmax", logits) if self._kind == "softmax" else logits
        parts = scores.cpu().split(self._sizes, dim=1)
        mean_losses = [part.double().mean(1) for part in instance_losses.split(self._sizes, dim=1)]
        results = [
            [
                task_auc(self._kind, part[run].numpy(), targets, where)
                for part, targets, where in zip(parts, self._host_targets, self._names, strict=True)
            ]
            for run in range(len(logits))
        ]
        return Evaluation(
            auc=np.array([[result.auc for result in row] for row in results]),
            loss=torch.stack(mean_losses, dim=1).cpu().numpy(),
            left_out=np.array([[result.left_out for result in row] for row in results]),
        )
