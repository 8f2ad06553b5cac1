"""Checkpoints of unfinished runs: tensors, numbers and text in one file each, written whole or not at all."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Sequence
from typing import Any

import torch

from clops_sweep.store.files import Files


class CheckpointFile:
    """The checkpoint of the runs of one lockstep. It lies where the results do, so that every machine finds it.

    Args:
        files: the store's.
        folder: where checkpoints lie, in there; made on demand.
        run_ids: the runs, in lockstep order.
    """

    def __init__(self, files: Files, folder: str, run_ids: Sequence[str]) -> None:
        name = run_ids[0] if len(run_ids) == 1 else hashlib.sha256("-".join(run_ids).encode()).hexdigest()[:32]
        self._files = files
        self.path = f"{folder}/{name}.pt"

    def save(self, state: dict[str, Any]) -> None:
        """Replaces the checkpoint."""
        buffer = io.BytesIO()
        torch.save(state, buffer)
        self._files.write(self.path, buffer.getvalue())

    def load(self) -> dict[str, Any] | None:
        """The saved state; None where there is none, or none that can be read (the run then starts afresh)."""
        try:
            content = self._files.read(self.path).to_pybytes()
            # Data only: nothing a checkpoint holds is ever executed.
            state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError):
            return None
        return state

    def delete(self) -> None:
        """Removes the checkpoint of runs that are finished."""
        self._files.delete([self.path])
