"""PaperLearner: the paper's network in PyTorch operations, on a GPU all runs at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import torch

from clops_sweep.data.scenarios import LossKind
from clops_sweep.learning import dropout, losses
from clops_sweep.learning.batches import Batch
from clops_sweep.learning.captured import CapturedSteps
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.gradient import Trace
from clops_sweep.learning.learner import Learner
from clops_sweep.learning.network import Folded, RunningStatistics, initial_parameters
from clops_sweep.learning.parameters import Parameters
from clops_sweep.learning.recorded import RecordedSteps

_CHUNK, _CHUNK_ON_A_GPU = 240, 1 << 14
"""Instances times samples times runs that are computed at a time: on a CPU as many as stay in a core's cache."""


class PaperLearner(Learner):
    """The networks of S runs, trained in lockstep; frames are 1 x 2,500.

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
        super().__init__(seeds, kind, outputs, learning_rate, bank, initial_parameters(seeds, outputs, bank.device))
        self.statistics = RunningStatistics.initial(len(seeds), bank.device)
        size = len(seeds) if (bank.device.type != "cpu" if together is None else together) else 1
        self._groups = [
            _Group(self.parameters, self.statistics, self._gradient, first, first + size)
            for first in range(0, len(seeds), size)
        ]

    def gradient(
        self, batch: Batch, dropout_keys: torch.Tensor, *, track_statistics: bool = True
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As `Learner.gradient`."""
        statistics = [group.statistics if track_statistics else None for group in self._groups]
        parts = [
            self._differentiate(group, batch, dropout_keys, of_group, batch_statistics=True)
            for group, of_group in zip(self._groups, statistics, strict=True)
        ]
        return torch.cat(parts), self._gradient.flat

    def memory_gradient(self, batch: Batch, dropout_keys: torch.Tensor) -> torch.Tensor:
        """As `Learner.memory_gradient`."""
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
        traces = []
        for group in self._groups:
            frames = self.bank.gather(rows[group.runs].T)
            if dropout_keys is None or draws is None:
                masks = dropout.no_masks(frames.shape[1], rows.shape[1], rows.device)
            else:
                masks = dropout.masks(dropout_keys[group.runs], draws)
            statistics = group.statistics if track_statistics or not batch_statistics else None
            traces.append(Trace.of(group.views, statistics, frames, masks, batch_statistics=batch_statistics))
        logits = torch.cat([trace.logits for trace in traces])
        by = self._by_runs(by_logits)(logits, *given)
        for group, trace in zip(self._groups, traces, strict=True):
            trace.gradient(by[group.runs], into=group.gradients)
        return logits, self._gradient.flat

    def _forget_steps(self) -> None:
        """On a GPU steps are captured; on a CPU those of `train_epoch` are recorded, which are the same every time."""
        self._call = self._call_own = CapturedSteps(self.bank.device)
        if self._in_torch and self.bank.device.type == "cpu":
            self._call_own = RecordedSteps()

    @torch.no_grad()
    def logits(
        self, rows: torch.Tensor, *, noise: torch.Tensor | None = None, shift: torch.Tensor | None = None
    ) -> torch.Tensor:
        """As `Learner.logits`."""
        parameters = self.parameters if shift is None else self.parameters.like(self.parameters.flat + shift)
        parts = []
        for group in self._groups:
            folded = Folded.of(parameters.of_runs(group.runs.start, group.runs.stop), group.statistics)
            frames = self._chunks(group, rows, noise, self._chunk(group) // 2)
            parts.append(torch.cat([folded.logits(chunk) for chunk in frames], dim=1))
        return torch.cat(parts)

    @torch.no_grad()
    def dropout_probabilities(
        self, rows: torch.Tensor, samples: int, dropout_keys: torch.Tensor, *, noise: torch.Tensor | None = None
    ) -> torch.Tensor:
        """As `Learner.dropout_probabilities`; the mask of sample t of the instance at i has the counter i T + t."""
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

    def _of_seeds(self, seeds: Sequence[int]) -> Self:
        return type(self)(seeds, self.kind, self.outputs, self._learning_rate, self.bank)

    def _take_statistics(self, whole: Self, runs: Sequence[int]) -> None:
        for mine, theirs in zip(self.statistics.tensors(), whole.statistics.tensors(), strict=True):
            mine.copy_(theirs.view(whole.parameters.runs, -1)[list(runs)].flatten())

    def _draw_parameters(self, task: int) -> None:
        self.parameters.flat.copy_(initial_parameters(self.seeds, self.outputs, self.bank.device, task).flat)
        fresh = RunningStatistics.initial(self.parameters.runs, self.bank.device)
        for tensor, value in zip(self.statistics.tensors(), fresh.tensors(), strict=True):
            tensor.copy_(value)

    def state(self) -> dict[str, Any]:
        """As `Learner.state`."""
        return super().state() | {"statistics": self.statistics.tensors()}

    def restore(self, state: dict[str, Any]) -> None:
        """As `Learner.restore`."""
        super().restore(state)
        for tensor, value in zip(self.statistics.tensors(), state["statistics"], strict=True):
            tensor.copy_(value)


class _Group:
    """Networks that are computed together: their share of parameters, statistics and gradient."""

    def __init__(
        self, parameters: Parameters, statistics: RunningStatistics, gradient: Parameters, first: int, last: int
    ) -> None:
        self.runs = slice(first, last)
        self.statistics = statistics.of_runs(first, last)
        self.views = parameters.of_runs(first, last)
        self.gradients = gradient.of_runs(first, last)
