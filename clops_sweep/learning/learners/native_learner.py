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
from clops_sweep.learning.batches import Batch, Epoch, EpochBatch, Instances, Replay
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.beta import TaskInstanceParameters
from clops_sweep.learning.learners.learner import Learner, Loss
from clops_sweep.learning.learners.logit_table import PULL, READ, WRITTEN, LogitTable
from clops_sweep.learning.learners.native_passes import NativePasses
from clops_sweep.learning.learners.passes import Passes
from clops_sweep.learning.learners.penalty import Penalty
from clops_sweep.learning.networks.network import CHANNELS, PaperNetwork, initial_parameters


class NativeLearner(Learner):
    """Learner with the numbers of `PaperNetwork` in a `ModuleLearner`, up to rounding, but several times faster.

    Methods that are not overridden use PyTorch, on the same memory as the kernels.

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
        self.statistics = [*map(torch.zeros, CHANNELS[1:]), *map(torch.ones, CHANNELS[1:])]
        self.variant = variant
        self.backend = f"native-{variant}"
        adam = self.optimizer
        self._adam_memory = [values.numpy() for values in (adam.values, adam.first, adam.second)]
        self._core = self._kernels()

    def _kernels(self) -> Any:
        """Return kernels over the network, with a workspace of their own. Their arrays have a leading axis of one."""
        return native.core(
            variant=self.variant,
            softmax=self.kind == "softmax",
            runs=1,
            outputs=self.outputs,
            parameters=self.parameters.flat.numpy(),
            gradient=self._gradient.flat.numpy(),
            means=[mean.numpy() for mean in self.statistics[:3]],
            variances=[variance.numpy() for variance in self.statistics[3:]],
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
        losses, frames, track = torch.empty(batch.rows.shape), None, batch_statistics and track_statistics
        rows, *given = self._given(batch, dropout_keys)
        if self.augment is not None and batch_statistics:
            rows, frames = self._augmented(batch.rows)
        self._core.gradient(rows, *given, not batch_statistics, track, losses[None].numpy(), frames)
        return losses, self._gradient.flat

    def _augmented(self, rows: torch.Tensor) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
        """Return indices, [1, B], into augmented frames, and these frames, [B, samples]."""
        assert self.augment is not None
        changed = self.augment(self.bank.gather(rows).view(len(rows), 1, -1))
        return np.arange(len(rows))[None], _array(changed.flatten(1))

    def _given(self, batch: Batch, dropout_keys: torch.Tensor) -> tuple[NDArray[np.generic], ...]:
        rows, targets, weights = self.bank.rows(batch.rows), batch.targets, batch.weights
        return _one(rows), _one(targets), _one(weights), _array(batch.draws), _one(dropout_keys)

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
        track, frames, at = batch_statistics and track_statistics, None, _one(self.bank.rows(rows))
        if self.augment is not None and batch_statistics:
            at, frames = self._augmented(rows)
        self._core.forward(
            at,
            _optional(draws),
            None if dropout_keys is None else _one(dropout_keys),
            not batch_statistics,
            track,
            logits[None].numpy(),
            frames,
        )
        self._core.backward(_one(by_logits(logits, *given)))
        return logits, self._gradient.flat

    def mean_of_instance_gradients(
        self, rows: torch.Tensor, loss: Loss, *given: torch.Tensor, of_each: Literal["square", "abs"]
    ) -> torch.Tensor:
        """As `Learner.mean_of_instance_gradients`, many instances at a time."""
        sums = torch.zeros_like(self.parameters.flat)
        by_logits = self._instances_by_logits(rows, loss, given)
        self._core.sum_of_each(_one(self.bank.rows(rows)), _one(by_logits), of_each == "abs", sums.numpy())
        return sums.div_(len(rows))

    def _alike(self) -> Self:
        return type(self)(self.seed, self.kind, self.outputs, self.learning_rate, self.bank, self.variant)

    def _draw_parameters(self, task: int) -> None:
        self.parameters.flat.copy_(initial_parameters(self.seed, self.outputs, task).flat)
        for number, tensor in enumerate(self.statistics):
            tensor.fill_(0 if number < 3 else 1)

    def module(self) -> torch.nn.Module:
        """As `Learner.module`."""
        with torch.device("meta"):  # no random draw, because the weights are replaced
            found = PaperNetwork(1, FRAME_LENGTH, self.outputs).eval()
        found.load_state_dict(self.weights(), assign=True)
        return found

    def weights(self) -> dict[str, torch.Tensor]:
        """As `Learner.weights`."""
        found = {name: view.clone() for name, view in self.parameters.views.items()}
        for number, values in enumerate(self.statistics):
            kind = "running_mean" if number < 3 else "running_var"
            found[f"norm{number % 3 + 1}.{kind}"] = values.clone()
        return found | {f"norm{block}.num_batches_tracked": torch.tensor(0) for block in (1, 2, 3)}

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
        self._step(gradient)

    def apply_penalised(self, gradient: torch.Tensor, penalty: Penalty) -> None:
        """As `Learner.apply_penalised`, in one pass over all parameters."""
        self._step(gradient, penalty)

    def _step(self, gradient: torch.Tensor, penalty: Penalty | None = None) -> None:
        adam = self.optimizer
        self._core.adam(*self._adam_memory, _array(gradient), self.learning_rate, adam.steps, _penalty(penalty))
        self.optimizer.steps += 1

    def train_by_logits(
        self,
        epoch: Epoch,
        by_logits: Callable[..., torch.Tensor],
        given: Callable[[EpochBatch], Sequence[torch.Tensor]],
        table: LogitTable | None = None,
    ) -> None:
        """As `Learner.train_by_logits`, with as little Python as possible between the kernels of two steps."""
        if self.augment is not None:
            super().train_by_logits(epoch, by_logits, given, table)
            return
        logits = {size: torch.empty(size, self.outputs) for size in set(epoch.sizes)}
        # Python between the kernels runs on cold caches and evicts theirs: compute as much as possible beforehand.
        steps = zip(epoch.sizes, epoch.batches(), strict=True)
        needed = [(logits[size], *given(batch)) for size, batch in steps]

        def found(number: int) -> NDArray[np.generic]:
            array: NDArray[np.generic] = by_logits(*needed[number])[None].numpy()
            return array

        self._core.train_by_logits(
            _one(self.bank.rows(epoch.whole.rows)),
            _one(epoch.kept("dropout keys")),
            [logits[size][None].numpy() for size in epoch.sizes],
            found,
            *self._steps(len(epoch.sizes)),
            None
            if table is None
            else (_changed(table.values), *(_array(epoch.kept(of)) for of in (READ, PULL, WRITTEN))),
        )

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
        rows, targets, weights, _, dropout = self._given(epoch.whole, epoch.kept("dropout keys"))
        flat = self._gradient.flat
        memory = torch.empty(len(memories), flat.numel(), dtype=torch.float64)

        def found() -> NDArray[np.generic]:
            return _array(direction(flat, memory))

        past = [self._of_memory(*epoch.memory(name)) for name in memories]
        self._core.train_along(
            rows,
            targets,
            weights,
            epoch.sizes,
            dropout,
            past,
            memory[None].numpy(),
            found,
            *self._steps(len(epoch.sizes)),
        )

    def _of_memory(self, batches: Batch, dropout_keys: torch.Tensor) -> tuple[NDArray[np.generic], ...]:
        """Return the batches of a memory, [steps, ...], with an axis of one behind that of steps."""
        rows = self.bank.rows(batches.rows)
        given = (rows, batches.targets, batches.weights, batches.draws, dropout_keys)
        return tuple(_array(values if values is batches.draws else values[:, None]) for values in given)

    def _steps(self, count: int) -> tuple[Any, ...]:
        """Return the settings of the next Adam steps for the kernels, and count these steps as taken."""
        self.optimizer.steps += count
        return *self._adam_memory, self.learning_rate, self.optimizer.steps - count

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
        """As `Learner.train_epoch`; without augmentation, all batches run in one call of the kernels."""
        if self.augment is not None:
            super().train_epoch(task, replay, order, batch_size, dropout_keys, beta, penalty)
            return
        union = (task if replay is None else replay.behind(task)).at(order)
        adam = self.optimizer
        arguments: dict[str, Any] = dict.fromkeys(("beta", "beta_first", "beta_second"))
        arguments |= {"beta_penalty": [], "beta_learning_rate": [], "beta_steps": 0}
        if beta is not None:
            arguments = {
                "beta": _one(beta.values),
                "beta_first": _one(beta.optimizer.first),
                "beta_second": _one(beta.optimizer.second),
                "beta_penalty": [beta.penalty],
                "beta_learning_rate": [beta.optimizer.learning_rate],
                "beta_steps": beta.optimizer.steps,
            }
        self._core.train_epoch(
            rows=_one(self.bank.rows(union.rows)),
            targets=_one(union.targets),
            factors=_one(union.loss_weights),
            order=_one(order),
            task_size=len(task.rows),
            batch_size=batch_size,
            keys=_one(dropout_keys),
            first=_array(adam.first),
            second=_array(adam.second),
            learning_rate=self.learning_rate,
            steps=adam.steps,
            penalty=_penalty(penalty),
            **arguments,
        )
        steps = -(-len(order) // batch_size)
        adam.steps += steps
        if beta is not None:
            beta.optimizer.steps += steps

    def logits(
        self, rows: torch.Tensor, *, noise: torch.Tensor | None = None, shift: torch.Tensor | None = None
    ) -> torch.Tensor:
        """As `Learner.logits`."""
        return self._predict(rows, noise, shift, probabilities=False)

    def probabilities(self, rows: torch.Tensor, *, noise: torch.Tensor | None = None) -> torch.Tensor:
        """As `Learner.probabilities`."""
        return self._predict(rows, noise, None, probabilities=True)

    def dropout_probabilities(
        self, rows: torch.Tensor, samples: int, dropout_keys: torch.Tensor, *, noise: torch.Tensor | None = None
    ) -> torch.Tensor:
        """As `Learner.dropout_probabilities`."""
        result = torch.empty(len(rows), samples, self.outputs)
        at, noisy = _one(self.bank.rows(rows)), None if noise is None else _one(noise)
        self._core.predict(at, noisy, None, True, samples, _one(dropout_keys), result[None].numpy())
        return result

    def _predict(
        self, rows: torch.Tensor, noise: torch.Tensor | None, shift: torch.Tensor | None, *, probabilities: bool
    ) -> torch.Tensor:
        result = torch.empty(len(rows), 1, self.outputs)
        at, noisy = _one(self.bank.rows(rows)), None if noise is None else _one(noise)
        shifted = None if shift is None else (self.parameters.flat + shift).numpy()
        self._core.predict(at, noisy, shifted, probabilities, 1, None, result[None].numpy())
        return result.squeeze(1)


def _array(tensor: torch.Tensor) -> NDArray[np.generic]:
    """Return the tensor's own memory, or a copy if the tensor is a strided view."""
    array: NDArray[np.generic] = (tensor if tensor.is_contiguous() else tensor.contiguous()).numpy()
    return array


def _one(tensor: torch.Tensor) -> NDArray[np.generic]:
    """As `_array`, with a leading axis of one, as the kernels take them."""
    array: NDArray[np.generic] = _array(tensor)[None]
    return array


def _penalty(penalty: Penalty | None) -> tuple[NDArray[np.generic] | None, ...] | None:
    if penalty is None:
        return None
    path = None if penalty.path is None else _changed(penalty.path)
    return _array(penalty.importance), _array(penalty.centre), path


def _changed(tensor: torch.Tensor) -> NDArray[np.generic]:
    """Return the tensor's own memory for the kernels to write to: a write to a copy would be lost."""
    if not tensor.is_contiguous():
        raise ValueError("what steps write to, the values of a table or the path of a penalty, must be contiguous")
    return _array(tensor)


def _optional(tensor: torch.Tensor | None) -> NDArray[np.generic] | None:
    return None if tensor is None else _array(tensor)
