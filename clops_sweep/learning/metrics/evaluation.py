"""Evaluation of a network on one split of every task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
        self._learner = learner
        self._kind = learner.kind  # "multilabel" with head="per_class" in a softmax scenario
        tasks = list(scenario.tasks)
        self._copies = 1
        subsets: list[Subset] = [getattr(task, split) for task in tasks]
        if not (scenario.by_position or tasks[0].outputs) and _all_equal(subsets):
            self._copies = len(tasks)
            tasks = tasks[:1]  # evaluated once
            subsets = subsets[:1]
        own = [task.outputs for task in tasks]
        self._names = [f"{scenario.name}, task {task.name}, {split}" for task in tasks]
        self._of_tasks = sum(len(subset.rows) for subset in subsets)
        if scenario.unseen is not None and split == "test":
            subsets.append(scenario.unseen)
            own.append(())
            self._names.append(f"{scenario.name}, people in no task")
        self._sizes = [len(subset.rows) for subset in subsets]
        device = learner.bank.device
        targets = [subset.targets for subset in subsets]
        self._group = scenario.outputs // len(scenario.tasks) if joint and scenario.by_position else 0
        judged = targets
        judged_kind = scenario.kind
        self._scored_kind = learner.kind
        if self._group == 2:  # ranked by one score, the difference of the two logits
            judged = [of_task[:, [2 * task + 1]] for task, of_task in enumerate(targets)]
            judged_kind = "binary"
            self._scored_kind = "binary"
        elif self._group:
            judged = [of_task[:, self._own(task)] for task, of_task in enumerate(targets)]
        own_counts = [len(outputs) for outputs in own]
        self._aucs = TaskAucs(judged, self._names, device, own_counts, undefined=scenario.one_class_tasks)
        self._hits = TaskHits(judged_kind, judged, device)
        self._left_out = np.array(self._aucs.left_out, dtype=np.int64)
        self._seen: SeenAucs | None = None
        if scenario.has_own_classes:
            self._seen = SeenAucs(targets, own, f"{scenario.name}, classes seen, {split}", device)
        together = np.concatenate(targets)
        self._union: tuple[TaskAucs, TaskHits] | None = None
        if joint:
            union = [together[: self._of_tasks]]
            aucs = TaskAucs(union, [f"{scenario.name}, all tasks, {split}"], device)
            self._union = aucs, TaskHits(scenario.kind, union, device)
        rows = np.concatenate([subset.rows for subset in subsets])
        self._rows = torch.from_numpy(rows).to(device)
        self._targets = torch.from_numpy(together).to(device)

    def evaluate(self, seen: int | None = None) -> Evaluation:
        """Return the scores of the current network on every task of the split.

        Args:
            seen: number of tasks trained; None for all.

        Raises:
            Diverged: outputs of the network are not finite.
        """
        return self._evaluation(self._learner.logits(self._rows), seen)

    def evaluate_and_predict(self, seen: int | None = None) -> tuple[Evaluation, NDArray[np.float32]]:
        """Return scores, and probabilities, then logits of every instance, float32 [n of all tasks, 2 outputs].

        Args:
            seen: number of tasks trained; None for all.

        Raises:
            Diverged: outputs of the network are not finite.
        """
        logits = self._learner.logits(self._rows)
        probabilities = losses.probabilities(self._kind, logits)
        outputs = torch.cat([probabilities, logits], dim=1).cpu().numpy()
        of_tasks = np.tile(outputs[: self._of_tasks], (self._copies, 1))
        of_unseen = outputs[self._of_tasks :]
        return self._evaluation(logits, seen), np.concatenate([of_tasks, of_unseen])

    def _evaluation(self, logits: torch.Tensor, seen: int | None) -> Evaluation:
        judged = self._of_own_classes(logits) if self._group else logits
        scores = scores_of(self._scored_kind, judged)
        auc = self._aucs(scores)
        tasks = len(auc)
        auc_seen = self._seen(scores, seen or tasks) if self._seen else torch.full_like(auc, torch.nan)
        instance_losses = losses.instance_losses(self._kind, logits, self._targets).double()
        loss = [of_task.mean() for of_task in instance_losses.split(self._sizes)]
        on_device = {
            "auc": auc,
            "loss": torch.stack(loss),
            "is finite": logits.abs().amax().isfinite()[None],
            "hits": self._hits.counts(judged).flatten(),
            "auc_seen": auc_seen,
        }
        if self._union:
            aucs, hits = self._union
            of_tasks = logits[: self._of_tasks]
            on_device["auc of union"] = aucs(scores_of(self._kind, of_tasks))
            on_device["hits of union"] = hits.counts(of_tasks).flatten()
        arrived = _on_host(on_device)
        if not arrived["is finite"][0]:
            raise self._diverged(logits)
        union = np.full(len(MEASURES), np.nan)
        if self._union:
            _, hits = self._union
            of_hits = hits.scores(arrived["hits of union"][None])
            union_auc = arrived["auc of union"]
            union_auc_seen = union_auc if self._seen else np.full_like(union_auc, np.nan)
            union = np.concatenate([union_auc, *of_hits, union_auc_seen])
        columns = [0] * self._copies + list(range(1, tasks))
        of_hits = self._hits.scores(arrived["hits"].reshape(tasks, -1))
        return Evaluation(
            auc=arrived["auc"][columns],
            accuracy=of_hits.accuracy[columns],
            balanced_accuracy=of_hits.balanced_accuracy[columns],
            f1=of_hits.f1[columns],
            auc_seen=arrived["auc_seen"][columns],
            loss=arrived["loss"][columns],
            left_out=self._left_out[columns],
            union=union,
        )

    def _diverged(self, logits: torch.Tensor) -> Diverged:
        """Return the error that names the first task with outputs that are not finite."""
        is_finite = logits.isfinite().all(1).cpu().numpy()
        first = int(np.argmin(is_finite))
        task = int(np.searchsorted(np.cumsum(self._sizes), first, side="right"))
        return Diverged(
            f"{self._names[task]}: the network's outputs are not finite, training has diverged; a smaller "
            "learning_rate may help"
        )

    def _own(self, task: int) -> slice:
        """Return the outputs of a task, if each task is a group of the softmax's classes."""
        first = self._group * task
        return slice(first, first + self._group)

    def _of_own_classes(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the logits of the classes of each instance's task, [n, g]; for a pair, their difference."""
        of_own_classes = []
        for task, of_task in enumerate(logits.split(self._sizes)):
            own = of_task[:, self._own(task)]
            of_own_classes.append(own.diff() if self._group == 2 else own)
        return torch.cat(of_own_classes)


def _on_host(values: Mapping[str, torch.Tensor]) -> dict[str, NDArray[np.float64]]:
    """Return vectors as arrays, by a single transfer: on a GPU, the host waits here for the epoch."""
    arrived = torch.cat([vector.double() for vector in values.values()]).cpu().numpy()
    arrays: dict[str, NDArray[np.float64]] = {}
    end = 0
    for name, vector in values.items():
        start, end = end, end + len(vector)
        arrays[name] = arrived[start:end]
    return arrays


def _all_equal(subsets: Sequence[Subset]) -> bool:
    first = subsets[0]
    for subset in subsets[1:]:
        if not np.array_equal(subset.rows, first.rows) or not np.array_equal(subset.targets, first.targets):
            return False
    return True


def scores_of(kind: LossKind, logits: torch.Tensor) -> torch.Tensor:
    """Return the scores that rank instances: ordered like the probabilities, but without ties where these saturate."""
    return losses.log_odds(logits) if kind == "softmax" else logits
