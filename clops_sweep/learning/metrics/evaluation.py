"""Evaluation of a network on one split of every task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.data.scenarios import LossKind, Scenario, Subset
from clops_sweep.errors import Diverged
from clops_sweep.experiment.metrics import MEASURES
from clops_sweep.learning import losses
from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.metrics.auc import SeenAucs, TaskAucs
from clops_sweep.learning.metrics.hits import TaskHits

SplitName = Literal["validation", "test"]


@dataclass(frozen=True)
class Evaluation:
    """Scores on one split, for N tasks; on the test split followed by `Scenario.unseen`, if any.

    Attributes:
        auc: float64 [N], on each task.
        accuracy: float64 [N].
        balanced_accuracy: float64 [N].
        f1: float64 [N]; see `TaskHits`.
        auc_seen: float64 [N]; see `SeenAucs`. nan for later tasks, and if tasks do not have their own classes.
        loss: float64 [N], mean loss on each task.
        left_out: int64 [N], number of classes or labels without an AUC.
        union: float64 [5], the `MEASURES` on all tasks' instances together; nan unless requested.
    """

    auc: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    balanced_accuracy: NDArray[np.float64]
    f1: NDArray[np.float64]
    auc_seen: NDArray[np.float64]
    loss: NDArray[np.float64]
    left_out: NDArray[np.int64]
    union: NDArray[np.float64]


class Evaluator:
    """One split of all tasks, evaluated in one pass through the network.

    Args:
        scenario: the tasks.
        split: the split to evaluate.
        learner: the network.
        joint: whether the network is trained on all tasks at once. Measures over the union of the tasks are then also
            computed, and if each task is a group of the softmax's classes, those of a task use only the logits of its
            own classes (of a pair, their difference).
    """

    def __init__(self, scenario: Scenario, split: SplitName, learner: Learner, *, joint: bool) -> None:
        subsets: list[Subset] = [getattr(task, split) for task in scenario.tasks]
        own = [task.outputs for task in scenario.tasks]
        self._names = [f"{scenario.name}, task {task.name}, {split}" for task in scenario.tasks]
        self._copies = len(subsets) if _all_equal(subsets) and not (scenario.by_position or own[0]) else 1
        if self._copies > 1:  # evaluated once
            subsets, own, self._names = subsets[:1], own[:1], self._names[:1]
        of_tasks = sum(len(subset.rows) for subset in subsets)
        if scenario.unseen is not None and split == "test":
            subsets, own = [*subsets, scenario.unseen], [*own, ()]
            self._names.append(f"{scenario.name}, people in no task")
        self._kind, self._learner = learner.kind, learner  # "multilabel" with head="per_class" in a softmax scenario
        self._sizes = [len(subset.rows) for subset in subsets]
        device = learner.bank.device
        targets = [subset.targets for subset in subsets]
        self._group = scenario.outputs // len(scenario.tasks) if joint and scenario.by_position else 0
        judged, judged_kind, self._scored_kind = targets, scenario.kind, learner.kind
        if self._group == 2:  # ranked by one score, the difference of the two logits
            judged, judged_kind = [task[:, [2 * k + 1]] for k, task in enumerate(targets)], "binary"
            self._scored_kind = judged_kind
        elif self._group:
            judged = [task[:, self._own(k)] for k, task in enumerate(targets)]
        self._aucs = TaskAucs(judged, self._names, device, list(map(len, own)), undefined=scenario.one_class_tasks)
        self._hits = TaskHits(judged_kind, judged, device)
        self._left_out = np.array(self._aucs.left_out, dtype=np.int64)
        self._seen = (
            SeenAucs(targets, own, f"{scenario.name}, classes seen, {split}", device)
            if scenario.has_own_classes
            else None
        )
        together = np.concatenate(targets)
        union, self._of_tasks = together[:of_tasks], of_tasks
        self._union = (
            (
                TaskAucs([union], [f"{scenario.name}, all tasks, {split}"], device),
                TaskHits(scenario.kind, [union], device),
            )
            if joint
            else None
        )
        rows = np.concatenate([subset.rows for subset in subsets])
        self._rows = torch.from_numpy(rows).to(device)
        self._targets = torch.from_numpy(together).to(device)

    def evaluate(self, seen: int | None = None) -> Evaluation:
        """Evaluate the current network on every task of the split.

        Args:
            seen: number of tasks trained; None for all.

        Raises:
            Diverged: outputs of the network are not finite.
        """
        return self._evaluation(self._learner.logits(self._rows), seen)

    def evaluate_and_predict(self, seen: int | None = None) -> tuple[Evaluation, NDArray[np.float32]]:
        """Evaluate, and return probabilities, then logits of every instance, float32 [n of all tasks, 2 outputs].

        Args:
            seen: number of tasks trained; None for all.

        Raises:
            Diverged: outputs of the network are not finite.
        """
        logits = self._learner.logits(self._rows)
        outputs = torch.cat([losses.probabilities(self._kind, logits), logits], dim=1).cpu().numpy()
        of_tasks = np.tile(outputs[: self._of_tasks], (self._copies, 1))
        return self._evaluation(logits, seen), np.concatenate([of_tasks, outputs[self._of_tasks :]])

    def _evaluation(self, logits: torch.Tensor, seen: int | None) -> Evaluation:
        judged = self._of_own_classes(logits) if self._group else logits
        scores = scores_of(self._scored_kind, judged)
        auc = self._aucs(scores)
        tasks = len(auc)
        auc_seen = self._seen(scores, seen or tasks) if self._seen else torch.full_like(auc, torch.nan)
        loss = losses.instance_losses(self._kind, logits, self._targets).double().split(self._sizes)
        found = [
            auc,
            torch.stack([part.mean() for part in loss]),
            logits.abs().amax().isfinite()[None],
            self._hits.counts(judged).flatten(),
            auc_seen,
        ]
        if self._union:
            aucs, hits = self._union
            of_tasks = logits[: self._of_tasks]
            found += [aucs(scores_of(self._kind, of_tasks)), hits.counts(of_tasks).flatten()]
        # A single transfer: on a GPU, the host waits here for the epoch.
        arrived = torch.cat([part.double() for part in found]).cpu().numpy()
        ends = list(accumulate(map(len, found)))
        parts = [arrived[first:last] for first, last in pairwise([0, *ends])]
        if not parts[2][0]:
            raise self._diverged(logits)
        union = np.full(len(MEASURES), np.nan)
        if self._union:
            hit = self._union[1].scores(parts[6][None])
            union = np.concatenate([parts[5], *hit, parts[5] if self._seen else np.full_like(parts[5], np.nan)])
        columns = [0] * self._copies + list(range(1, tasks))
        accuracy, balanced_accuracy, f1 = (score[columns] for score in self._hits.scores(parts[3].reshape(tasks, -1)))
        return Evaluation(
            parts[0][columns],
            accuracy,
            balanced_accuracy,
            f1,
            parts[4][columns],
            parts[1][columns],
            self._left_out[columns],
            union,
        )

    def _diverged(self, logits: torch.Tensor) -> Diverged:
        """Return the error that names the first task with outputs that are not finite."""
        first = int(np.argmin(logits.isfinite().all(1).cpu().numpy()))
        task = int(np.searchsorted(np.cumsum(self._sizes), first, side="right"))
        return Diverged(
            f"{self._names[task]}: the network's outputs are not finite, training has diverged; a smaller "
            "learning_rate may help"
        )

    def _own(self, task: int) -> slice:
        return slice(self._group * task, self._group * (task + 1))

    def _of_own_classes(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the logits of the classes of each instance's task, [n, g]; for a pair, their difference."""
        parts = [part[:, self._own(task)] for task, part in enumerate(logits.split(self._sizes))]
        return torch.cat([part.diff() for part in parts] if self._group == 2 else parts)


def _all_equal(subsets: Sequence[Subset]) -> bool:
    first = subsets[0]
    return all(np.array_equal(it.rows, first.rows) and np.array_equal(it.targets, first.targets) for it in subsets[1:])


def scores_of(kind: LossKind, logits: torch.Tensor) -> torch.Tensor:
    """Return the scores that rank instances: ordered like the probabilities, but without ties where these saturate."""
    return losses.log_odds(logits) if kind == "softmax" else logits
