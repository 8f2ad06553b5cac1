"""ER: every batch is joined by a mini-batch from a small memory (Chaudhry et al., "On tiny episodic memories", 2019).

This is standard experience replay. From the second task on each step minimises

    L = mean_I(l_i) + mean_J(l_j),

where I is a batch of the task, and J holds `replay_ratio` times as many distinct instances, drawn from the memory anew
for each batch. (The authors average over I and J together. With equal sizes that is L / 2, and a step of Adam does not
depend on the factor. They see every instance once and store it during the task, so that J also holds the current task;
here the task is offered at its end.) `memory_division` selects the kind of memory: a reservoir of all instances so far,
or equal shares of the tasks or of the classes so far.

The components of CLOPS are available as options: `er_storage_order` keeps the instances with the highest (`top`) or the
lowest s (`bottom`), with beta weighting the loss as in CLOPS. `er_acquire` draws from the share of the memory's groups
that an acquisition function scores highest, updated every `acquire_every` epochs.

`er_flip_strength` lambda adds the penalty of `flip_penalty` (Yan et al., 2021) to the loss of I and to that of J:
lambda mean(r |z - z'|^2 / C). Here z' are the logits of the network at the start of the task, and r is 1 if they were
right, else 0.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import torch

from clops_sweep.data.scenarios import LossKind
from clops_sweep.learning import losses
from clops_sweep.learning.batches import Epoch, EpochBatch, Replay
from clops_sweep.learning.learners.beta import TaskInstanceParameters
from clops_sweep.learning.replay.acquisition import AcquisitionContext
from clops_sweep.learning.replay.checked import acquisition_scores, storage_scores
from clops_sweep.learning.replay.division import highest_of_each
from clops_sweep.learning.replay.mini_batches import with_replay
from clops_sweep.learning.strategies.base import InstanceRecord, Training
from clops_sweep.learning.strategies.fixed_memory import FixedMemory


class TinyEpisodicMemory(FixedMemory):
    """Experience replay from a memory of fixed size, with one mini-batch per batch."""

    def __init__(self, training: Training) -> None:
        super().__init__(training)
        options = training.config.options
        self.division = options["memory_division"]
        self._storage_order, self._acquires = options["er_storage_order"], options["er_acquire"]
        self._beta: TaskInstanceParameters | None = None
        self._pool: torch.Tensor | None = None
        self._flip_strength: float | None = options["er_flip_strength"]
        self._old = torch.empty(0)
        """z' of the task's instances, then of the memory's: [n + m, C]; empty without a penalty."""
        self._records: list[InstanceRecord] = []

    def begin_task(self, task: int) -> None:
        """Set beta to 1 for every instance if storage uses it; compute the network's logits for the penalty."""
        if task and self._flip_strength is not None:
            parts = [self.training.tasks[task].rows, self.memory.looked_up(self.memory.instances).rows]
            self._old = torch.cat([self.training.learner.logits(part) for part in parts])
        if self._storage_order != "random":
            config, rows = self.training.config, self.training.tasks[task].rows
            self._beta = TaskInstanceParameters(len(rows), config.beta_penalty, config.beta_learning_rate, rows.device)

    def replay(self, task: int, epoch: int) -> Replay | None:
        """Choose the instances that the epoch's batches may draw from; return no replay for the whole epoch."""
        config = self.training.config
        if len(self.memory) and self._acquires and epoch % config.acquire_every == 0:
            context = AcquisitionContext(self.training.learner, config, (task, epoch, 0))
            rows = self.memory.looked_up(self.memory.instances).rows
            scores = acquisition_scores(config, context, rows)
            self._pool = highest_of_each(scores, self.groups(), config.acquisition_fraction)
        return None

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Train on each batch and, once the memory is filled, the instances drawn for it."""
        instances, size = self.training.tasks[task], self.training.config.batch_size
        if len(self.memory):
            places = self.draws(task, epoch, self._pool)
            replay, order = self.drawn_replay(places), with_replay(order, size, places.shape[1])
            size += places.shape[1]
            if self._flip_strength is not None:
                epoch_of = self.training.learner.begin_epoch(instances, replay, order, size, dropout_keys)
                self._train_with_penalty(epoch_of, places, order)
                return
        self.training.learner.train_epoch(instances, replay, order, size, dropout_keys, self._beta)

    def _train_with_penalty(self, epoch: Epoch, places: torch.Tensor, order: torch.Tensor) -> None:
        """Train an epoch with the penalty, replaying the given places of the memory, int64 [steps, M]."""
        learner, count = self.training.learner, len(self._old) - len(self.memory)
        own = torch.arange(count, device=order.device)
        old = torch.cat([own, count + places.flatten()])[order]
        epoch.keep("old logits", self._old[old])
        pull = 2 * (self._flip_strength or 0.0) / learner.outputs

        def given(batch: EpochBatch) -> tuple[torch.Tensor, ...]:
            sizes = torch.where(batch.current, batch.current_count, len(batch.rows) - batch.current_count)
            old = epoch.kept("old logits").index_select(0, batch.draws)
            return batch.targets, batch.weights, old, pull / sizes

        learner.train_by_logits(epoch, partial(_by_logits, learner.kind), given)

    def end_epoch(self) -> None:
        """Record beta for the area under its trajectory."""
        if self._beta is not None:
            self._beta.record()

    def end_task(self, task: int) -> None:
        """Offer the task's instances to the memory, at random or by s."""
        record = super().record(task)
        if self._beta is None:
            self.offer(task)
        else:
            trajectories = self._beta.trajectories()
            s = storage_scores(self.training.config, trajectories)
            self.offer(task, s if self._storage_order == "top" else -s)
            record = replace(record, s=s, beta=self._beta.values.clone(), trajectories=trajectories.T)
        self._records.append(record)
        self._beta, self._pool = None, None

    def record(self, task: int) -> InstanceRecord:
        """Return s and beta at the end of the task, its instances stored now, and the number of replays until now."""
        now = super().record(task)
        return replace(self._records[task], stored=now.stored, times_replayed=now.times_replayed)

    def state(self) -> dict[str, Any]:
        """Return memory, beta, the instances to draw from, and records."""
        return super().state() | {
            "beta": None if self._beta is None else self._beta.state(),
            "pool": self._pool,
            "old": self._old,
            "records": [vars(record) for record in self._records],
        }

    def restore(self, state: dict[str, Any], task: int) -> None:
        """Restore a state from `state` during the given task."""
        super().restore(state, task)
        self._pool, self._old = state["pool"], state["old"]
        self._records = [InstanceRecord(**record) for record in state["records"]]
        if state["beta"] is not None:
            self.begin_task(task)
            assert self._beta is not None
            self._beta.restore(state["beta"])


def _by_logits(
    kind: LossKind,
    logits: torch.Tensor,
    targets: torch.Tensor,
    weights: torch.Tensor,
    old: torch.Tensor,
    pull: torch.Tensor,
) -> torch.Tensor:
    """Return dL / dz, [B + M, C]."""
    right = losses.predicted_right(kind, old, targets)
    gradient = losses.loss_gradient(kind, logits, targets).mul_(weights[:, None])
    return gradient.add_((right * pull)[:, None] * (logits - old))
