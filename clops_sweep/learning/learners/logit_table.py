"""Logits that go from step to step: each step of an epoch is pulled towards some, and leaves its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from clops_sweep.learning.batches import Epoch, EpochBatch

READ, WRITTEN, PULL = "logits read", "logits written", "pull to logits"
"""Under which an epoch keeps places in a table, int64 [steps, S B], and how much the logits there pull, float32
[steps, S B]; by runs, those of a smaller batch first."""


@dataclass(frozen=True)
class LogitTable:
    """A table of logits and the epoch that keeps, for each instance of its batches, which are read and written.

    The loss of a step has pull_i / 2 |z_i - read_i|^2 beside all else, summed over its batch.

    Attributes:
        values: float32 [places, C]; of several instances with the same place it is not said whose logits stay.
        epoch: whose steps read it, before they write it.
    """

    values: torch.Tensor
    epoch: Epoch

    def needed(self, batch: EpochBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """What a step finds there, [S, B, C], and how much it pulls, [S, B, 1]."""
        read = self.values.index_select(0, self._kept(READ, batch)).view(*batch.rows.shape, -1)
        return read, self._kept(PULL, batch).view(*batch.rows.shape, 1)

    def write(self, batch: EpochBatch, logits: torch.Tensor) -> None:
        """What it leaves, [S, B, C]."""
        self.values.index_copy_(0, self._kept(WRITTEN, batch), logits.flatten(0, 1))

    def _kept(self, name: str, batch: EpochBatch) -> torch.Tensor:
        return self.epoch.kept_for(name, batch)[: batch.rows.numel()]


def pulled(
    by_logits: Callable[..., torch.Tensor],
    logits: torch.Tensor,
    read: torch.Tensor,
    pull: torch.Tensor,
    *given: torch.Tensor,
) -> torch.Tensor:
    """A gradient by logits, to which that of the pull is added."""
    return by_logits(logits, *given) + pull * (logits - read)
