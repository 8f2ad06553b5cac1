"""Learner: the networks of S runs with their optimiser, and their training steps, one by one or a whole epoch.

A strategy sees a network only through this class and its base `RunNetworks`. Two kinds of learner implement it: the
native kernels of the paper's network (`NativeLearner`), and modules (`ModuleLearner`).
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
    """Networks of S runs in training. Training changes their parameters in place.

    Attributes:
        optimizer: optimiser of the parameters.
        smallest_batch: minimum number of instances in a training step.
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
        self._excerpts: dict[tuple[int, ...], Self] = {}

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
        self.apply(torch.addcmul(gradient, before - penalty.centre, penalty.importance))
        if penalty.path is not None:
            penalty.path.addcmul_(gradient, self.parameters.flat - before, value=-1)

    def train_step(self, batch: Batch, dropout_keys: torch.Tensor, penalty: Penalty | None = None) -> torch.Tensor:
        """Take one Adam step on a batch, and on a penalty if given; return the losses l_i, float32 [S, B]."""
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

    def run_epoch(self, epoch: Epoch, step: Callable[[EpochBatch, int], None], phases: int = 1) -> None:
        """Take a step on each batch of an epoch.

        Args:
            epoch: as `begin_epoch` returned it.
            step: called with a batch and its number modulo `phases`. On a GPU it should read no tensor's values,
                because the host would wait for them.
            phases: period of the steps, in batches.
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
        """Take a step on each batch of an epoch, along a direction computed from its gradient and memory gradients.

        Args:
            epoch: as `begin_epoch` returned it.
            memories: J names under which the epoch keeps the batches of a memory (`Epoch.keep_memory`).
            direction: maps the gradient of a batch, [S, P], and the `memory_gradient` of each memory's batch, [S, J,
                P], in float32 or float64, to the step's gradient, [S, P]; rows as `Parameters.by_run` lays them out.
        """
        keys, by_run = epoch.kept("dropout keys"), self.parameters.by_run

        def step(batch: EpochBatch, phase: int) -> None:
            del phase
            memory = [by_run(self.memory_gradient(*epoch.memory(name, batch))) for name in memories]
            gradient = by_run(self.gradient(batch, keys)[1])
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
        """Take one step on each batch of an epoch.

        Args:
            task: the current task's instances.
            replay: replayed instances, if any.
            order: int64 [S, n + m], the order of the union (see `Epoch.load`).
            batch_size: B.
            dropout_keys: int32 [S, 2].
            beta: if given, weights the losses of the current instances, and is itself trained on them.
            penalty: if given, is added to the loss.
        """
        epoch = self.begin_epoch(task, replay, order, batch_size, dropout_keys)

        def step(batch: EpochBatch, phase: int) -> None:
            del phase
            weighted = batch if beta is None else replace(batch, weights=beta.weighted(batch))
            instance_losses = self.train_step(weighted, epoch.kept("dropout keys"), penalty)
            if beta is not None:
                beta.step(batch, instance_losses)

        self.run_epoch(epoch, step)

    def excerpt(self, runs: Sequence[int]) -> Self:
        """Return the current networks of some of the runs, for predictions and gradients, not for training."""
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
        """Return a copy of the networks with their running statistics, for predictions, not for training."""
        found = self._of_seeds(self.seeds)
        found.restore(self.state())
        return found

    @abstractmethod
    def passes(self) -> Passes:
        """Return the network of a single run as a function under autograd."""

    @abstractmethod
    def _of_seeds(self, seeds: Sequence[int]) -> Self:
        """Return a learner of the same kind for other runs."""

    @abstractmethod
    def _take_statistics(self, whole: Self, runs: Sequence[int]) -> None:
        """Copy the state other than parameters from some runs of another learner."""

    def begin_anew(self, task: int) -> None:
        """Draw new initial parameters, from a stream of the run's seed and a task, and reset the optimiser.

        Task 0 gives the same initial parameters as the beginning of the run.
        """
        self._draw_parameters(task)
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
