"""KernelLearner: a learner whose training is computed by native kernels, on the memory of PyTorch tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.learning.batches import Batch, Epoch, EpochBatch, Instances, Replay, batch_sizes
from clops_sweep.learning.learners.beta import TaskInstanceParameters
from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.learners.logit_table import PULL, READ, WRITTEN, LogitTable
from clops_sweep.learning.learners.optimizers import Adam
from clops_sweep.learning.learners.penalty import Penalty

OptimizerArrays = tuple[NDArray[np.generic], NDArray[np.generic], NDArray[np.generic], float, int, str, float]
"""Values, first and second moments, learning rate, number of steps taken, name of the rule, and weight decay."""


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
        instance_losses = torch.empty(logits.shape[0])
        by_logits = self._loss_by_logits(logits, targets, weights, instance_losses.numpy())
        return instance_losses, by_logits

    def weighted_loss(
        self, logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `LoweredLearner.weighted_loss`; the losses of the instances are written to memory of an earlier call."""
        count = logits.shape[0]
        instance_losses = self._instance_losses.get(count)
        if instance_losses is None:
            instance_losses = torch.empty(count)
            self._instance_losses[count] = instance_losses
        by_logits = self._loss_by_logits(logits, targets, weights, instance_losses.numpy())
        return torch.dot(instance_losses, weights), by_logits

    def _loss_by_logits(
        self, logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor, instance_losses: NDArray[np.generic]
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
        track = batch_statistics and track_statistics
        if batch_statistics:
            self.check_batch(len(batch.rows))
        losses = torch.empty(len(batch.rows))
        rows, frames = self._rows_and_frames(batch.rows, augmented=batch_statistics)
        self.core.gradient(
            rows,
            array_of(batch.targets),
            array_of(batch.weights),
            array_of(batch.draws),
            array_of(dropout_keys),
            running=not batch_statistics,
            track=track,
            losses=losses.numpy(),
            frames=frames,
        )
        self.count_passes(int(track))
        return losses, self._gradient.flat

    def backpropagate(
        self,
        rows: torch.Tensor,
        draws: torch.Tensor | None,
        dropout_keys: torch.Tensor | None,
        by_logits: Callable[..., torch.Tensor],
        *given: torch.Tensor,
        batch_statistics: bool = True,
        track_statistics: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `Learner.backpropagate`."""
        track = batch_statistics and track_statistics
        if batch_statistics:
            self.check_batch(len(rows))
        logits = torch.empty(len(rows), self.outputs)
        stored_rows, frames = self._rows_and_frames(rows, augmented=batch_statistics)
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
        self.core.backward(array_of(by_logits(logits, *given)))
        return logits, self._gradient.flat

    def _rows_and_frames(
        self, rows: torch.Tensor, *, augmented: bool
    ) -> tuple[NDArray[np.generic], NDArray[np.generic] | None]:
        """Return stored rows, [B * channels], and None; or rows of augmented frames, and these, [rows, samples]."""
        if self.augment is None or not augmented:
            return array_of(self.bank.rows(rows)), None
        channels, samples = (1, *self.bank.shape)[-2:]
        frames = self.augment(self.bank.gather(rows).view(len(rows), channels, samples))
        return np.arange(len(rows) * channels), array_of(frames.reshape(-1, samples))

    def apply(self, gradient: torch.Tensor) -> None:
        """As `Learner.apply`."""
        self.core.step(_arrays(self.optimizer), array_of(gradient))
        self.optimizer.steps += 1

    def apply_penalised(self, gradient: torch.Tensor, penalty: Penalty) -> None:
        """As `Learner.apply_penalised`, in one pass over all parameters."""
        self.core.step(_arrays(self.optimizer), array_of(gradient), _penalty(penalty))
        self.optimizer.steps += 1

    def train_by_logits(
        self,
        epoch: Epoch,
        by_logits: Callable[..., torch.Tensor],
        given: Callable[[EpochBatch], Sequence[torch.Tensor]],
        table: LogitTable | None = None,
    ) -> None:
        """As `Learner.train_by_logits`; only `by_logits` runs between the kernels of two steps."""
        if self.augment is not None:
            super().train_by_logits(epoch, by_logits, given, table)
            return
        self.check_batch(min(epoch.sizes))
        logits = {size: torch.empty(size, self.outputs) for size in set(epoch.sizes)}
        arguments = []
        # Python between the kernels runs on cold caches and evicts theirs: compute as much as possible beforehand.
        for batch in epoch.batches():
            arguments.append((logits[len(batch.rows)], *given(batch)))

        def gradient_by_logits(number: int) -> NDArray[np.generic]:
            gradient: NDArray[np.generic] = by_logits(*arguments[number]).numpy()
            return gradient

        self.core.train_by_logits(
            rows=array_of(self.bank.rows(epoch.whole.rows)),
            keys=array_of(epoch.kept("dropout keys")),
            logits=[logits[size].numpy() for size in epoch.sizes],
            by_logits=gradient_by_logits,
            optimizer=_arrays(self.optimizer),
            table=None if table is None else _table(table, epoch),
        )
        self.optimizer.steps += len(epoch.sizes)
        self.count_passes(len(epoch.sizes))

    def train_along(
        self,
        epoch: Epoch,
        memories: Sequence[str],
        direction: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    ) -> None:
        """As `Learner.train_along`, with memory gradients in float64, so that the direction is computed in float64."""
        if self.augment is not None:
            super().train_along(epoch, memories, direction)
            return
        self.check_batch(min(epoch.sizes))
        batches = epoch.whole
        gradient = self._gradient.flat
        memory_gradients = torch.empty(len(memories), len(gradient), dtype=torch.float64)

        def step_direction() -> NDArray[np.generic]:
            return array_of(direction(gradient, memory_gradients))

        self.core.train_along(
            rows=array_of(self.bank.rows(batches.rows)),
            targets=array_of(batches.targets),
            weights=array_of(batches.weights),
            sizes=epoch.sizes,
            keys=array_of(epoch.kept("dropout keys")),
            memories=[self._memory(*epoch.memory(name)) for name in memories],
            memory_gradients=memory_gradients.numpy(),
            direction=step_direction,
            optimizer=_arrays(self.optimizer),
        )
        self.optimizer.steps += len(epoch.sizes)
        self.count_passes(len(epoch.sizes))

    def _memory(self, batches: Batch, dropout_keys: torch.Tensor) -> tuple[NDArray[np.generic], ...]:
        """Return the batches of a memory, one for each step of an epoch: arrays [steps, ...]."""
        rows = self.bank.rows(batches.rows)
        return (
            array_of(rows),
            array_of(batches.targets),
            array_of(batches.weights),
            array_of(batches.draws),
            array_of(dropout_keys),
        )

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
        self.check_batch(min(sizes))
        self.core.train_epoch(
            rows=array_of(self.bank.rows(instances.rows)),
            targets=array_of(instances.targets),
            factors=array_of(instances.loss_weights),
            order=array_of(order),
            sizes=sizes,
            task_size=len(task.rows),
            keys=array_of(dropout_keys),
            optimizer=_arrays(self.optimizer),
            penalty=None if penalty is None else _penalty(penalty),
            beta=None if beta is None else _arrays(beta.optimizer),
            beta_penalty=0.0 if beta is None else beta.penalty,
        )
        self.optimizer.steps += len(sizes)
        self.count_passes(len(sizes))
        if beta is not None:
            beta.optimizer.steps += len(sizes)


def array_of(tensor: torch.Tensor) -> NDArray[np.generic]:
    """Return the tensor's own memory, or a copy if the tensor is a strided view."""
    array: NDArray[np.generic] = tensor.contiguous().numpy()
    return array


def optional_array(tensor: torch.Tensor | None) -> NDArray[np.generic] | None:
    """As `array_of`; None for None."""
    return None if tensor is None else array_of(tensor)


def _changed(tensor: torch.Tensor) -> NDArray[np.generic]:
    """Return the tensor's own memory for the kernels to write to: a write to a copy would be lost."""
    if not tensor.is_contiguous():
        raise ValueError("what steps write to, the values of a table or the path of a penalty, must be contiguous")
    return array_of(tensor)


def _arrays(optimizer: Adam) -> OptimizerArrays:
    """Return the state of an optimiser for the kernels, which change the arrays but not the number of steps."""
    return (
        optimizer.values.numpy(),
        optimizer.first.numpy(),
        optimizer.second.numpy(),
        float(optimizer.learning_rate),
        optimizer.steps,
        optimizer.rule,
        optimizer.weight_decay,
    )


def _penalty(penalty: Penalty) -> tuple[NDArray[np.generic] | None, ...]:
    path = None if penalty.path is None else _changed(penalty.path)
    return array_of(penalty.importance), array_of(penalty.centre), path


def _table(table: LogitTable, epoch: Epoch) -> tuple[NDArray[np.generic], ...]:
    return (
        _changed(table.values),
        array_of(epoch.kept(READ)),
        array_of(epoch.kept(PULL)),
        array_of(epoch.kept(WRITTEN)),
    )
