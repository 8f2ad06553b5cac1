"""DER++: replay of stored instances with their earlier logits and their targets (Buzzega et al., NeurIPS 2020).

Dark experience replay offers every training instance to a reservoir (Vitter, 1985), together with its logits z in that
step. It does so in every epoch, so the stored logits come from the whole course of training. From the second task on
each step minimises

    L = mean_I(l_i) + alpha mean_J(|z_j - z_j(now)|^2 / C) + beta mean_K(l_k),

where I is a batch of the task. J and K are drawn independently from the reservoir, each with `replay_ratio` times the
number of instances of a batch. alpha is `derpp_alpha` and beta `derpp_beta`; the defaults are the authors' settings for
a small memory.

The paper has no 1 / C; the authors' code, in Mammoth, has it. There J and K are drawn in the first task, too, and I, J
and K pass through the network one by one. Here they are one batch, so batch norm sees all three together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from clops_sweep.data.scenarios import LossKind
from clops_sweep.learning import losses, streams
from clops_sweep.learning.batches import Epoch, Replay, batch_sizes
from clops_sweep.learning.learners.logit_table import PULL, READ, WRITTEN, LogitTable
from clops_sweep.learning.method.training import InstanceRecord, MemoryUse
from clops_sweep.learning.replay.mini_batches import replay_batch_size, with_replay
from clops_sweep.learning.replay.reservoir import Contents, ReservoirEpoch
from clops_sweep.learning.strategies.fixed_memory import FixedMemory

J, K = 0, 1
"""The mini-batches of a step: J is replayed with logits, K with targets."""


class DarkExperienceReplay(FixedMemory):
    """Replay of logits and of targets from a reservoir that is filled during training.

    The contents of the reservoir at every step do not depend on the network, so they are drawn before an epoch. A table
    passes the logits from the step that stores them to the steps that replay them.
    """

    def setup(self) -> None:
        """Create the memory and the table of logits."""
        super().setup()
        learner = self.learner
        self._alpha = self.options.derpp_alpha
        self._beta = self.options.derpp_beta
        self._logits = torch.zeros(self.capacity + 1, learner.outputs, device=learner.bank.device)
        """Logits of the instance at each place of the memory; one more place is for dropped instances."""
        self._offered = 0
        """Number of instances offered, counted once per epoch."""

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Draw J and K of every step and fill the reservoir, then take the steps."""
        config = self.config
        learner = self.learner
        size = config.batch_size
        count = replay_batch_size(config.replay_ratio, size, len(self.memory)) if task else 0
        smallest = 1 if count else learner.smallest_batch  # J and K make any batch large enough
        sizes = batch_sizes(len(order), size, smallest)
        reservoir = self._fill(task, epoch, order, sizes, count)
        if count:
            replay = self._replay(reservoir)
            order = with_replay(order, size, 2 * count)
        current = learner.begin_epoch(self.training.tasks[task], replay, order, size + 2 * count, dropout_keys)
        self._keep_places_of_logits(current, reservoir, sizes)
        learner.train_by_logits(
            current,
            partial(_by_logits, learner.kind),
            given=lambda batch: (batch.targets, batch.weights.unsqueeze(1)),
            table=LogitTable(self._logits, current),
        )
        self._logits[self.capacity].zero_()  # the place of dropped instances: arbitrary, never read

    def _fill(self, task: int, epoch: int, order: torch.Tensor, sizes: Sequence[int], count: int) -> ReservoirEpoch:
        """Offer the epoch's instances to the memory, and draw J and K, each of `count` instances, before each step."""
        seed = self.training.seed
        reservoir = ReservoirEpoch.of(
            Contents(self.memory.index.cpu().numpy(), self._offered, self.capacity),
            self.ledger.of_task(task, order).cpu().numpy(),
            sizes,
            sets=2,
            count=count,
            offering=streams.generator(seed, "memory", task, epoch),
            replaying=streams.generator(seed, "replay", task, epoch),
        )
        self.memory.index = torch.from_numpy(reservoir.after.stored).to(order.device)
        self._offered = reservoir.after.offered
        return reservoir

    def _replay(self, reservoir: ReservoirEpoch) -> Replay:
        """Return J and K of all steps. Only K has a loss on targets, beta mean_K(l_k)."""
        factors = np.zeros(reservoir.replayed.shape, np.float32)
        factors[:, K] = 2 * self._beta  # a step averages over J and K together, which are twice as many
        device = self.memory.index.device
        instances = torch.from_numpy(reservoir.replayed.flatten()).to(device)
        self.ledger.count(instances)
        return Replay(self.ledger.at(instances), torch.from_numpy(factors.flatten()).to(device))

    def _keep_places_of_logits(self, current: Epoch, reservoir: ReservoirEpoch, sizes: Sequence[int]) -> None:
        """Keep in the epoch where each step writes the logits of I and reads those of J, and the weight of their term.

        The instances of a batch are I, J and K, in this order; `sizes` are those of I. A table adds
        pull_j / 2 |z_j - z_j(now)|^2 for each j.
        """
        count = reservoir.drawn.shape[2]
        outputs = self.learner.outputs
        shape = len(sizes), max(sizes) + 2 * count
        nowhere = self.capacity
        written = np.full(shape, nowhere)
        read = np.full(shape, nowhere)
        pull = np.zeros(shape, np.float32)
        for step, size in enumerate(sizes):
            of_j = slice(size, size + count)
            written[step, :size] = reservoir.places[step, :size]
            read[step, of_j] = reservoir.drawn[step, J]
            pull[step, of_j] = 2 * self._alpha / max(1, count * outputs)
        current.keep(WRITTEN, torch.from_numpy(written))
        current.keep(READ, torch.from_numpy(read))
        current.keep(PULL, torch.from_numpy(pull))

    def memory_use(self, records: Sequence[InstanceRecord]) -> MemoryUse:
        """As `Strategy.memory_use`; each instance also stores its float32 logits."""
        size = super().memory_use(records)
        return replace(size, instance_bytes=size.instance_bytes + 4 * self.learner.outputs)

    def end_task(self, task: int) -> None:
        """Do nothing: the task's instances were offered during training."""


def _by_logits(kind: LossKind, logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return dL / dz, [B + 2 M, C], without the pull on the logits of J, whose weights, [B + 2 M, 1], are 0."""
    return losses.loss_gradient(kind, logits, targets).mul_(weights)
