"""The instances of an epoch, shuffled and split into batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch


@dataclass(frozen=True)
class Batch:
    """One training batch.

    Attributes:
        rows: int64 [B], rows of the frame bank.
        targets: float32 [B, C].
        weights: float32 [B]; the loss is sum_i weights_i l_i.
        draws: int64 [B], counters of the dropout masks.
    """

    rows: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor
    draws: torch.Tensor


@dataclass(frozen=True)
class Instances:
    """n instances.

    Attributes:
        rows: int64 [n], rows of the frame bank.
        targets: float32 [n, C].
        weights: float32 [n], factors of the losses in training (`class_weights`); None for ones. Only `weighted`
            sets the attribute.
    """

    rows: torch.Tensor
    targets: torch.Tensor
    weights: ClassVar[torch.Tensor | None] = None

    def weighted(self, weights: torch.Tensor | None) -> Instances:
        """Return the instances with other weights, float32 [n]."""
        unweighted = Instances(self.rows, self.targets)
        if weights is not None:
            object.__setattr__(unweighted, "weights", weights)
        return unweighted

    @property
    def loss_weights(self) -> torch.Tensor:
        """Weights of the losses, by default ones: float32 [n]."""
        return torch.ones(self.rows.shape, device=self.rows.device) if self.weights is None else self.weights

    def at(self, positions: torch.Tensor) -> Instances:
        """Return the instances at some positions, int64 [m]."""
        weights = None if self.weights is None else self.weights[positions]
        return Instances(self.rows[positions], self.targets[positions]).weighted(weights)

    def split(self, sizes: Sequence[int]) -> list[Instances]:
        """Return the instances in parts of given sizes, as views."""
        lengths = list(sizes)
        weights: Sequence[torch.Tensor | None] = [None] * len(lengths)
        if self.weights is not None:
            weights = self.weights.split(lengths)
        rows = self.rows.split(lengths)
        targets = self.targets.split(lengths)
        parts = []
        for rows_of_part, targets_of_part, weights_of_part in zip(rows, targets, weights, strict=True):
            parts.append(Instances(rows_of_part, targets_of_part).weighted(weights_of_part))
        return parts

    @classmethod
    def union(cls, parts: Sequence[Instances]) -> Instances:
        """Return several sets as one, in their order."""
        rows = torch.cat([part.rows for part in parts])
        targets = torch.cat([part.targets for part in parts])
        union = cls(rows, targets)
        if all(part.weights is None for part in parts):
            return union
        weights = torch.cat([part.loss_weights for part in parts])
        return union.weighted(weights)


@dataclass(frozen=True)
class Replay:
    """Instances to replay, with a factor of each loss in addition to its weight: float32 [m]."""

    instances: Instances
    factors: torch.Tensor

    def behind(self, task: Instances) -> Instances:
        """Return the union of a task's instances and these, with weights multiplied by their factors."""
        weights = self.factors if self.instances.weights is None else self.factors * self.instances.weights
        return Instances.union([task, self.instances.weighted(weights)])


@dataclass(frozen=True)
class EpochBatch(Batch):
    """A batch of current instances I and replayed instances J.

    Attributes:
        rows: int64 [B].
        targets: float32 [B, C].
        weights: float32 [B], factors divided by the size of I or J: the sum of weights times losses is
            mean_I(factor l) + mean_J(factor l), without the term of an empty set.
        draws: int64 [B], positions in the epoch, counters of the dropout masks.
        positions: int64 [B], positions in the task's training set if `current`, else 0.
        current: bool [B].
        current_count: float32 [B], the number of I, constant along the batch.
        factors: float32 [B], weights of current instances (see `Instances`); for replayed ones, weights times the
            factors of `Replay`.
        number: number of the batch in the epoch, from 0.
    """

    positions: torch.Tensor
    current: torch.Tensor
    current_count: torch.Tensor
    factors: torch.Tensor
    number: int

    def plain(self) -> Batch:
        """The batch in the form that learners take."""
        return Batch(self.rows, self.targets, self.weights, self.draws)


def batch_sizes(total: int, batch_size: int, smallest: int) -> list[int]:
    """Return the sizes of the batches of an epoch; arguments as in `Epoch`."""
    sizes = [min(batch_size, total - start) for start in range(0, total, batch_size)]
    if len(sizes) > 1 and sizes[-1] < smallest:
        remainder = sizes.pop()
        sizes[-1] += remainder
    return sizes


class Epoch:
    """The union of a task's n instances and m replayed ones, shuffled and split into batches of B.

    Args:
        task: training instances of the current task.
        replay: m instances to replay, if any.
        order: int64 [n + m], a permutation of the union, which starts with the task's instances.
        batch_size: B; the last batch may be smaller.
        smallest: minimum size of the last batch; a smaller remainder is added to the batch before it.
    """

    def __init__(
        self, task: Instances, replay: Replay | None, order: torch.Tensor, batch_size: int, smallest: int = 1
    ) -> None:
        union = task if replay is None else replay.behind(task)
        self.sizes = batch_sizes(len(order), batch_size, smallest)
        sizes = torch.tensor(self.sizes, device=order.device)
        batch = torch.arange(len(sizes), device=order.device).repeat_interleave(sizes)
        current = order < len(task.rows)
        counts = torch.zeros(len(sizes), device=order.device)
        counts.scatter_add_(0, batch, current.to(torch.float32))
        current_count = counts[batch]
        replayed_count = sizes.to(torch.float32)[batch] - current_count
        shares = torch.where(current, current_count, replayed_count).reciprocal_()
        factors = union.loss_weights[order]
        weights = factors * shares
        rows = union.rows[order]
        targets = union.targets[order]
        draws = torch.arange(len(order), device=order.device)
        positions = torch.where(current, order, 0)
        self._all = rows, targets, weights, draws, positions, current, current_count, factors
        self._kept: dict[str, torch.Tensor] = {}
        self._of_batches: dict[str, tuple[torch.Tensor, ...]] = {}

    @property
    def whole(self) -> Batch:
        """All batches, concatenated."""
        return EpochBatch(*self._all, number=0)

    def batches(self) -> Iterator[EpochBatch]:
        """Yield the batches."""
        columns = [values.split(self.sizes) for values in self._all]
        numbers = range(len(self.sizes))
        for values in zip(*columns, numbers, strict=True):
            yield EpochBatch(*values)

    def keep(self, name: str, values: torch.Tensor) -> None:
        """Store a value that steps need."""
        self._kept[name] = values.to(self._all[0].device)
        self._of_batches.pop(name, None)

    def kept(self, name: str) -> torch.Tensor:
        """Return the value stored under a name."""
        return self._kept[name]

    def kept_for(self, name: str, batch: EpochBatch) -> torch.Tensor:
        """Return the value stored under a name for a batch: [number of batches, ...] to [...]."""
        if name not in self._of_batches:  # all at once, since one by one would lengthen each step
            self._of_batches[name] = self._kept[name].unbind()
        return self._of_batches[name][batch.number]

    def keep_memory(
        self, name: str, instances: Instances, dropout_keys: torch.Tensor, draws: torch.Tensor | None = None
    ) -> None:
        """Store a memory batch for each batch of the epoch; its loss is the mean of its weighted losses.

        Args:
            name: name for `memory`.
            instances: instances of all memory batches, rows int64 [steps * m] and targets [steps * m, C].
            dropout_keys: int32 [steps, 2].
            draws: int64 [steps, m], counters of the dropout masks; by default 0 ... m - 1 in every batch.
        """
        steps = len(self.sizes)
        count = len(instances.rows) // steps
        weights = instances.loss_weights * (1 / count)
        if draws is None:
            draws = torch.arange(count).expand(steps, -1)
        columns = {"rows": instances.rows, "targets": instances.targets, "weights": weights}
        for column, values in columns.items():
            by_step = values.unflatten(0, (steps, -1))
            self.keep(f"{name} {column}", by_step.contiguous())
        self.keep(f"{name} draws", draws)
        self.keep(f"{name} dropout", dropout_keys)

    def memory(self, name: str, batch: EpochBatch | None = None) -> tuple[Batch, torch.Tensor]:
        """Return the memory batch of one batch, or of all, [steps, ...], with its dropout keys."""
        names = [f"{name} {column}" for column in ("rows", "targets", "weights", "draws", "dropout")]
        if batch is None:
            values = [self.kept(column) for column in names]
        else:
            values = [self.kept_for(column, batch) for column in names]
        rows, targets, weights, draws, keys = values
        return Batch(rows, targets, weights, draws), keys
