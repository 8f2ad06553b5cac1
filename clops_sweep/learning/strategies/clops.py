"""CLOPS: beta weights the loss and selects instances to store, uncertainty selects what to replay (Kiyasseh et al.).

Each instance i of the current task has a parameter beta_i, which starts at 1 and is trained with the network
(D. Kiyasseh, T. Zhu and D. Clifton, Nature Communications 2021). With I the instances of the task in a batch and J the
replayed ones, each step minimises, over network and beta,

    L = mean_I(beta_i l_i) + lambda mean_I((beta_i - 1)^2) + mean_J(l_j).

Storage: at the end of a task the share b = `storage_fraction` of its instances with the highest s_i is stored,

    s_i = integral of beta_i over the task's tau epochs.

Acquisition: of each past task's stored instances the share a = `acquisition_fraction` with the highest alpha_j is
replayed, once per epoch and shuffled with the task's instances. By default it is BALD over T passes with dropout,

    alpha_j = H(mean_t p_t(x_j)) - mean_t H(p_t(x_j)).

`storage_function`, `storage_order` and `acquisition` replace s and alpha; `docs/fidelity.md` says where paper and
released code differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from clops_sweep.experiment.plugins.values import count_of
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Replay
from clops_sweep.learning.learners.beta import TaskInstanceParameters
from clops_sweep.learning.method.memory import Memory
from clops_sweep.learning.method.strategy import Strategy
from clops_sweep.learning.method.training import InstanceRecord, MemoryUse
from clops_sweep.learning.replay import storage
from clops_sweep.learning.replay.acquisition import AcquisitionContext
from clops_sweep.learning.replay.checked import acquisition_scores, storage_scores


class CLOPS(Strategy):
    """The paper's method with its switches; random storage and random acquisition are settings of it.

    Random storage does not use beta: the loss is then not weighted either.

    In an online stream, the share b of each batch is stored after its steps. A single step leaves no area under beta:
    the first instances of the shuffled batch are stored then. Each step draws ceil(B / a) stored instances at random
    and replays the share a with the highest acquisition scores, about B.
    """

    stores = "raw"

    def setup(self) -> None:
        """Create the memory, with the factor of each instance's loss."""
        self.memory = Memory(None)
        self._online = self.config.stream == "online"
        self._beta: TaskInstanceParameters | None = None
        self.records: list[InstanceRecord] = []
        self._acquired = torch.empty(0)
        """Places of the replayed instances, int64 [count]."""

    def begin_task(self, task: int) -> None:
        """Set beta to 1 for every instance of the task."""
        config = self.config
        rows = self.training.tasks[task].rows
        if config.storage_order != "random" and config.beta_learning_rate:
            self._beta = TaskInstanceParameters(len(rows), config.beta_penalty, config.beta_learning_rate, rows.device)

    def replay(self, task: int, epoch: int) -> Replay | None:
        """Return J, acquired anew every `acquire_every` epochs."""
        if not len(self.memory):
            return None
        if epoch % self.config.acquire_every == 0:
            self._acquired = self._acquire(task, epoch)
        replayed = self.memory.replay(self._acquired).instances
        factors = self.memory.columns["factor"][self._acquired]
        return Replay(replayed, factors)

    def _acquire(self, task: int, epoch: int) -> torch.Tensor:
        """Return the places of the share `acquisition_fraction` of each portion with the highest scores.

        The portions are the stored instances of each past task; in an online stream, the candidates of the step.
        """
        portions = [self._candidates(task, epoch)] if self._online else self.memory.places_by_task().values()
        acquired = []
        for number, places in enumerate(portions):
            acquired.append(self._highest(places, (task, epoch, number)))
        return torch.cat(acquired)

    def _candidates(self, batch: int, step: int) -> torch.Tensor:
        """Return the places of the candidates of a step of an online stream: int64 [m]."""
        config = self.config
        stored = len(self.memory)
        size = min(stored, math.ceil(config.batch_size / config.acquisition_fraction))
        drawn = streams.choice(self.training.seed, stored, size, "replay", batch, step)
        return drawn.to(self.memory.index.device)

    def _highest(self, places: torch.Tensor, counters: tuple[int, int, int]) -> torch.Tensor:
        """Return the share of places, int64 [m], with the highest alpha: int64 [count], in their order."""
        config = self.config
        count = count_of(config.acquisition_fraction, len(places))
        if count == len(places):
            return places
        context = AcquisitionContext(self.learner, config, counters)
        rows = self.memory.at(places).instances.rows
        alpha = acquisition_scores(config, context, rows)
        return places[storage.highest(alpha, count)]

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Minimise mean_I(beta_i l_i) + lambda mean_I((beta_i - 1)^2) + mean_J(l_j), over the network and beta."""
        del epoch
        instances = self.training.tasks[task]
        batch_size = self.config.batch_size
        if self._online:  # a batch of the stream and its replayed instances are one step
            batch_size = len(order)
        self.learner.train_epoch(instances, replay, order, batch_size, dropout_keys, self._beta)

    def end_epoch(self) -> None:
        """Record beta for the area under its trajectory."""
        if self._beta is not None:
            self._beta.record()

    def end_task(self, task: int) -> None:
        """Store the share `storage_fraction` of the task in the memory."""
        config = self.config
        record = self._with_s(super().record(task))
        count = count_of(config.storage_fraction, len(record.s))
        chosen = storage.select(config.storage_order, record.s, count, config.seed, task)
        beta = record.beta[chosen]
        factors = beta if config.weight_replay else torch.ones_like(beta)
        self.memory.add(self.instances(task).at(chosen), factor=factors)
        self.records.append(replace(record, stored=record.stored.scatter(0, chosen, True)))
        self._beta = None

    def _with_s(self, record: InstanceRecord) -> InstanceRecord:
        """Return a record with s, and with beta and its trajectories, if the task has beta."""
        if self._beta is None:
            return record
        trajectories = self._beta.trajectories()
        s = storage_scores(self.config, trajectories)
        return replace(record, s=s, beta=self._beta.values.clone(), trajectories=trajectories.T)

    def record(self, task: int) -> InstanceRecord:
        """Return s, beta and the stored instances at the end of the task, and the number of replays until now."""
        return replace(self.records[task], times_replayed=self.ledger.times_replayed(task))

    def memory_use(self, records: Sequence[InstanceRecord]) -> MemoryUse:
        """As `Strategy.memory_use`; with `weight_replay` each instance also stores its float32 beta."""
        del records
        return MemoryUse(len(self.memory), self.instance_bytes + 4 * self.config.weight_replay)
