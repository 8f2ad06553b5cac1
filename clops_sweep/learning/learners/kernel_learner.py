"""KernelLearner: a learner whose training is computed by native kernels, on the memory of PyTorch tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from clops_sweep.learning.arrays import Array, array_of, optional_array
from clops_sweep.learning.batches import Batch, Epoch, Instances, Replay, batch_sizes
from clops_sweep.learning.learners.beta import TaskInstanceParameters
from clops_sweep.learning.learners.learner import ByLogits, Direction, GivenOfBatch, Learner
from clops_sweep.learning.learners.logit_table import PULL, READ, WRITTEN, LogitTable
from clops_sweep.learning.learners.optimizers import Adam
from clops_sweep.learning.learners.penalty import Penalty

OptimizerArrays = tuple[Array, Array, Array, float, int, str, float]
"""Values, first and second moments, learning rate, number of steps taken, name of the rule, and weight decay."""

PenaltyArrays = tuple[Array, Array, Array | None]
"""Importance, centre and path of a penalty."""

TableArrays = tuple[Array, Array, Array, Array]
"""Values of a table of logits; for each step of an epoch the entries read, the pull to them, and the entries written.
"""

MemoryArrays = tuple[Array, Array, Array, Array, Array]
"""Rows, targets, weights, draws and dropout keys of a memory's batches, one for each step of an epoch: [steps, ...]."""


class KernelLearner(Learner):
    """Learner with kernels for gradients, steps of the optimiser and whole epochs.

    Epochs are overridden to save the Python between two steps. With an augmentation, which is Python, they are those of
    `Learner`. Steps and epochs give the same numbers.

    Attributes:
        core: the kernels over the learner's memory, a `_kernels.Trainable`; see native/src/trainable.hpp.
    """

    core: Any

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._instance_losses: dict[int, torch.Tensor] = {}

    def count_passes(self, passes: int) -> None:
        """Count passes that updated the running statistics; by default nothing counts them."""

    def weighted_losses(
        self, logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `losses.weighted`, with the numbers of `gradient` and of whole epochs."""
        instance_losses = torch.empty(len(logits))
        by_logits = self._loss_by_logits(logits, targets, weights, instance_losses.numpy())
        return instance_losses, by_logits

    def weighted_loss(
        self, logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `LoweredLearner.weighted_loss`; the losses of the instances are written to memory of an earlier call."""
        count = len(logits)
        instance_losses = self._instance_losses.get(count)
        if instance_losses is None:
            instance_losses = torch.empty(count)
            self._instance_losses[count] = instance_losses
        by_logits = self._loss_by_logits(logits, targets, weights, instance_losses.numpy())
        loss = torch.dot(instance_losses, weights)
        return loss, by_logits

    def _loss_by_logits(
        self, logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor, instance_losses: Array
    ) -> torch.Tensor:
        """Write the losses l_i, [B], and return the gradient of sum_i weights_i l_i by the logits, [B, C]."""
        by_logits = torch.empty(logits.shape)
        self.core.loss_by_logits(
            array_of(logits.detach()), array_of(targets), array_of(weights), instance_losses, by_logits.numpy()
        )
        return by_logits

    def gradient(
        self,
        batch: Batch,
        dropout_keys: torch.Tensor,
        *,
        batch_statistics: bool = True,
        track_statistics: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `Learner.gradient`."""
        count = len(batch.rows)
        if batch_statistics:
            self.check_batch(count)
        track = batch_statistics and track_statistics
        stored_rows, frames = self._rows_and_frames(batch.rows, augmented=batch_statistics)
        instance_losses = torch.empty(count)
        self.core.gradient(
            stored_rows,
            array_of(batch.targets),
            array_of(batch.weights),
            array_of(batch.draws),
            array_of(dropout_keys),
            running=not batch_statistics,
            track=track,
            losses=instance_losses.numpy(),
            frames=frames,
        )
        self.count_passes(int(track))
        return instance_losses, self._gradient.flat

    def backpropagate(
        self,
        rows: torch.Tensor,
        draws: torch.Tensor | None,
        dropout_keys: torch.Tensor | None,
        by_logits: ByLogits,
        *given: torch.Tensor,
        batch_statistics: bool = True,
        track_statistics: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `Learner.backpropagate`."""
        count = len(rows)
        if batch_statistics:
            self.check_batch(count)
        track = batch_statistics and track_statistics
        stored_rows, frames = self._rows_and_frames(rows, augmented=batch_statistics)
        logits = torch.empty(count, self.outputs)
        self.core.forward(
            stored_rows,
            optional_array(draws),
            optional_array(dropout_keys),
            running=not batch_statistics,
            track=track,
            logits=logits.numpy(),
            frames=frames,
        )
        self.count_passes(int(track))
        gradient = by_logits(logits, *given)
        self.core.backward(array_of(gradient))
        return logits, self._gradient.flat

    def _rows_and_frames(self, rows: torch.Tensor, *, augmented: bool) -> tuple[Array, Array | None]:
        """Return stored rows, [B * channels], and None; or rows of augmented frames, and these, [rows, samples]."""
        if self.augment is None or not augmented:
            return self._stored_rows(rows), None
        count = len(rows)
        channels, samples = (1, *self.bank.shape)[-2:]
        frames = self.bank.gather(rows).view(count, channels, samples)
        signals = self.augment(frames).reshape(-1, samples)
        return np.arange(count * channels), array_of(signals)

    def _stored_rows(self, rows: torch.Tensor) -> Array:
        """Return the rows of all channels of instances among the stored frames, [m * channels], given rows [m]."""
        return array_of(self.bank.rows(rows))

    def apply(self, gradient: torch.Tensor) -> None:
        """As `Learner.apply`."""
        self.core.step(_optimizer_arrays(self.optimizer), array_of(gradient))
        self.optimizer.steps += 1

    def apply_penalised(self, gradient: torch.Tensor, penalty: Penalty) -> None:
        """As `Learner.apply_penalised`, in one pass over all parameters."""
        self.core.step(_optimizer_arrays(self.optimizer), array_of(gradient), _penalty_arrays(penalty))
        self.optimizer.steps += 1

    def train_by_logits(
        self,
        epoch: Epoch,
        by_logits: ByLogits,
        given: GivenOfBatch,
        table: LogitTable | None = None,
    ) -> None:
        """As `Learner.train_by_logits`; only `by_logits` runs between the kernels of two steps."""
        if self.augment is not None:
            super().train_by_logits(epoch, by_logits, given, table)
            return
        steps = len(epoch.sizes)
        self.check_batch(min(epoch.sizes))
        logits_of_size = {size: torch.empty(size, self.outputs) for size in set(epoch.sizes)}
        # Python between the kernels runs on cold caches and evicts theirs: compute as much as possible beforehand.
        arguments = []
        for batch in epoch.batches():
            logits = logits_of_size[len(batch.rows)]
            arguments.append((logits, *given(batch)))

        def gradient_by_logits(step: int) -> Array:
            gradient: Array = by_logits(*arguments[step]).numpy()
            return gradient

        self.core.train_by_logits(
            rows=self._stored_rows(epoch.whole.rows),
            keys=array_of(epoch.kept("dropout keys")),
            logits=[logits_of_size[size].numpy() for size in epoch.sizes],
            by_logits=gradient_by_logits,
            optimizer=_optimizer_arrays(self.optimizer),
            table=None if table is None else _table_arrays(table, epoch),
        )
        self._count_steps(steps)

    def train_along(self, epoch: Epoch, memories: Sequence[str], direction: Direction) -> None:
        """As `Learner.train_along`, with memory gradients in float64, so that the direction is computed in float64."""
        if self.augment is not None:
            super().train_along(epoch, memories, direction)
            return
        steps = len(epoch.sizes)
        self.check_batch(min(epoch.sizes))
        batches = epoch.whole
        gradient = self._gradient.flat
        memory_gradients = torch.empty(len(memories), len(gradient), dtype=torch.float64)

        def step_direction() -> Array:
            return array_of(direction(gradient, memory_gradients))

        self.core.train_along(
            rows=self._stored_rows(batches.rows),
            targets=array_of(batches.targets),
            weights=array_of(batches.weights),
            sizes=epoch.sizes,
            keys=array_of(epoch.kept("dropout keys")),
            memories=[self._memory_arrays(epoch, name) for name in memories],
            memory_gradients=memory_gradients.numpy(),
            direction=step_direction,
            optimizer=_optimizer_arrays(self.optimizer),
        )
        self._count_steps(steps)

    def _memory_arrays(self, epoch: Epoch, name: str) -> MemoryArrays:
        batches, dropout_keys = epoch.memory(name)
        rows = self._stored_rows(batches.rows)
        targets = array_of(batches.targets)
        weights = array_of(batches.weights)
        draws = array_of(batches.draws)
        return rows, targets, weights, draws, array_of(dropout_keys)

    def train_epoch(
        self,
        task: Instances,
        replay: Replay | None,
        order: torch.Tensor,
        batch_size: int,
        dropout_keys: torch.Tensor,
        beta: TaskInstanceParameters | None = None,
        penalty: Penalty | None = None,
    ) -> None:
        """As `Learner.train_epoch`, in one call of the kernels."""
        if self.augment is not None:
            super().train_epoch(task, replay, order, batch_size, dropout_keys, beta, penalty)
            return
        union = task if replay is None else replay.behind(task)
        instances = union.at(order)
        sizes = batch_sizes(len(order), batch_size, self.smallest_batch)
        steps = len(sizes)
        self.check_batch(min(sizes))
        self.core.train_epoch(
            rows=self._stored_rows(instances.rows),
            targets=array_of(instances.targets),
            factors=array_of(instances.loss_weights),
            order=array_of(order),
            sizes=sizes,
            task_size=len(task.rows),
            keys=array_of(dropout_keys),
            optimizer=_optimizer_arrays(self.optimizer),
            penalty=None if penalty is None else _penalty_arrays(penalty),
            beta=None if beta is None else _optimizer_arrays(beta.optimizer),
            beta_penalty=0.0 if beta is None else beta.penalty,
        )
        self._count_steps(steps)
        if beta is not None:
            beta.optimizer.steps += steps

    def _count_steps(self, steps: int) -> None:
        """Count the steps of an epoch, each of which updated the running statistics."""
        self.optimizer.steps += steps
        self.count_passes(steps)


def _written(tensor: torch.Tensor) -> Array:
    """Return the tensor's own memory for the kernels to write to: a write to a copy would be lost."""
    if not tensor.is_contiguous():
        raise ValueError("what steps write to, the values of a table or the path of a penalty, must be contiguous")
    return array_of(tensor)


def _optimizer_arrays(optimizer: Adam) -> OptimizerArrays:
    """Return the state of an optimiser for the kernels, which change the arrays but not the number of steps."""
    values = optimizer.values.numpy()
    first = optimizer.first.numpy()
    second = optimizer.second.numpy()
    learning_rate = float(optimizer.learning_rate)
    return values, first, second, learning_rate, optimizer.steps, optimizer.rule, optimizer.weight_decay


def _penalty_arrays(penalty: Penalty) -> PenaltyArrays:
    importance = array_of(penalty.importance)
    centre = array_of(penalty.centre)
    path = None if penalty.path is None else _written(penalty.path)
    return importance, centre, path


def _table_arrays(table: LogitTable, epoch: Epoch) -> TableArrays:
    values = _written(table.values)
    read = array_of(epoch.kept(READ))
    pull = array_of(epoch.kept(PULL))
    written = array_of(epoch.kept(WRITTEN))
    return values, read, pull, written
