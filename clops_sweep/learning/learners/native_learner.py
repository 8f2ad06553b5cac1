"""NativeLearner: the paper's network on a CPU. The native kernels work on the memory of PyTorch tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep import native
from clops_sweep.data.frames import FRAME_LENGTH
from clops_sweep.data.scenarios import LossKind
from clops_sweep.learning.batches import Batch, Epoch, EpochBatch, Instances, Replay, batch_sizes
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.beta import TaskInstanceParameters
from clops_sweep.learning.learners.learner import Learner, Loss
from clops_sweep.learning.learners.logit_table import PULL, READ, WRITTEN, LogitTable
from clops_sweep.learning.learners.native_passes import NativePasses
from clops_sweep.learning.learners.optimizers import Adam
from clops_sweep.learning.learners.passes import Passes
from clops_sweep.learning.learners.penalty import Penalty
from clops_sweep.learning.networks.network import CHANNELS, PaperNetwork, initial_parameters

_BLOCKS = 3

AdamArrays = tuple[NDArray[np.generic], NDArray[np.generic], NDArray[np.generic], float, int]
"""Values, first and second moments, learning rate, and number of steps taken."""


class NativeLearner(Learner):
    """Learner with the numbers of `PaperNetwork` in a `ModuleLearner`, up to rounding, but several times faster.

    Methods that are not overridden use PyTorch, on the same memory as the kernels. Epochs are overridden to save the
    Python between two steps. With an augmentation, which is Python, they are those of `Learner`.

    Args:
        seed: seed of the initial parameters.
        kind: kind of output.
        outputs: C.
        learning_rate: learning rate of Adam.
        bank: the frames of each row, on the CPU.
        variant: name of the kernels, from `native.available()`.

    Attributes:
        statistics: running means of the three blocks, [channels] each, and their running variances.
    """

    def __init__(
        self,
        seed: int,
        kind: LossKind,
        outputs: int,
        learning_rate: float,
        bank: FrameBank,
        variant: str,
    ) -> None:
        super().__init__(seed, kind, outputs, learning_rate, bank, initial_parameters(seed, outputs))
        means = map(torch.zeros, CHANNELS[1:])
        variances = map(torch.ones, CHANNELS[1:])
        self.statistics = [*means, *variances]
        self.variant = variant
        self.backend = f"native-{variant}"
        self._core = self._kernels()

    def _kernels(self) -> Any:
        """Return kernels over the network, with a workspace of their own."""
        return native.core(
            variant=self.variant,
            softmax=self.kind == "softmax",
            outputs=self.outputs,
            parameters=self.parameters.flat.numpy(),
            gradient=self._gradient.flat.numpy(),
            means=[mean.numpy() for mean in self.statistics[:_BLOCKS]],
            variances=[variance.numpy() for variance in self.statistics[_BLOCKS:]],
            frames=self.bank.stored.numpy(),
            gain=_optional(self.bank.gain),
            offset=_optional(self.bank.offset),
        )

    def passes(self) -> Passes:
        """As `Learner.passes`."""
        return NativePasses(self, self._kernels)

    def gradient(
        self,
        batch: Batch,
        dropout_keys: torch.Tensor,
        *,
        batch_statistics: bool = True,
        track_statistics: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `Learner.gradient`."""
        losses = torch.empty(len(batch.rows))
        rows, frames = self._rows_and_frames(batch.rows, augmented=batch_statistics)
        self._core.gradient(
            rows,
            _array(batch.targets),
            _array(batch.weights),
            _array(batch.draws),
            _array(dropout_keys),
            running=not batch_statistics,
            track=batch_statistics and track_statistics,
            losses=losses.numpy(),
            frames=frames,
        )
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
        logits = torch.empty(len(rows), self.outputs)
        stored_rows, frames = self._rows_and_frames(rows, augmented=batch_statistics)
        self._core.forward(
            stored_rows,
            _optional(draws),
            _optional(dropout_keys),
            running=not batch_statistics,
            track=batch_statistics and track_statistics,
            logits=logits.numpy(),
            frames=frames,
        )
        self._core.backward(_array(by_logits(logits, *given)))
        return logits, self._gradient.flat

    def _rows_and_frames(
        self, rows: torch.Tensor, *, augmented: bool
    ) -> tuple[NDArray[np.generic], NDArray[np.generic] | None]:
        """Return stored rows, [B], and None; or indices into augmented frames, [B], and these frames, [B, samples]."""
        if self.augment is None or not augmented:
            return _array(self.bank.rows(rows)), None
        frames = self.augment(self.bank.gather(rows).view(len(rows), 1, -1))
        return np.arange(len(rows)), _array(frames.flatten(1))

    def mean_of_instance_gradients(
        self, rows: torch.Tensor, loss: Loss, *given: torch.Tensor, of_each: Literal["square", "abs"]
    ) -> torch.Tensor:
        """As `Learner.mean_of_instance_gradients`, many instances at a time."""
        sums = torch.zeros_like(self.parameters.flat)
        by_logits = self._instances_by_logits(rows, loss, given)
        self._core.sum_of_each(
            _array(self.bank.rows(rows)), _array(by_logits), absolute=of_each == "abs", sums=sums.numpy()
        )
        return sums.div_(len(rows))

    def _alike(self) -> Self:
        return type(self)(self.seed, self.kind, self.outputs, self.learning_rate, self.bank, self.variant)

    def _draw_parameters(self, task: int) -> None:
        self.parameters.flat.copy_(initial_parameters(self.seed, self.outputs, task).flat)
        for mean in self.statistics[:_BLOCKS]:
            mean.fill_(0)
        for variance in self.statistics[_BLOCKS:]:
            variance.fill_(1)

    def module(self) -> torch.nn.Module:
        """As `Learner.module`."""
        with torch.device("meta"):  # no random draw, because the weights are replaced
            network = PaperNetwork(1, FRAME_LENGTH, self.outputs).eval()
        network.load_state_dict(self.weights(), assign=True)
        return network

    def weights(self) -> dict[str, torch.Tensor]:
        """As `Learner.weights`."""
        weights = {name: view.clone() for name, view in self.parameters.views.items()}
        for block in range(_BLOCKS):
            norm = f"norm{block + 1}"
            weights[f"{norm}.running_mean"] = self.statistics[block].clone()
            weights[f"{norm}.running_var"] = self.statistics[_BLOCKS + block].clone()
            weights[f"{norm}.num_batches_tracked"] = torch.tensor(0)
        return weights

    def state(self) -> dict[str, Any]:
        """As `Learner.state`."""
        return super().state() | {"statistics": self.statistics}

    def restore(self, state: dict[str, Any]) -> None:
        """As `Learner.restore`."""
        super().restore(state)
        for tensor, value in zip(self.statistics, state["statistics"], strict=True):
            tensor.copy_(value)

    def apply(self, gradient: torch.Tensor) -> None:
        """As `Learner.apply`."""
        self._core.adam(_adam(self.optimizer), _array(gradient))
        self.optimizer.steps += 1

    def apply_penalised(self, gradient: torch.Tensor, penalty: Penalty) -> None:
        """As `Learner.apply_penalised`, in one pass over all parameters."""
        self._core.adam(_adam(self.optimizer), _array(gradient), _penalty(penalty))
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
        logits = {size: torch.empty(size, self.outputs) for size in set(epoch.sizes)}
        arguments = []
        # Python between the kernels runs on cold caches and evicts theirs: compute as much as possible beforehand.
        for batch in epoch.batches():
            arguments.append((logits[len(batch.rows)], *given(batch)))

        def gradient_by_logits(number: int) -> NDArray[np.generic]:
            gradient: NDArray[np.generic] = by_logits(*arguments[number]).numpy()
            return gradient

        self._core.train_by_logits(
            rows=_array(self.bank.rows(epoch.whole.rows)),
            keys=_array(epoch.kept("dropout keys")),
            logits=[logits[size].numpy() for size in epoch.sizes],
            by_logits=gradient_by_logits,
            adam=_adam(self.optimizer),
            table=None if table is None else _table(table, epoch),
        )
        self.optimizer.steps += len(epoch.sizes)

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
        batches = epoch.whole
        gradient = self._gradient.flat
        memory_gradients = torch.empty(len(memories), len(gradient), dtype=torch.float64)

        def step_direction() -> NDArray[np.generic]:
            return _array(direction(gradient, memory_gradients))

        self._core.train_along(
            rows=_array(self.bank.rows(batches.rows)),
            targets=_array(batches.targets),
            weights=_array(batches.weights),
            sizes=epoch.sizes,
            keys=_array(epoch.kept("dropout keys")),
            memories=[self._memory(*epoch.memory(name)) for name in memories],
            memory_gradients=memory_gradients.numpy(),
            direction=step_direction,
            adam=_adam(self.optimizer),
        )
        self.optimizer.steps += len(epoch.sizes)

    def _memory(self, batches: Batch, dropout_keys: torch.Tensor) -> tuple[NDArray[np.generic], ...]:
        """Return the batches of a memory, one for each step of an epoch: arrays [steps, ...]."""
        rows = self.bank.rows(batches.rows)
        return (
            _array(rows),
            _array(batches.targets),
            _array(batches.weights),
            _array(batches.draws),
            _array(dropout_keys),
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
        self._core.train_epoch(
            rows=_array(self.bank.rows(instances.rows)),
            targets=_array(instances.targets),
            factors=_array(instances.loss_weights),
            order=_array(order),
            sizes=sizes,
            task_size=len(task.rows),
            keys=_array(dropout_keys),
            adam=_adam(self.optimizer),
            penalty=None if penalty is None else _penalty(penalty),
            beta=None if beta is None else _adam(beta.optimizer),
            beta_penalty=0.0 if beta is None else beta.penalty,
        )
        self.optimizer.steps += len(sizes)
        if beta is not None:
            beta.optimizer.steps += len(sizes)

    def logits(
        self, rows: torch.Tensor, *, noise: torch.Tensor | None = None, shift: torch.Tensor | None = None
    ) -> torch.Tensor:
        """As `Learner.logits`."""
        parameters = None if shift is None else self.parameters.flat + shift
        return self._predict(rows, noise, parameters=parameters).squeeze(1)

    def probabilities(self, rows: torch.Tensor, *, noise: torch.Tensor | None = None) -> torch.Tensor:
        """As `Learner.probabilities`."""
        return self._predict(rows, noise, probabilities=True).squeeze(1)

    def dropout_probabilities(
        self, rows: torch.Tensor, samples: int, dropout_keys: torch.Tensor, *, noise: torch.Tensor | None = None
    ) -> torch.Tensor:
        """As `Learner.dropout_probabilities`."""
        return self._predict(rows, noise, probabilities=True, samples=samples, dropout_keys=dropout_keys)

    def _predict(
        self,
        rows: torch.Tensor,
        noise: torch.Tensor | None,
        *,
        parameters: torch.Tensor | None = None,
        probabilities: bool = False,
        samples: int = 1,
        dropout_keys: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return predictions in evaluation mode, [m, T, C], with dropout if there are keys."""
        predictions = torch.empty(len(rows), samples, self.outputs)
        self._core.predict(
            rows=_array(self.bank.rows(rows)),
            noise=None if noise is None else _array(noise.flatten(1)),
            parameters=_optional(parameters),
            probabilities=probabilities,
            samples=samples,
            keys=_optional(dropout_keys),
            result=predictions.numpy(),
        )
        return predictions


def _array(tensor: torch.Tensor) -> NDArray[np.generic]:
    """Return the tensor's own memory, or a copy if the tensor is a strided view."""
    array: NDArray[np.generic] = tensor.contiguous().numpy()
    return array


def _optional(tensor: torch.Tensor | None) -> NDArray[np.generic] | None:
    return None if tensor is None else _array(tensor)


def _changed(tensor: torch.Tensor) -> NDArray[np.generic]:
    """Return the tensor's own memory for the kernels to write to: a write to a copy would be lost."""
    if not tensor.is_contiguous():
        raise ValueError("what steps write to, the values of a table or the path of a penalty, must be contiguous")
    return _array(tensor)


def _adam(optimizer: Adam) -> AdamArrays:
    """Return the state of an optimiser for the kernels, which change the arrays but not the number of steps."""
    return (
        optimizer.values.numpy(),
        optimizer.first.numpy(),
        optimizer.second.numpy(),
        float(optimizer.learning_rate),
        optimizer.steps,
    )


def _penalty(penalty: Penalty) -> tuple[NDArray[np.generic] | None, ...]:
    path = None if penalty.path is None else _changed(penalty.path)
    return _array(penalty.importance), _array(penalty.centre), path


def _table(table: LogitTable, epoch: Epoch) -> tuple[NDArray[np.generic], ...]:
    return (
        _changed(table.values),
        _array(epoch.kept(READ)),
        _array(epoch.kept(PULL)),
        _array(epoch.kept(WRITTEN)),
    )
