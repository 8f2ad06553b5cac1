"""Learner: the networks of S runs with their optimiser. Training steps, one by one or an epoch of them: nothing else.

This, and what `RunNetworks` says, is all that a strategy knows of a network. Three kinds of learner implement it: the
native kernels of the paper's network (`NativeLearner`), modules one after another (`ModuleLearner`), and modules in
lockstep (`StackedLearner`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import torch

from clops_sweep.data.scenarios import LossKind
from clops_sweep.learning.batches import Batch, Epoch, EpochBatch, Instances, Replay
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.beta import TaskInstanceParameters
from clops_sweep.learning.learners.logit_table import LogitTable, pulled
from clops_sweep.learning.learners.optimizers import Adam
from clops_sweep.learning.learners.passes import Passes
from clops_sweep.learning.learners.penalty import Penalty
from clops_sweep.learning.learners.run_networks import RunNetworks
from clops_sweep.learning.parameters import Parameters


class Learner(RunNetworks):
    """The networks of S runs, in training, which changes their parameters in place.

    Attributes:
        optimizer: of the parameters.
        smallest_batch: instances that a training step needs at least.
    """

    smallest_batch: int = 1

    def __init__(
        self,
        seeds: Sequence[int],
        kind: LossKind,
        outputs: int,
        learning_rate: float,
        bank: FrameBank,
        parameters: Parameters,
    ) -> None:
        super().__init__(seeds, kind, outputs, bank, parameters)
        self.optimizer = Adam(parameters.flat, learning_rate)
        self._learning_rate = learning_rate
        self._excerpts: dict[tuple[int, ...], Self] = {}

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        if value != self._learning_rate:
            self._learning_rate = value
            self.optimizer.set_rate(value)

    def apply(self, gradient: torch.Tensor) -> None:
        """One Adam step along a gradient that is laid out like `parameters.flat`."""
        self.optimizer.step(gradient)

    def apply_penalised(self, gradient: torch.Tensor, penalty: Penalty) -> None:
        """One Adam step on a loss, whose gradient is given as for `apply`, and a penalty."""
        before = self.parameters.flat.clone()
        self.apply(torch.addcmul(gradient, before - penalty.centre, penalty.importance))
        if penalty.path is not None:
            penalty.path.addcmul_(gradient, self.parameters.flat - before, value=-1)

    def train_step(self, batch: Batch, dropout_keys: torch.Tensor, penalty: Penalty | None = None) -> torch.Tensor:
        """One Adam step on a batch, and a penalty if given; returns the losses l_i, float32 [S, B]."""
        instance_losses, gradient = self.gradient(batch, dropout_keys)
        if penalty is None:
            self.apply(gradient)
        else:
            self.apply_penalised(gradient, penalty)
        return instance_losses

    def begin_epoch(
        self, task: Instances, replay: Replay | None, order: torch.Tensor, batch_size: int, dropout_keys: torch.Tensor
    ) -> Epoch:
        """An epoch on a task, with its dropout keys kept as "dropout keys"; arguments as in `train_epoch`."""
        epoch = Epoch(task, replay, order, batch_size, self.smallest_batch)
        epoch.keep("dropout keys", dropout_keys)
        return epoch

    def run_epoch(self, epoch: Epoch, step: Callable[[EpochBatch, int], None], phases: int = 1) -> None:
        """Takes a step on each batch of an epoch.

        Args:
            epoch: as `begin_epoch` returned it.
            step: called with a batch and its number modulo `phases`. On a GPU it should look at no tensor's values, for
                which the host would wait.
            phases: after how many batches steps are alike again.
        """
        for number, batch in enumerate(epoch.batches()):
            step(batch, number % phases)

    def train_by_logits(
        self,
        epoch: Epoch,
        by_logits: Callable[..., torch.Tensor],
        given: Callable[[EpochBatch], Sequence[torch.Tensor]],
        table: LogitTable | None = None,
    ) -> None:
        """A step on each batch of an epoch, in training mode, along the gradient of any loss on logits.

        As a step of one's own by `run_epoch`, which calls `backpropagate` and `apply`; the native kernels lose less
        time between steps.

        Args:
            epoch: as `begin_epoch` returned it.
            by_logits: as for `backpropagate`.
            given: what that needs of a batch beside the logits.
            table: logits of earlier steps, which pull on those of each.
        """
        keys = epoch.kept("dropout keys")
        of_step = by_logits if table is None else partial(pulled, by_logits)

        def step(batch: EpochBatch, phase: int) -> None:
            del phase
            needed = given(batch) if table is None else (*table.needed(batch), *given(batch))
            logits, gradient = self.backpropagate(batch.rows, batch.draws, keys, of_step, *needed)
            if table is not None:
                table.write(batch, logits)
            self.apply(gradient)

        self.run_epoch(epoch, step)

    def train_along(
        self,
        epoch: Epoch,
        memories: Sequence[str],
        direction: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    ) -> None:
        """A step on each batch of an epoch, along what is made of its gradient and of memory gradients.

        Args:
            epoch: as `begin_epoch` returned it.
            memories: J names under which it keeps a memory's batches (`Epoch.keep_memory`).
            direction: from the gradient of a batch, [S, P], and the `memory_gradient` of each memory's, [S, J, P], in
                float32 or float64, to what is followed, [S, P]; rows as `Parameters.by_run` lays them out.
        """
        keys, by_run = epoch.kept("dropout keys"), self.parameters.by_run

        def step(batch: EpochBatch, phase: int) -> None:
            del phase
            memory = [by_run(self.memory_gradient(*epoch.memory(name, batch))) for name in memories]
            gradient = by_run(self.gradient(batch.plain(), keys)[1])
            self.apply(self.parameters.from_runs(direction(gradient, torch.stack(memory, dim=1))))

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
        """One step on each batch of an epoch.

        Args:
            task: the current task's instances.
            replay: instances to go with them, if any.
            order: int64 [S, n + m], the order of the union (see `Epoch.load`).
            batch_size: B.
            dropout_keys: int32 [S, 2].
            beta: weighs the losses of the current instances, and is itself trained on them, if given.
            penalty: is lowered with the loss, if given.
        """
        epoch = self.begin_epoch(task, replay, order, batch_size, dropout_keys)

        def step(batch: EpochBatch, phase: int) -> None:
            del phase
            plain = batch.plain()
            if beta is not None:
                plain = replace(plain, weights=beta.weighted(batch))
            instance_losses = self.train_step(plain, epoch.kept("dropout keys"), penalty)
            if beta is not None:
                beta.step(batch, instance_losses)

        self.run_epoch(epoch, step)

    def excerpt(self, runs: Sequence[int]) -> Self:
        """The networks of some of the runs as they are now, to be asked and not to be trained."""
        places = tuple(runs)
        if places == tuple(range(self.parameters.runs)):
            return self
        if places not in self._excerpts:
            self._excerpts[places] = self._of_seeds([self.seeds[place] for place in places])
        part = self._excerpts[places]
        for name, view in self.parameters.views.items():
            part.parameters.views[name].copy_(view[list(places)])
        part._take_statistics(self, places)
        return part

    def copy(self) -> Self:
        """Networks of the same parameters and running statistics, to be asked and not to be trained."""
        found = self._of_seeds(self.seeds)
        found.restore(self.state())
        return found

    def passes(self) -> Passes:
        """The network of a single run as a function under autograd."""
        raise NotImplementedError

    @abstractmethod
    def _of_seeds(self, seeds: Sequence[int]) -> Self:
        """A learner of the same kind for other runs."""

    @abstractmethod
    def _take_statistics(self, whole: Self, runs: Sequence[int]) -> None:
        """Copies what some runs of another learner have beside their parameters."""

    def begin_anew(self, task: int) -> None:
        """Other initial parameters, from a stream of the run's seed and a task, and an optimiser that knows nothing.

        Those of task 0 are those that a run begins with.
        """
        self._draw_parameters(task)
        self.optimizer.forget()

    @abstractmethod
    def _draw_parameters(self, task: int) -> None:
        """Initial parameters, and what there is beside them."""

    def state(self) -> dict[str, Any]:
        """Everything that training changes, as tensors and numbers."""
        return {"parameters": self.parameters.flat, "optimizer": self.optimizer.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes up a state that `state` returned."""
        self.parameters.flat.copy_(state["parameters"])
        self.optimizer.restore(state["optimizer"])
