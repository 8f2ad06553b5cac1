"""Logits passed from step to step: each step of an epoch is pulled towards stored logits, and stores its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from clops_sweep.learning.batches import Epoch, EpochBatch

READ, WRITTEN, PULL = "logits read", "logits written", "pull to logits"
"""Names under which an epoch keeps indices into a table, int64 [steps, B], and the weights of the pull, float32
[steps, B]; a smaller batch fills the first entries of each row."""


@dataclass(frozen=True)
class LogitTable:
    """Table of logits, and the epoch that keeps, for each instance of its batches, the entries to read and write.

    The term pull_i / 2 |z_i - read_i|^2, summed over the batch, is added to the loss of a step.

    Attributes:
        values: float32 [places, C]; if several instances write the same place, any one of them may win.
        epoch: the epoch whose steps read the table and then write it.
    """

    values: torch.Tensor
    epoch: Epoch

    def read(self, batch: EpochBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the logits that a step reads, [B, C], and the weights of the pull, [B, 1]."""
        logits = self.values.index_select(0, self._kept(READ, batch))
        pull = self._kept(PULL, batch)[:, None]
        return logits, pull

    def write(self, batch: EpochBatch, logits: torch.Tensor) -> None:
        """Write the logits of a step, [B, C]."""
        self.values.index_copy_(0, self._kept(WRITTEN, batch), logits)

    def _kept(self, name: str, batch: EpochBatch) -> torch.Tensor:
        return self.epoch.kept_for(name, batch)[: len(batch.rows)]


def pulled(
    by_logits: Callable[..., torch.Tensor],
    logits: torch.Tensor,
    read: torch.Tensor,
    pull: torch.Tensor,
    *given: torch.Tensor,
) -> torch.Tensor:
    """Return a gradient with respect to the logits that includes the gradient of the pull."""
    return by_logits(logits, *given) + pull * (logits - read)
