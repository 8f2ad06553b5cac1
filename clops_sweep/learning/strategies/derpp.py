"""DER++: stored instances are held to the logits that they had and to their targets (Buzzega et al., 2020).

Dark experience replay. Every instance that is trained on is offered to a reservoir (Vitter, 1985), with the logits z
that it had in that step: so in every epoch anew, and what is stored is spread over the whole course of training. From
the second task on each step is taken on

    L = mean_I(l_i) + alpha mean_J(|z_j - z_j(now)|^2 / C) + beta mean_K(l_k),

J and K being drawn independently of each other, each of `replay_ratio` times as many instances as a batch has. All
three go through the network together, as one batch. Of the authors' settings the defaults are those for a small memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.data.scenarios import LossKind
from clops_sweep.learning import losses, streams
from clops_sweep.learning.batches import Epoch, EpochBatch, Replay, batch_sizes
from clops_sweep.learning.replay.beside import beside, replayed_beside
from clops_sweep.learning.replay.reservoir import ReservoirEpoch
from clops_sweep.learning.strategies.base import Training
from clops_sweep.learning.strategies.fixed_memory import FixedMemory


class DarkExperienceReplay(FixedMemory):
    """Replay of logits and of targets from a reservoir that is filled while training goes on."""

    def __init__(self, training: Training) -> None:
        super().__init__(training)
        options, learner = training.config.options, training.learner
        self._alpha, self._beta = options["derpp_alpha"], options["derpp_beta"]
        places = len(training.seeds) * (self.capacity + 1)
        self._logits = torch.zeros(places, learner.outputs, device=learner.bank.device)
        """Of the instance at each place of each run's memory; into one place more goes what nobody keeps."""
        self._offered = 0
        """Instances, each as often as it was trained on."""

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Everything random first, and what is in the memory at which step; then the steps."""
        config, learner, instances = self.training.config, self.training.learner, self.training.tasks[task]
        size = config.batch_size
        count = replayed_beside(config.replay_ratio, size, len(self.memory)) if task else 0
        sizes = batch_sizes(order.shape[1], size, 1 if count else learner.smallest_batch)
        new = self.memory.of_task(task).gather(1, order).cpu().numpy()
        held = self.memory.instances.cpu().numpy()
        plans = [
            ReservoirEpoch.of(
                held[run],
                self._offered,
                new[run],
                self.capacity,
                sizes,
                sets=2,
                count=count,
                offering=streams.generator(seed, "memory", task, epoch),
                replaying=streams.generator(seed, "replay", task, epoch),
            )
            for run, seed in enumerate(self.training.seeds)
        ]
        self._offered += order.shape[1]
        if count:
            replay = self._replay(np.stack([plan.replayed for plan in plans]))
            order = beside(order, size, 2 * count)
        current = learner.begin_epoch(instances, replay, order, size + 2 * count, dropout_keys)
        current.keep("stored in", torch.from_numpy(self._addresses(plans, current.sizes, written=False)))
        current.keep("to be stored in", torch.from_numpy(self._addresses(plans, current.sizes, written=True)))
        current.keep("pull", self._pull(current.sizes, count))
        learner.run_epoch(current, lambda batch, phase: self._step(current, batch))
        self._logits.view(len(plans), self.capacity + 1, -1)[:, -1] = 0
        self.memory.instances = torch.from_numpy(np.stack([plan.held for plan in plans])).to(order.device)

    def _replay(self, replayed: NDArray[np.int64]) -> Replay:
        """What is replayed, [S, steps, 2, M], with the factors that make of its weights 1 / (2 M) those of J and K."""
        flat = torch.from_numpy(replayed).to(self.memory.instances.device).flatten(1)
        self.memory.count(flat)
        factors = torch.zeros(replayed.shape, device=flat.device)
        factors[:, :, 1] = 2 * self._beta
        return Replay(self.memory.looked_up(flat), factors.flatten(1))

    def _addresses(self, plans: Sequence[ReservoirEpoch], sizes: Sequence[int], *, written: bool) -> NDArray[np.int64]:
        """Where in the logits those of each instance of each batch are to be written, or read: [steps, S, B + 2 M]."""
        runs, nowhere = len(plans), self.capacity
        found = np.full((len(sizes), runs, max(sizes)), nowhere)
        for run, plan in enumerate(plans):
            count = plan.drawn.shape[2]
            for step, size in enumerate(sizes):
                first = size - 2 * count
                if written:
                    found[step, run, :first] = plan.places[step, :first]
                else:
                    found[step, run, first : first + count] = plan.drawn[step, 0]
        return found + (self.capacity + 1) * np.arange(runs)[:, None]

    def _pull(self, sizes: Sequence[int], count: int) -> torch.Tensor:
        """What the difference of an instance's logits to those stored is multiplied by: [steps, S, B + 2 M, 1]."""
        found = torch.zeros(len(sizes), len(self.training.seeds), max(sizes), 1)
        for of_step, size in zip(found, sizes, strict=True):
            of_step[:, size - 2 * count : size - count] = (
                2 * self._alpha / max(1, count * self.training.learner.outputs)
            )
        return found

    def _step(self, current: Epoch, batch: EpochBatch) -> None:
        """One step on a batch of I, J and K, in this order, the weights of J being 0; the logits of I are stored."""
        learner, (runs, size) = self.training.learner, batch.rows.shape
        stored_in, to_be_stored_in = (
            current.kept_for(name, batch)[:, :size].reshape(-1) for name in ("stored in", "to be stored in")
        )
        pull = current.kept_for("pull", batch)[:, :size]
        stored = self._logits.index_select(0, stored_in).view(runs, size, -1)

        given = (batch.targets, batch.weights, stored, pull)
        keys, by_logits = current.kept("dropout keys"), partial(_by_logits, learner.kind)
        logits, gradient = learner.backpropagate(batch.rows, batch.draws, keys, by_logits, *given)
        self._logits.index_copy_(0, to_be_stored_in, logits.flatten(0, 1))
        learner.apply(gradient)

    def end_task(self, task: int) -> None:
        """Nothing: the task's instances have been offered while they were trained on."""

    def state(self) -> dict[str, Any]:
        """Memory, logits, and how many instances have been offered."""
        return super().state() | {"logits": self._logits, "offered": self._offered}

    def restore(self, state: dict[str, Any], task: int) -> None:
        """Takes up a state that `state` returned during the given task."""
        super().restore(state, task)
        self._logits.copy_(state["logits"])
        self._offered = state["offered"]


def _by_logits(
    kind: LossKind,
    logits: torch.Tensor,
    targets: torch.Tensor,
    weights: torch.Tensor,
    stored: torch.Tensor,
    pull: torch.Tensor,
) -> torch.Tensor:
    """dL / dz, [s, B + 2 M, C]."""
    by = losses.loss_gradient(kind, logits, targets).mul_(weights[:, :, None])
    return by.addcmul_(logits - stored, pull)
