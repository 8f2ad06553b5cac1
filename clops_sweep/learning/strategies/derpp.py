"""DER++: replay of stored instances with their earlier logits and their targets (Buzzega et al., 2020).

Dark experience replay offers every training instance to a reservoir (Vitter, 1985), together with its logits z in that
step. It does so in every epoch, so the stored logits come from the whole course of training. From the second task on
each step minimises

    L = mean_I(l_i) + alpha mean_J(|z_j - z_j(now)|^2 / C) + beta mean_K(l_k),

where J and K are drawn independently, each with `replay_ratio` times the number of instances of a batch. All three pass
through the network as one batch. The defaults are the authors' settings for a small memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.data.scenarios import LossKind
from clops_sweep.learning import losses, streams
from clops_sweep.learning.batches import Replay, batch_sizes
from clops_sweep.learning.learners.logit_table import PULL, READ, WRITTEN, LogitTable
from clops_sweep.learning.replay.mini_batches import replay_batch_size, with_replay
from clops_sweep.learning.replay.reservoir import ReservoirEpoch
from clops_sweep.learning.strategies.base import InstanceRecord, MemoryUse, Training
from clops_sweep.learning.strategies.fixed_memory import FixedMemory


class DarkExperienceReplay(FixedMemory):
    """Replay of logits and of targets from a reservoir that is filled during training."""

    def __init__(self, training: Training) -> None:
        super().__init__(training)
        options, learner = training.config.options, training.learner
        self._alpha, self._beta = options["derpp_alpha"], options["derpp_beta"]
        self._logits = torch.zeros(self.capacity + 1, learner.outputs, device=learner.bank.device)
        """Logits of the instance at each place of the memory; one more place is for dropped instances."""
        self._offered = 0
        """Number of instances offered, counted once per epoch."""

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Make all random draws and plan the contents of the memory at every step, then take the steps."""
        config, learner, instances = self.training.config, self.training.learner, self.training.tasks[task]
        size = config.batch_size
        count = replay_batch_size(config.replay_ratio, size, len(self.memory)) if task else 0
        sizes = batch_sizes(len(order), size, 1 if count else learner.smallest_batch)
        new = self.memory.of_task(task, order).cpu().numpy()
        plan = ReservoirEpoch.of(
            self.memory.instances.cpu().numpy(),
            self._offered,
            new,
            self.capacity,
            sizes,
            sets=2,
            count=count,
            offering=streams.generator(config.seed, "memory", task, epoch),
            replaying=streams.generator(config.seed, "replay", task, epoch),
        )
        self._offered += len(new)
        if count:
            replay = self._replay(plan.replayed)
            order = with_replay(order, size, 2 * count)
        current = learner.begin_epoch(instances, replay, order, size + 2 * count, dropout_keys)
        for name, values in zip((READ, WRITTEN, PULL), self._of_steps(plan, sizes), strict=True):
            current.keep(name, torch.from_numpy(values))
        self.memory.instances = torch.from_numpy(plan.held).to(order.device)
        learner.train_by_logits(
            current,
            partial(_by_logits, learner.kind),
            given=lambda batch: (batch.targets, batch.weights.unsqueeze(1)),
            table=LogitTable(self._logits, current),
        )

    def _replay(self, replayed: NDArray[np.int64]) -> Replay:
        """Return replayed instances, [steps, 2, M], with factors from weights 1 / (2 M) to those of J and K."""
        factors = np.zeros(replayed.shape, np.float32)
        factors[:, 1] = 2 * self._beta
        device = self.memory.instances.device
        instances, of_each = (torch.from_numpy(part.reshape(-1)).to(device) for part in (replayed, factors))
        self.memory.count(instances)
        return Replay(self.memory.looked_up(instances), of_each)

    def _of_steps(self, plan: ReservoirEpoch, sizes: Sequence[int]) -> Sequence[NDArray[Any]]:
        """Return the indices at which each batch reads and writes stored logits, and the weights of the pull.

        Args:
            plan: the contents of the memory at every step.
            sizes: sizes of the batches, without replayed instances.

        Returns:
            Two int64 and one float32 [steps, B + 2 M]; the entries of a smaller batch come first.
        """
        count, nowhere = plan.drawn.shape[2], self.capacity
        read, written = np.full((2, len(sizes), max(sizes) + 2 * count), nowhere)
        for step, size in enumerate(sizes):
            read[step, size : size + count] = plan.drawn[step, 0]
            written[step, :size] = plan.places[step, :size]
        of_one = 2 * self._alpha / max(1, count * self.training.learner.outputs)
        pull = np.where(read < nowhere, np.float32(of_one), np.float32(0))
        return read, written, pull

    def memory_use(self, records: Sequence[InstanceRecord]) -> MemoryUse:
        """As `Method.memory_use`; each instance also stores its float32 logits."""
        size = super().memory_use(records)
        return replace(size, instance_bytes=size.instance_bytes + 4 * self.training.learner.outputs)

    def end_task(self, task: int) -> None:
        """Do nothing: the task's instances were offered during training."""

    def state(self) -> dict[str, Any]:
        """Return memory, logits, and the number of instances offered."""
        self._logits[self.capacity].zero_()  # dropped instances' place: arbitrary, never read
        return super().state() | {"logits": self._logits, "offered": self._offered}

    def restore(self, state: dict[str, Any], task: int) -> None:
        """Restore a state from `state` during the given task."""
        super().restore(state, task)
        self._logits.copy_(state["logits"])
        self._offered = state["offered"]


def _by_logits(kind: LossKind, logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return dL / dz, [B + 2 M, C], without the pull on the logits of J, whose weights, [B + 2 M, 1], are 0."""
    return losses.loss_gradient(kind, logits, targets).mul_(weights)
