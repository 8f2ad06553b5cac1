"""Logits that go from step to step: each step of an epoch reads some, and leaves its own."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from clops_sweep.learning.batches import Epoch, EpochBatch

READ, WRITTEN = "logits read", "logits written"
"""Under which an epoch keeps places in a table: int64 [steps, S B], by runs; those of a smaller batch come first."""


@dataclass(frozen=True)
class LogitTable:
    """A table of logits and the epoch that keeps, for each instance of its batches, which are read and written.

    Attributes:
        values: float32 [places, C]; of several instances with the same place it is not said whose logits stay.
        epoch: whose steps read it, before their forward pass, and write it.
    """

    values: torch.Tensor
    epoch: Epoch

    def read(self, batch: EpochBatch) -> torch.Tensor:
        """What a step finds there: [S, B, C]."""
        return self.values.index_select(0, self._places(READ, batch)).view(*batch.rows.shape, -1)

    def write(self, batch: EpochBatch, logits: torch.Tensor) -> None:
        """What it leaves, [S, B, C]."""
        self.values.index_copy_(0, self._places(WRITTEN, batch), logits.flatten(0, 1))

    def _places(self, name: str, batch: EpochBatch) -> torch.Tensor:
        return self.epoch.kept_for(name, batch)[: batch.rows.numel()]
