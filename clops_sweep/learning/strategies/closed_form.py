"""Methods whose head is computed from statistics of features, without gradients and without stored instances."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

import torch

from clops_sweep.learning.batches import Replay
from clops_sweep.learning.method.strategy import Strategy
from clops_sweep.learning.method.training import InstanceRecord, MemoryUse

Statistics = dict[str, torch.Tensor]


class ClosedForm(Strategy):
    """Training of the last linear layer W f + b from statistics of the features f of all instances so far.

    A network with trainable features is trained on the first task by backpropagation and then frozen, as in
    ACIL (Zhuang et al., 2022) and the first session of RanPAC (McDonnell et al., 2023). A network that is only a
    linear layer, for features of an encoder, is never trained. Each later task takes one pass over its instances, in
    its first epoch. Statistics and solutions are computed in float64.

    In an online stream, features are trained on the batches of the first task. After the last of these, they are read
    once more for the head. Each later batch is read once, and the head is computed from all batches so far.
    """

    stores = "statistics"
    needs_head = "write"

    def setup(self) -> None:
        """Set the statistics before the first instance."""
        self.statistics = self.begin(self.learner.outputs, self.head.features_size)

    @abstractmethod
    def begin(self, classes: int, features: int) -> Statistics:
        """Return the statistics before the first instance, on the CPU."""

    @abstractmethod
    def update(self, statistics: Statistics, features: torch.Tensor, targets: torch.Tensor) -> None:
        """Add instances to the statistics: features float64 [n, F] and one-hot targets float64 [n, C]."""

    @abstractmethod
    def solve(self, statistics: Statistics) -> tuple[torch.Tensor, torch.Tensor]:
        """Return W, float64 [C, F], and b, float64 [C], from the statistics."""

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Run backpropagation on the first task if features are trained; otherwise one pass for the head."""
        if self.trains(task):
            super().train_epoch(task, epoch, replay, order, dropout_keys)
        elif epoch == 0:
            self._solve_with([task])

    def trains(self, task: int) -> bool:
        """Return whether features are trained on a task."""
        return task < self.training.pretraining and self.head.trains_features

    def end_training(self, task: int) -> None:
        """Run the pass for the head after backpropagation on the first task."""
        if task == self.training.pretraining - 1 and self.head.trains_features:
            self._solve_with(range(task + 1))

    def _solve_with(self, tasks: Iterable[int]) -> None:
        """Add the instances of some tasks to the statistics, and write the head that they give."""
        self.statistics = {name: values.cpu() for name, values in self.statistics.items()}  # a checkpoint moves them
        for task in tasks:
            instances = self.training.tasks[task]
            features = self.head.features(instances.rows)
            targets = instances.targets.double().cpu()
            self.update(self.statistics, features, targets)
        weight, bias = self.solve(self.statistics)
        is_seen = self.statistics["counts"] > 0
        self.head.write(weight, torch.where(is_seen, bias, self.head.NOT_SEEN))

    def memory_use(self, records: Sequence[InstanceRecord]) -> MemoryUse:
        """As `Strategy.memory_use`: no instances, and the bytes of the statistics."""
        del records
        return MemoryUse(0, 0, sum(values.nbytes for values in self.statistics.values()))
