"""Learner: the network of a run with its optimiser: predictions, gradients and training steps, singly or by epochs.

A strategy sees a network only through this class. Two kinds of learner implement it: the native kernels of the paper's
network (`NativeLearner`), and modules (`ModuleLearner`).

There are five ways to train, from the most general to the fastest. A step of the native kernels takes about as long as
a hundred PyTorch operations. So methods whose epochs fit one of the last three save the Python between their steps:

- `gradient` or `backpropagate`, then `apply`: any step, such as that of a method with `loss`.
- `train_step`: a step on weighted losses, for methods that choose each batch by the network as it is then (`mir`,
  `aser`).
- `train_epoch`: an epoch of such steps, also with beta or a penalty, for methods that know their batches beforehand.
  One call of the kernels computes all of them.
- `train_by_logits`: an epoch of steps on any loss of the logits (`derpp`, `er_ace`, `icarl`, `lwf`). Only the loss
  runs in Python.
- `train_along`: an epoch of steps along a direction that depends on memory gradients (`gem`, `agem`). Only the
  direction runs in Python.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import torch
from torch import nn

from clops_sweep.data.scenarios import LossKind
from clops_sweep.learning import losses
from clops_sweep.learning.augmentation.augmenter import Augmenter
from clops_sweep.learning.batches import Batch, Epoch, EpochBatch, Instances, Replay
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.beta import TaskInstanceParameters
from clops_sweep.learning.learners.logit_table import LogitTable, pulled
from clops_sweep.learning.learners.optimizers import Adam
from clops_sweep.learning.learners.passes import Passes
from clops_sweep.learning.learners.penalty import Penalty
from clops_sweep.learning.parameters import Parameters

Loss = Callable[..., torch.Tensor]
"""Maps logits, float32 [B, C], and other given tensors to a loss, or to terms of its sum."""

ByLogits = Callable[..., torch.Tensor]
"""Maps logits, float32 [B, C], which it must not write to, and other given tensors to the gradient of a loss by the
logits, [B, C]."""

GivenOfBatch = Callable[[EpochBatch], Sequence[torch.Tensor]]
"""Returns the other given tensors of a batch."""

Direction = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Maps the gradient of a batch, [P], and memory gradients, [J, P], to the gradient that the step follows, [P]."""


class Learner(ABC):
    """The network of a run in training. Training changes its parameters in place.

    Attributes:
        seed: seed of the initial parameters.
        kind: kind of output.
        outputs: C.
        bank: the frames of each row.
        parameters: parameters of the network.
        optimizer: optimiser of the parameters.
        smallest_batch: minimum number of instances in a training step.
        backend: name of the backend, as recorded with every run.
        augment: augmentation of the frames in training passes, if given.
    """

    smallest_batch: int = 1
    backend: str = "torch"
    augment: Augmenter | None = None

    def __init__(
        self,
        seed: int,
        kind: LossKind,
        outputs: int,
        learning_rate: float,
        bank: FrameBank,
        parameters: Parameters,
    ) -> None:
        self.seed = seed
        self.kind = kind
        self.outputs = outputs
        self.bank = bank
        self._start: Mapping[str, torch.Tensor] | None = None
        self.parameters = parameters
        self.optimizer = Adam(parameters.flat, learning_rate)
        self._gradient = parameters.like(torch.zeros_like(parameters.flat))

    def check_batch(self, size: int) -> None:
        """Check that a batch is large enough for batch norm in training mode; any is by default.

        Raises:
            UsageError: the batch is too small.
        """
        del size

    @abstractmethod
    def gradient(
        self,
        batch: Batch,
        dropout_keys: torch.Tensor,
        *,
        batch_statistics: bool = True,
        track_statistics: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss and gradient of a batch in training mode, with batch statistics and dropout.

        Args:
            batch: the instances and their weights.
            dropout_keys: int32 [2].
            batch_statistics: whether batch norm is in training mode; else it uses the running statistics.
            track_statistics: whether this batch updates the running statistics.

        Returns:
            Unweighted losses l_i, float32 [B], and the gradient of sum_i weights_i l_i, laid out like
            `parameters.flat`; the next gradient overwrites it.
        """

    def memory_gradient(self, batch: Batch, dropout_keys: torch.Tensor) -> torch.Tensor:
        """Return the gradient of sum_i weights_i l_i with batch norm in evaluation mode; otherwise as `gradient`."""
        _, gradient = self.gradient(batch, dropout_keys, batch_statistics=False)
        return gradient

    @abstractmethod
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
        """Return the gradient of a loss, given its gradient with respect to the logits; see also `loss_gradient`.

        Args:
            rows: int64 [B].
            draws: int64 [B], counters of the dropout masks.
            dropout_keys: int32 [2]; None for a pass without dropout, which needs no draws.
            by_logits: maps logits, float32 [B, C], which it must not write to, and the tensors `given` to the gradient
                of the loss with respect to the logits.
            given: further arguments of `by_logits`.
            batch_statistics: whether batch norm is in training mode; else it uses the running statistics.
            track_statistics: whether this batch updates the running statistics.

        Returns:
            The logits, and the gradient, laid out like `parameters.flat`; the next gradient overwrites it.
        """

    def loss_gradient(
        self,
        rows: torch.Tensor,
        draws: torch.Tensor | None,
        dropout_keys: torch.Tensor | None,
        loss: Loss,
        *given: torch.Tensor,
        batch_statistics: bool = True,
        track_statistics: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gradient of any loss that is a function of the logits.

        Example::

            def loss(logits, targets, stored):  # cross-entropy, and a tenth of the squared distance to other logits
                apart = binary_cross_entropy_with_logits(logits, targets, reduction="none").mean()
                return apart + 0.1 * (logits - stored).square().mean()

            logits, gradient = learner.loss_gradient(rows, draws, keys, loss, targets, stored)
            learner.apply(gradient)

        Args:
            rows: int64 [B].
            draws: int64 [B], counters of the dropout masks.
            dropout_keys: int32 [2]; None for a pass without dropout, which needs no draws.
            loss: maps logits, float32 [B, C], and the tensors `given` to the loss, a scalar, or to terms of its sum.
            given: further arguments of the loss: targets, weights, logits of other networks.
            batch_statistics: whether batch norm is in training mode; else it uses the running statistics.
            track_statistics: whether this batch updates the running statistics.

        Returns:
            The logits, and the gradient, laid out like `parameters.flat`; the next gradient overwrites it.
        """
        return self.backpropagate(
            rows,
            draws,
            dropout_keys,
            partial(_by_logits, loss),
            *given,
            batch_statistics=batch_statistics,
            track_statistics=track_statistics,
        )

    def instance_gradients(self, rows: torch.Tensor, loss: Loss, *given: torch.Tensor) -> Iterator[torch.Tensor]:
        """Yield the gradient of the loss l_i of each instance, in evaluation mode.

        Example::

            fisher = sum(g.square() for g in learner.instance_gradients(rows, loss, targets)) / len(rows)

        Args:
            rows: int64 [m].
            loss: maps logits, float32 [m, C], and the tensors `given` to the l_i, [m], or to their sum; l_i may depend
                only on the logits of i.
            given: further arguments of the loss.

        Yields:
            m times a gradient, laid out like `parameters.flat`; the next overwrites it.
        """
        by_logits = self._instances_by_logits(rows, loss, given)
        for row in range(len(rows)):
            instance = slice(row, row + 1)
            of_instance = partial(_given_gradient, by_logits[instance])
            _, gradient = self.backpropagate(rows[instance], None, None, of_instance, batch_statistics=False)
            yield gradient

    def mean_of_instance_gradients(
        self, rows: torch.Tensor, loss: Loss, *given: torch.Tensor, of_each: Literal["square", "abs"]
    ) -> torch.Tensor:
        """Return the mean, over instances, of the squares or absolute values of the gradients of their losses.

        Args:
            rows: int64 [m].
            loss: as in `instance_gradients`.
            given: further arguments of the loss.
            of_each: function applied to every entry of a gradient.

        Returns:
            The mean, laid out like `parameters.flat`.
        """
        function = torch.square if of_each == "square" else torch.abs
        total = torch.zeros_like(self.parameters.flat)
        for gradient in self.instance_gradients(rows, loss, *given):
            total.add_(function(gradient))
        return total.div_(len(rows))

    def _instances_by_logits(self, rows: torch.Tensor, loss: Loss, given: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the gradient of each instance's loss with respect to its logits, in evaluation mode: [m, C]."""
        return _by_logits(loss, self.logits(rows), *given)

    @abstractmethod
    def logits(
        self, rows: torch.Tensor, *, noise: torch.Tensor | None = None, shift: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return logits in evaluation mode, without dropout.

        Args:
            rows: int64 [m].
            noise: float32 [m, ...], of the shape of the instances, added to the frames.
            shift: laid out like `parameters.flat`, added to the parameters for this call only.

        Returns:
            float32 [m, C].
        """

    @abstractmethod
    def dropout_probabilities(
        self, rows: torch.Tensor, samples: int, dropout_keys: torch.Tensor, *, noise: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return T predictions of each instance, with dropout and batch norm in evaluation mode.

        Leaves parameters, running statistics, optimiser and every other random stream untouched.

        Args:
            rows: int64 [m].
            samples: T.
            dropout_keys: int32 [2]; the masks are a function of the keys and the instance's index.
            noise: float32 [m, ...], of the shape of the instances, added to the frames, the same for all T.

        Returns:
            float32 [m, T, C].
        """

    @abstractmethod
    def module(self) -> nn.Module:
        """Return the network as a module in evaluation mode, on the device of the bank. Do not modify it."""

    @abstractmethod
    def weights(self) -> dict[str, torch.Tensor]:
        """Return the state dict of the `nn.Module`, copied to the CPU."""

    def losses(self, rows: torch.Tensor, targets: torch.Tensor, *, shift: torch.Tensor | None = None) -> torch.Tensor:
        """Return losses l_i in evaluation mode, float32 [m]; rows and shift as in `logits`, targets [m, C]."""
        return losses.instance_losses(self.kind, self.logits(rows, shift=shift), targets)

    def probabilities(self, rows: torch.Tensor, *, noise: torch.Tensor | None = None) -> torch.Tensor:
        """Return predictions in evaluation mode, float32 [m, C]; arguments as in `logits`."""
        return losses.probabilities(self.kind, self.logits(rows, noise=noise))

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step."""
        return self.optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self.optimizer.learning_rate = value

    def apply(self, gradient: torch.Tensor) -> None:
        """Take one Adam step along a gradient laid out like `parameters.flat`."""
        self.optimizer.step(gradient)

    def apply_penalised(self, gradient: torch.Tensor, penalty: Penalty) -> None:
        """Take one Adam step on the sum of a loss, whose gradient is given as for `apply`, and a penalty."""
        before = self.parameters.flat.clone()
        penalised = torch.addcmul(gradient, before - penalty.centre, penalty.importance)
        self.apply(penalised)
        if penalty.path is not None:
            change = self.parameters.flat - before
            penalty.path.addcmul_(gradient, change, value=-1)

    def train_step(self, batch: Batch, dropout_keys: torch.Tensor, penalty: Penalty | None = None) -> torch.Tensor:
        """Return the losses l_i of a batch, float32 [B], after one Adam step on them, and on a penalty if given."""
        instance_losses, gradient = self.gradient(batch, dropout_keys)
        if penalty is None:
            self.apply(gradient)
        else:
            self.apply_penalised(gradient, penalty)
        return instance_losses

    def begin_epoch(
        self, task: Instances, replay: Replay | None, order: torch.Tensor, batch_size: int, dropout_keys: torch.Tensor
    ) -> Epoch:
        """Return an epoch on a task, which keeps its dropout keys as "dropout keys"; arguments as in `train_epoch`."""
        epoch = Epoch(task, replay, order, batch_size, self.smallest_batch)
        epoch.keep("dropout keys", dropout_keys)
        return epoch

    def run_epoch(self, epoch: Epoch, step: Callable[[EpochBatch], None]) -> None:
        """Take a step on each batch of an epoch.

        Args:
            epoch: as `begin_epoch` returned it.
            step: called with each batch. It should not read values of tensors: on a GPU the host would wait for them.
        """
        for batch in epoch.batches():
            step(batch)

    def train_by_logits(
        self,
        epoch: Epoch,
        by_logits: ByLogits,
        given: GivenOfBatch,
        table: LogitTable | None = None,
    ) -> None:
        """Take a step on each batch of an epoch, in training mode, along the gradient of any loss on logits.

        Equivalent to `run_epoch` with a step that calls `backpropagate` and `apply`; the native kernels lose less time
        between steps.

        Args:
            epoch: as `begin_epoch` returned it.
            by_logits: as for `backpropagate`.
            given: returns the further arguments of `by_logits` for a batch.
            table: logits of earlier steps, towards which the logits of each step are pulled.
        """
        keys = epoch.kept("dropout keys")
        of_step = by_logits if table is None else partial(pulled, by_logits)

        def step(batch: EpochBatch) -> None:
            arguments = [*given(batch)]
            if table is not None:
                arguments = [*table.read(batch), *arguments]
            logits, gradient = self.backpropagate(batch.rows, batch.draws, keys, of_step, *arguments)
            if table is not None:
                table.write(batch, logits)
            self.apply(gradient)

        self.run_epoch(epoch, step)

    def train_along(self, epoch: Epoch, memories: Sequence[str], direction: Direction) -> None:
        """Take a step on each batch of an epoch, along a direction computed from its gradient and memory gradients.

        Args:
            epoch: as `begin_epoch` returned it.
            memories: J names under which the epoch keeps the batches of a memory (`Epoch.keep_memory`).
            direction: maps the gradient of a batch, [P], and the `memory_gradient` of each memory's batch, [J, P], in
                float32 or float64, to the step's gradient, [P].
        """
        keys = epoch.kept("dropout keys")

        def step(batch: EpochBatch) -> None:
            memory_gradients = []
            for name in memories:
                memory_batch, memory_keys = epoch.memory(name, batch)
                memory_gradients.append(self.memory_gradient(memory_batch, memory_keys).clone())
            _, gradient = self.gradient(batch, keys)
            followed = direction(gradient, torch.stack(memory_gradients))
            self.apply(followed)

        self.run_epoch(epoch, step)

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
        """Take one step on each batch of an epoch.

        Args:
            task: the current task's instances.
            replay: replayed instances, if any.
            order: int64 [n + m], the order of the union (see `Epoch.load`).
            batch_size: B.
            dropout_keys: int32 [2].
            beta: if given, weights the losses of the current instances, and is itself trained on them.
            penalty: if given, is added to the loss.
        """
        epoch = self.begin_epoch(task, replay, order, batch_size, dropout_keys)

        def step(batch: EpochBatch) -> None:
            weighted = batch
            if beta is not None:
                weighted = replace(batch, weights=beta.weighted(batch))
            instance_losses = self.train_step(weighted, epoch.kept("dropout keys"), penalty)
            if beta is not None:
                beta.step(batch, instance_losses)

        self.run_epoch(epoch, step)

    def copy(self) -> Self:
        """Return a copy of the network with its running statistics, for predictions, not for training."""
        copied = self._alike()
        copied.restore(self.state())
        return copied

    @abstractmethod
    def passes(self) -> Passes:
        """Return the network as a function under autograd."""

    @abstractmethod
    def _alike(self) -> Self:
        """Return a new learner of the same kind."""

    def start_from(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Set the initial weights to those that `weights` returned for a network of the same kind.

        Raises:
            RuntimeError: names or shapes differ.
        """
        self._start = weights
        self._load(weights)

    @abstractmethod
    def _load(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Load what `weights` returned."""

    def begin_anew(self, task: int) -> None:
        """Draw new initial parameters, from a stream of the seed and a task, and reset the optimiser.

        Task 0 gives the same initial parameters as the beginning of the run. A learner that started from given weights
        returns to these.
        """
        if self._start is None:
            self._draw_parameters(task)
        else:
            self._load(self._start)
        self.optimizer.forget()

    @abstractmethod
    def _draw_parameters(self, task: int) -> None:
        """Draw the initial parameters and all other initial state."""

    def state(self) -> dict[str, Any]:
        """Return everything that training changes, as tensors and numbers."""
        return {"parameters": self.parameters.flat, "optimizer": self.optimizer.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state from `state`."""
        self.parameters.flat.copy_(state["parameters"])
        self.optimizer.restore(state["optimizer"])


def _by_logits(loss: Loss, logits: torch.Tensor, *given: torch.Tensor) -> torch.Tensor:
    """Return the gradient of a loss with respect to the logits, [B, C]."""
    with torch.enable_grad():
        leaf = logits.detach().requires_grad_()
        total = loss(leaf, *given).sum()
        (gradient,) = torch.autograd.grad(total, leaf)
    return gradient


def _given_gradient(gradient: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """Return a gradient by the logits that was computed before."""
    del logits
    return gradient
