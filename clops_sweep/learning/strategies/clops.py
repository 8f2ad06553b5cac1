"""CLOPS: beta weights the loss and selects instances to store, uncertainty selects what to replay (Kiyasseh et al.)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from clops_sweep.experiment.plugins.values import count_of
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Replay
from clops_sweep.learning.learners.beta import TaskInstanceParameters
from clops_sweep.learning.replay import storage
from clops_sweep.learning.replay.acquisition import AcquisitionContext
from clops_sweep.learning.replay.checked import acquisition_scores, storage_scores
from clops_sweep.learning.strategies.base import InstanceRecord, MemoryUse, Training
from clops_sweep.learning.strategies.memory import WithMemory


class CLOPS(WithMemory):
    """The paper's method with its switches; random storage and random acquisition are settings of it.

    Random storage does not use beta: the loss is then not weighted either.

    In an online stream, the share b of each batch is stored after its steps. A single step leaves no area under beta:
    the first instances of the shuffled batch are stored then. Each step draws ceil(B / a) stored instances at random
    and replays the share a with the highest acquisition scores, about B.
    """

    def __init__(self, training: Training) -> None:
        super().__init__(training)
        self._online = training.config.stream == "online"
        self._beta: TaskInstanceParameters | None = None
        self._records: list[InstanceRecord] = []
        self._acquired = torch.empty(0)
        """Places of the replayed instances, int64 [S, count]."""

    def begin_task(self, task: int) -> None:
        """Set beta to 1 for every instance of the task."""
        configs, rows = self.training.configs, self.training.tasks[task].rows
        rates = [0.0 if config.storage_order == "random" else config.beta_learning_rate for config in configs]
        if any(rates):
            penalties = [config.beta_penalty for config in configs]
            self._beta = TaskInstanceParameters(rows.shape[1], penalties, rates, rows.device)

    def replay(self, task: int, epoch: int) -> Replay | None:
        """Return the share `acquisition_fraction` of each past task's stored instances with the highest scores."""
        if not len(self.memory):
            return None
        if epoch % self.training.config.acquire_every == 0:
            among = [self._drawn(task, epoch)] if self._online else self.memory.places_by_task().values()
            acquired = [self._acquire(places, (task, epoch, index)) for index, places in enumerate(among)]
            self._acquired = torch.cat(acquired, dim=1)
        return Replay(self.memory.replay(self._acquired), self.memory.carried_at("factor", self._acquired))

    def _drawn(self, batch: int, step: int) -> torch.Tensor:
        """Return the places of the candidates of a step of an online stream: int64 [S, m]."""
        config, stored = self.training.config, len(self.memory)
        size = min(stored, math.ceil(config.batch_size / config.acquisition_fraction))
        drawn = streams.choices(self.training.seeds, stored, size, "replay", batch, step)
        return drawn.to(self.memory.instances.device)

    def _acquire(self, places: torch.Tensor, counters: tuple[int, int, int]) -> torch.Tensor:
        """Return the share of places, int64 [S, m], with the highest scores: int64 [S, count], in their order."""
        count = count_of(self.training.config.acquisition_fraction, places.shape[1])
        if count == places.shape[1]:
            return places
        rows, chosen = self.memory.looked_up(self.memory.instances.gather(1, places)).rows, places[:, :count].clone()
        for config, runs in self.training.groups:
            seeds = [self.training.seeds[run] for run in runs]
            context = AcquisitionContext(self.training.learner.excerpt(runs), config, seeds, counters)
            best = storage.highest(acquisition_scores(config, context, rows[runs]), count)
            chosen[runs] = places[runs].gather(1, best)
        return chosen

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Minimise mean_I(beta_i l_i) + lambda mean_I((beta_i - 1)^2) + mean_J(l_j), over the network and beta."""
        del epoch
        instances, batch_size = self.training.tasks[task], self.training.config.batch_size
        if self._online:  # a batch of the stream and its replayed instances are one step
            batch_size = order.shape[1]
        self.training.learner.train_epoch(instances, replay, order, batch_size, dropout_keys, self._beta)

    def end_epoch(self) -> None:
        """Record beta for the area under its trajectory."""
        if self._beta is not None:
            self._beta.record()

    def end_task(self, task: int) -> None:
        """Store the share `storage_fraction` of the task in the memory."""
        configs, instances = self.training.configs, self.training.tasks[task]
        record = super().record(task)
        if self._beta is not None:
            record = self._with_beta(record, self._beta)
        count = count_of(configs[0].storage_fraction, instances.rows.shape[1])
        chosen = torch.cat(
            [
                storage.select(config.storage_order, record.s[run : run + 1], count, [config.seed], task)
                for run, config in enumerate(configs)
            ]
        )
        weighted = torch.tensor([config.weight_replay for config in configs], device=chosen.device)[:, None]
        factors = torch.where(weighted, record.beta.gather(1, chosen), 1.0)
        self.memory.add(self.memory.of_task(task, chosen), factor=factors)
        self._records.append(replace(record, stored=record.stored.scatter(1, chosen, True)))
        self._beta = None

    def _with_beta(self, record: InstanceRecord, beta: TaskInstanceParameters) -> InstanceRecord:
        """Return the record with the current beta of the runs that use one."""
        trajectories, s = beta.trajectories(), record.s.clone()
        for config, runs in self.training.groups:
            if config.storage_order != "random":  # random storage uses no beta
                s[runs] = storage_scores(config, trajectories[runs])
        without = torch.tensor([config.storage_order == "random" for config in self.training.configs], device=s.device)
        return replace(
            record,
            s=s,
            beta=torch.where(without[:, None], torch.nan, beta.values),
            trajectories=torch.where(without[:, None, None], torch.nan, trajectories.transpose(1, 2)),
        )

    def record(self, task: int) -> InstanceRecord:
        """Return s, beta and the stored instances at the end of the task, and the number of replays until now."""
        return replace(self._records[task], times_replayed=self.memory.times_replayed(task))

    def memory_use(self, records: Sequence[InstanceRecord]) -> MemoryUse:
        """As `LockstepStrategy.memory_use`; with `weight_replay` each instance also stores its float32 beta."""
        size, configs = super().memory_use(records), self.training.configs
        weighted = zip(size.instance_bytes, configs, strict=True)
        return replace(size, instance_bytes=[each + 4 * config.weight_replay for each, config in weighted])

    def state(self) -> dict[str, Any]:
        """Return memory, beta and records."""
        return super().state() | {
            "acquired": self._acquired,
            "beta": None if self._beta is None else self._beta.state(),
            "records": [vars(record) for record in self._records],
        }

    def restore(self, state: dict[str, Any], task: int) -> None:
        """Restore a state from `state` during the given task."""
        super().restore(state, task)
        self._acquired = state["acquired"]
        self._records = [InstanceRecord(**record) for record in state["records"]]
        if state["beta"] is not None:
            self.begin_task(task)
            assert self._beta is not None
            self._beta.restore(state["beta"])
