"""Online learning: one pass over a stream of batches; each batch is predicted before it is trained on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import torch

from clops_sweep.data.scenarios import LossKind
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Instances, Replay
from clops_sweep.learning.method.strategy import Strategy, run_epoch
from clops_sweep.learning.method.training import InstanceRecord, MemoryUse, Training
from clops_sweep.learning.metrics.prequential import Prequential


class OnlineStream(Strategy):
    """Train another strategy on the batches of a stream, without revealing their tasks.

    The n training instances of a task come once, in an order drawn from the run's seed, in ceil(n / `batch_size`)
    batches whose sizes differ by one at most. The network predicts a batch first. Then the strategy takes
    `steps_per_batch` gradient steps on it, and may store some of it. The strategy sees each batch as a task, and each
    step as an epoch.

    Args:
        strategy: class of the strategy.
        training: the run.

    Attributes:
        batches: the batches of the stream.
        orders: int64 [n] of each task, the order in which its instances come.
        logits: float32 [n, C] of each task so far, those of its instances before they were trained on.
    """

    not_state = (*Strategy.not_state, "orders", "batches", "_sizes", "_first", "_inner")

    def __init__(self, strategy: type[Strategy], training: Training) -> None:
        super().__init__(training)
        self.orders = list[torch.Tensor]()
        self.batches = list[Instances]()
        self._sizes: list[list[int]] = []
        for task, instances in enumerate(training.tasks):
            order = streams.permutation(training.seed, len(instances.rows), "stream order", task)
            order = order.to(instances.rows.device)
            of_batches = order.tensor_split(math.ceil(len(order) / training.config.batch_size))
            self.orders.append(order)
            self.batches += [instances.at(positions) for positions in of_batches]
            self._sizes.append(list(map(len, of_batches)))
        self._first = [0, *accumulate(map(len, self._sizes))]
        as_tasks = replace(training, tasks=self.batches, by_position=False, pretraining=self._first[1])
        self._inner = strategy(as_tasks)
        self.stores = self._inner.stores
        self.logits: list[torch.Tensor] = []

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Take one pass over a task."""
        del epoch, replay, order, dropout_keys
        training = self.training
        inner = self._inner
        logits = []
        for batch in range(self._first[task], self._first[task + 1]):
            logits.append(training.learner.logits(self.batches[batch].rows))
            inner.come_to(batch, end=False)
            inner.begin_task(batch)
            for step in range(training.config.steps_per_batch):
                run_epoch(inner.training, inner, batch, step, inner.replay(batch, step))
            inner.end_training(batch)
            inner.come_to(batch, end=True)
            inner.end_task(batch)
        self.logits.append(torch.cat(logits))

    def trains(self, task: int) -> bool:
        """Return whether the first batch of a task takes gradient steps."""
        return self._inner.trains(self._first[task])

    def predicted(self, kind: LossKind) -> Prequential:
        """Return the predictions of the whole stream; `kind` is the kind of output of the scenario."""
        targets = torch.cat([batch.targets for batch in self.batches]).cpu()
        head = self.learner.kind
        return Prequential(self._sizes, torch.cat(self.logits).cpu(), targets, kind, head)

    def record(self, task: int) -> InstanceRecord:
        """Return the records of a task's batches as one, in the order of the task's instances."""
        records = [self._inner.record(batch) for batch in range(self._first[task], self._first[task + 1])]
        position_in_stream = self.orders[task].argsort()
        joined = {}
        for name in vars(records[0]):
            of_stream = torch.cat([vars(record)[name] for record in records])
            joined[name] = of_stream[position_in_stream]
        return InstanceRecord(**joined)

    def memory_use(self, records: Sequence[InstanceRecord]) -> MemoryUse:
        """As `Strategy.memory_use`, from the wrapped strategy."""
        return self._inner.memory_use(records)

    def counts(self) -> dict[str, int]:
        """As `Strategy.counts`, from the wrapped strategy."""
        return self._inner.counts()

    def state(self) -> dict[str, Any]:
        """Return the predictions, and the state of the wrapped strategy."""
        return super().state() | {"inner": self._inner.state()}

    def restore(self, state: dict[str, Any], task: int) -> None:
        """As `Strategy.restore`."""
        super().restore(state, task)
        self._inner.restore(state["inner"], self._first[task])
