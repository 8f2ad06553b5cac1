"""Learner: S networks with their optimiser. One training step, evaluation, Monte-Carlo passes: nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from clops_sweep.data.scenarios import LossKind
from clops_sweep.learning import dropout, losses
from clops_sweep.learning.adam import Adam
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.network import Folded, Parameters, RunningStatistics, training_logits

_EVALUATION_CHUNK = 64
_PASSES_CHUNK = 160  # frames times samples whose activations stay in a core's cache


@dataclass(frozen=True)
class Batch:
    """One training batch of S runs.

    Attributes:
        rows: int64 [S, B], rows of the frame bank.
        targets: float32 [S, B, C].
        weights: float32 [S, B]; the loss is sum_i weights_i l_i.
        draws: int64 [B], counters of the dropout masks.
    """

    rows: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor
    draws: torch.Tensor


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
    """

    def __init__(
        self, seeds: Sequence[int], kind: LossKind, outputs: int, learning_rate: float, bank: FrameBank
    ) -> None:
        self.kind = kind
        self.bank = bank
        self.parameters = Parameters.initial(seeds, outputs, bank.device)
        self.statistics = RunningStatistics.initial(len(seeds), bank.device)
        self.optimizer = Adam(self.parameters.flat, learning_rate)
        self._gradient = Parameters.over(torch.zeros_like(self.parameters.flat), len(seeds), outputs)
        together = len(seeds) if bank.device.type == "cuda" else 1
        self._groups = [
            _Group(self.parameters, self.statistics, self._gradient, first, first + together)
            for first in range(0, len(seeds), together)
        ]

    def gradient(self, batch: Batch, dropout_keys: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Loss and gradient of a batch in training mode: batch statistics (running ones updated), dropout on.

        Args:
            batch: the instances and their weights.
            dropout_keys: int32 [S, 2].

        Returns:
            Unweighted losses l_i, float32 [S, B], and the gradient of sum_i weights_i l_i, laid out like
            `parameters.flat`; the next call overwrites it.
        """
        instance_losses = []
        for group in self._groups:
            runs = group.runs
            frames = self.bank.gather(batch.rows[runs].T)
            masks = dropout.masks(dropout_keys[runs], batch.draws)
            logits = training_logits(group.leaves, group.statistics, frames, masks)
            group_losses = losses.instance_losses(self.kind, logits, batch.targets[runs])
            group.differentiate((batch.weights[runs] * group_losses).sum())
            instance_losses.append(group_losses.detach())
        return torch.cat(instance_losses), self._gradient.flat

    def train_step(self, batch: Batch, dropout_keys: torch.Tensor) -> torch.Tensor:
        """One Adam step on a batch; returns the losses l_i, float32 [S, B]."""
        instance_losses, gradient = self.gradient(batch, dropout_keys)
        self.optimizer.step(gradient)
        return instance_losses

    @torch.no_grad()
    def logits(self, rows: torch.Tensor) -> torch.Tensor:
        """Evaluation mode, no dropout. Row sets may differ between runs.

        Args:
            rows: int64 [S, m].

        Returns:
            float32 [S, m, C].
        """
        return torch.cat([self._group_logits(group, rows[group.runs]) for group in self._groups])

    def _group_logits(self, group: _Group, rows: torch.Tensor) -> torch.Tensor:
        folded = group.folded()
        chunks = rows.split(_EVALUATION_CHUNK, dim=1)
        return torch.cat([folded.logits(self.bank.gather(chunk.T)) for chunk in chunks], dim=1)

    @torch.no_grad()
    def dropout_probabilities(self, rows: torch.Tensor, samples: int, dropout_keys: torch.Tensor) -> torch.Tensor:
        """T predictions of each instance with dropout on and batch norm in evaluation mode.

        Leaves parameters, running statistics, optimiser and every other random stream untouched.

        Args:
            rows: int64 [S, m].
            samples: T.
            dropout_keys: int32 [S, 2]; the mask of sample t of the instance at position i has the counter i T + t.

        Returns:
            float32 [S, m, T, C].
        """
        return torch.cat(
            [
                torch.cat(
                    list(self._passes(group.folded(), rows[group.runs], samples, dropout_keys[group.runs])), dim=1
                )
                for group in self._groups
            ]
        )

    def _passes(
        self, folded: Folded, rows: torch.Tensor, samples: int, dropout_keys: torch.Tensor
    ) -> Iterator[torch.Tensor]:
        chunk = max(1, _PASSES_CHUNK // samples)
        for start in range(0, rows.shape[1], chunk):
            part = rows[:, start : start + chunk]
            count = part.shape[1]
            first = folded.block(1, self.bank.gather(part.T)).repeat_interleave(samples, dim=0)
            draws = torch.arange(start * samples, (start + count) * samples, device=rows.device)
            logits = folded.logits_after_first_block(first, dropout.masks(dropout_keys, draws))
            yield losses.probabilities(self.kind, logits).unflatten(1, (count, samples))

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
        self._views = parameters.of_runs(first, last)
        self._gradients = gradient.of_runs(first, last)
        # Views that share the parameters' memory and collect gradients of their own.
        self.leaves = {name: view.detach().requires_grad_() for name, view in self._views.items()}

    def folded(self) -> Folded:
        return Folded.of(self._views, self.statistics)

    def differentiate(self, loss: torch.Tensor) -> None:
        """Writes the gradient of a loss; runs share no parameter, so a sum over runs keeps them apart."""
        gradients = torch.autograd.grad(loss, list(self.leaves.values()), allow_unused=True, materialize_grads=True)
        for target, gradient in zip(self._gradients.values(), gradients, strict=True):
            target.copy_(gradient)
