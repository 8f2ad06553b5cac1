"""Learner: S networks with their optimiser. One training step, evaluation, Monte-Carlo passes: nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import torch

from clops_sweep.data.scenarios import LossKind
from clops_sweep.learning import dropout, losses
from clops_sweep.learning.adam import Adam
from clops_sweep.learning.batches import Batch, Epoch, EpochBatch, Instances, Replay
from clops_sweep.learning.beta import TaskInstanceParameters
from clops_sweep.learning.captured import CapturedSteps
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.gradient import Trace
from clops_sweep.learning.network import Folded, Parameters, RunningStatistics
from clops_sweep.learning.recorded import RecordedSteps

_CHUNK, _CHUNK_ON_A_GPU = 240, 1 << 14
"""Instances times samples times runs that are computed at a time: on a CPU as many as stay in a core's cache."""


class Learner:
    """The networks of S runs, trained in lockstep.

    On a GPU all S networks are computed together. On a CPU, where that gains nothing, they are computed one after
    another, so that a run's numbers are bit for bit those it has when it is alone.

    Args:
        seeds: one a run; the initial parameters follow from it.
        kind: kind of output.
        outputs: C.
        learning_rate: of Adam.
        bank: where rows become frames.
        together: whether all networks are computed together; by default on a GPU.
    """

    backend = "torch"
    """What computes, as recorded with every run."""

    _in_torch = True
    """Whether steps are PyTorch operations and nothing else."""

    def __init__(
        self,
        seeds: Sequence[int],
        kind: LossKind,
        outputs: int,
        learning_rate: float,
        bank: FrameBank,
        *,
        together: bool | None = None,
    ) -> None:
        self.kind = kind
        self.bank = bank
        self._outputs = outputs
        self._learning_rate = learning_rate
        self._excerpts: dict[tuple[int, ...], Learner] = {}
        self.parameters = Parameters.initial(seeds, outputs, bank.device)
        self.statistics = RunningStatistics.initial(len(seeds), bank.device)
        self.optimizer = Adam(self.parameters.flat, learning_rate)
        self._gradient = Parameters.over(torch.zeros_like(self.parameters.flat), len(seeds), outputs)
        self._epoch: Epoch | None = None
        self._beta: TaskInstanceParameters | None = None
        self._forget_steps()
        size = len(seeds) if (bank.device.type != "cpu" if together is None else together) else 1
        self._groups = [
            _Group(self.parameters, self.statistics, self._gradient, first, first + size)
            for first in range(0, len(seeds), size)
        ]

    def gradient(
        self, batch: Batch, dropout_keys: torch.Tensor, *, track_statistics: bool = True
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Loss and gradient of a batch in training mode: batch statistics, dropout on.

        Args:
            batch: the instances and their weights.
            dropout_keys: int32 [S, 2].
            track_statistics: whether the running statistics take in this batch.

        Returns:
            Unweighted losses l_i, float32 [S, B], and the gradient of sum_i weights_i l_i, laid out like
            `parameters.flat`; the next gradient overwrites it.
        """
        statistics = [group.statistics if track_statistics else None for group in self._groups]
        parts = [
            self._differentiate(group, batch, dropout_keys, of_group, batch_statistics=True)
            for group, of_group in zip(self._groups, statistics, strict=True)
        ]
        return torch.cat(parts), self._gradient.flat

    def memory_gradient(self, batch: Batch, dropout_keys: torch.Tensor) -> torch.Tensor:
        """The gradient of sum_i weights_i l_i with dropout on and batch norm in evaluation mode; else as `gradient`."""
        for group in self._groups:
            self._differentiate(group, batch, dropout_keys, group.statistics, batch_statistics=False)
        return self._gradient.flat

    def _differentiate(
        self,
        group: _Group,
        batch: Batch,
        dropout_keys: torch.Tensor,
        statistics: RunningStatistics | None,
        *,
        batch_statistics: bool,
    ) -> torch.Tensor:
        """Leaves the gradient in the group's share of `_gradient`; returns the losses, float32 [S of group, B]."""
        frames = self.bank.gather(batch.rows[group.runs].T)
        masks = dropout.masks(dropout_keys[group.runs], batch.draws)
        targets, weights = batch.targets[group.runs], batch.weights[group.runs, :, None]
        trace = Trace.of(group.views, statistics, frames, masks, batch_statistics=batch_statistics)
        trace.gradient(weights * losses.loss_gradient(self.kind, trace.logits, targets), into=group.gradients)
        return losses.instance_losses(self.kind, trace.logits, targets)

    def announce(self, steps: int) -> None:
        """Says how many steps come next, before the first of them is taken."""
        self.optimizer.prepare(steps)

    def apply(self, gradient: torch.Tensor) -> None:
        """One announced Adam step along a gradient that is laid out like `parameters.flat`."""
        self.optimizer.step(gradient)

    def train_step(self, batch: Batch, dropout_keys: torch.Tensor) -> torch.Tensor:
        """One announced Adam step on a batch; returns the losses l_i, float32 [S, B]."""
        instance_losses, gradient = self.gradient(batch, dropout_keys)
        self.apply(gradient)
        return instance_losses

    def begin_epoch(
        self, task: Instances, replay: Replay | None, order: torch.Tensor, batch_size: int, dropout_keys: torch.Tensor
    ) -> Epoch:
        """An epoch on a task, with its dropout keys kept as "dropout keys"; arguments as in `train_epoch`."""
        replayed = 0 if replay is None else replay.instances.rows.shape[1]
        epoch = self._epoch
        if epoch is None or epoch.task is not task or (epoch.replayed, epoch.batch_size) != (replayed, batch_size):
            epoch = self._epoch = Epoch(task, replayed, batch_size)
            self._forget_steps()
        epoch.load(replay, order)
        epoch.keep("dropout keys", dropout_keys)
        return epoch

    def run_epoch(self, epoch: Epoch, step: Callable[[EpochBatch, int], None], phases: int = 1) -> None:
        """Takes a step on each batch of an epoch.

        On a GPU a step is captured and replayed (see `CapturedSteps`), so it may look at no tensor's values from the
        host and keep nothing but what it writes into memory that was there before.

        Args:
            epoch: as `begin_epoch` returned it.
            step: called with a batch and its number modulo `phases`; the latter, and the size of the batch, are all
                that may decide what it does.
            phases: after how many batches steps are alike again.
        """
        self._take_steps(epoch, step, phases, self._captured)

    def _forget_steps(self) -> None:
        """Before steps that read and write other memory than those before them."""
        self._captured = CapturedSteps(self.bank.device)
        recorded = self._in_torch and self.bank.device.type == "cpu"
        self._repeated: CapturedSteps | RecordedSteps = RecordedSteps() if recorded else self._captured

    def _take_steps(
        self,
        epoch: Epoch,
        step: Callable[[EpochBatch, int], None],
        phases: int,
        call: CapturedSteps | RecordedSteps,
    ) -> None:
        self.announce(len(epoch.sizes))
        for number, size in enumerate(epoch.sizes):
            phase = number % phases

            def next_step(size: int = size, phase: int = phase) -> None:
                step(epoch.next(size), phase)

            call((size, phase), next_step)

    def train_epoch(
        self,
        task: Instances,
        replay: Replay | None,
        order: torch.Tensor,
        batch_size: int,
        dropout_keys: torch.Tensor,
        beta: TaskInstanceParameters | None = None,
    ) -> None:
        """One step on each batch of an epoch, captured on a GPU and recorded on a CPU.

        Args:
            task: the current task's instances.
            replay: instances to go with them, if any.
            order: int64 [S, n + m], the order of the union (see `Epoch.load`).
            batch_size: B.
            dropout_keys: int32 [S, 2].
            beta: weighs the losses of the current instances, and is itself trained on them, if given.
        """
        if beta is not self._beta:
            self._beta, self._epoch = beta, None
        epoch = self.begin_epoch(task, replay, order, batch_size, dropout_keys)
        if beta is not None:
            beta.optimizer.prepare(len(epoch.sizes))

        def step(batch: EpochBatch, phase: int) -> None:
            del phase
            plain = batch.plain()
            if beta is not None:
                plain = replace(plain, weights=beta.weighted(batch))
            instance_losses = self.train_step(plain, epoch.kept("dropout keys"))
            if beta is not None:
                beta.step(batch, instance_losses)

        self._take_steps(epoch, step, 1, self._repeated)

    @torch.no_grad()
    def logits(
        self, rows: torch.Tensor, *, noise: torch.Tensor | None = None, shift: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Evaluation mode, no dropout. Row sets may differ between runs.

        Args:
            rows: int64 [S, m].
            noise: float32 [S, m, 2500], added to the frames.
            shift: laid out like `parameters.flat`, added to the parameters for this call only.

        Returns:
            float32 [S, m, C].
        """
        parameters = self.parameters if shift is None else self.parameters.like(self.parameters.flat + shift)
        parts = []
        for group in self._groups:
            folded = Folded.of(parameters.of_runs(group.runs.start, group.runs.stop), group.statistics)
            frames = self._chunks(group, rows, noise, self._chunk(group) // 2)
            parts.append(torch.cat([folded.logits(chunk) for chunk in frames], dim=1))
        return torch.cat(parts)

    def losses(self, rows: torch.Tensor, targets: torch.Tensor, *, shift: torch.Tensor | None = None) -> torch.Tensor:
        """Losses l_i in evaluation mode, float32 [S, m]; arguments as in `logits`, targets float32 [S, m, C]."""
        return losses.instance_losses(self.kind, self.logits(rows, shift=shift), targets)

    def probabilities(self, rows: torch.Tensor, *, noise: torch.Tensor | None = None) -> torch.Tensor:
        """Predictions in evaluation mode, float32 [S, m, C]; arguments as in `logits`."""
        return losses.probabilities(self.kind, self.logits(rows, noise=noise))

    @torch.no_grad()
    def dropout_probabilities(
        self, rows: torch.Tensor, samples: int, dropout_keys: torch.Tensor, *, noise: torch.Tensor | None = None
    ) -> torch.Tensor:
        """T predictions of each instance with dropout on and batch norm in evaluation mode.

        Leaves parameters, running statistics, optimiser and every other random stream untouched.

        Args:
            rows: int64 [S, m].
            samples: T.
            dropout_keys: int32 [S, 2]; the mask of sample t of the instance at position i has the counter i T + t.
            noise: float32 [S, m, 2500], added to the frames, the same for all T.

        Returns:
            float32 [S, m, T, C].
        """
        return torch.cat(
            [
                torch.cat(list(self._passes(group, rows, samples, dropout_keys[group.runs], noise)), dim=1)
                for group in self._groups
            ]
        )

    def _passes(
        self,
        group: _Group,
        rows: torch.Tensor,
        samples: int,
        dropout_keys: torch.Tensor,
        noise: torch.Tensor | None,
    ) -> Iterator[torch.Tensor]:
        folded = Folded.of(group.views, group.statistics)
        first_draw = 0
        for frames in self._chunks(group, rows, noise, max(1, self._chunk(group) // samples)):
            count = len(frames)
            draws = torch.arange(first_draw, first_draw + count * samples, device=rows.device)
            first_draw += count * samples
            logits = folded.sampled_logits(frames, dropout.masks(dropout_keys, draws))
            yield losses.probabilities(self.kind, logits).unflatten(1, (count, samples))

    def _chunk(self, group: _Group) -> int:
        """Passes of each run of a group that are computed at a time."""
        passes = _CHUNK if self.bank.device.type == "cpu" else _CHUNK_ON_A_GPU
        return max(2, passes // (group.runs.stop - group.runs.start))

    def _chunks(
        self, group: _Group, rows: torch.Tensor, noise: torch.Tensor | None, size: int
    ) -> Iterator[torch.Tensor]:
        """The frames of a group's runs, [B, S of group, 2500] at a time."""
        for start in range(0, rows.shape[1], size):
            frames = self.bank.gather(rows[group.runs, start : start + size].T)
            yield frames if noise is None else frames + noise[group.runs, start : start + size].transpose(0, 1)

    def excerpt(self, runs: Sequence[int]) -> Learner:
        """The networks of some of the runs as they are now, to be asked and not to be trained."""
        places = tuple(runs)
        if places == tuple(range(self.parameters.runs)):
            return self
        if places not in self._excerpts:
            self._excerpts[places] = self._of_size(len(places))
        part = self._excerpts[places]
        for name, view in self.parameters.views.items():
            part.parameters.views[name].copy_(view[runs])
        for mine, whole in zip(part.statistics.tensors(), self.statistics.tensors(), strict=True):
            mine.copy_(whole.view(self.parameters.runs, -1)[runs].flatten())
        return part

    def _of_size(self, runs: int) -> Self:
        """A learner of the same kind for another number of runs."""
        return type(self)([0] * runs, self.kind, self._outputs, self._learning_rate, self.bank)

    def state(self) -> dict[str, Any]:
        """Everything that training changes, as tensors and numbers."""
        return {
            "parameters": self.parameters.flat,
            "statistics": self.statistics.tensors(),
            "optimizer": self.optimizer.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Takes up a state that `state` returned."""
        self.parameters.flat.copy_(state["parameters"])
        for tensor, value in zip(self.statistics.tensors(), state["statistics"], strict=True):
            tensor.copy_(value)
        self.optimizer.restore(state["optimizer"])


class _Group:
    """Networks that are computed together: their share of parameters, statistics and gradient."""

    def __init__(
        self, parameters: Parameters, statistics: RunningStatistics, gradient: Parameters, first: int, last: int
    ) -> None:
        self.runs = slice(first, last)
        self.statistics = statistics.of_runs(first, last)
        self.views = parameters.of_runs(first, last)
        self.gradients = gradient.of_runs(first, last)
