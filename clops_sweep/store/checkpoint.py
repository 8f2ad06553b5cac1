"""Checkpoints of unfinished runs: tensors, numbers and text in one file each, written whole or not at all.

A run's id is the hash of all that its numbers depend on, so the ids in a checkpoint say whose it is.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Sequence
from typing import Any

import torch

from clops_sweep.store.run_store import RunStore

_RUN_IDS = "run_ids"
_DIGEST = hashlib.sha256().digest_size


def sealed(content: bytes) -> bytes:
    """What PyTorch has saved with its SHA-256 behind it, where PyTorch does not look: it checks nothing by itself."""
    return content + hashlib.sha256(content).digest()


class CheckpointFile:
    """The checkpoint of the runs of one lockstep. It lies where the results do, so that every machine finds it.

    Args:
        store: the store.
        run_ids: the runs, in lockstep order.
    """

    def __init__(self, store: RunStore, run_ids: Sequence[str]) -> None:
        self._files = store.files
        self._run_ids = list(run_ids)
        self.path = store.checkpoint_path(run_ids)
        self._absent = False

    def save(self, state: dict[str, Any]) -> None:
        """Replaces the checkpoint."""
        buffer = io.BytesIO()
        torch.save({_RUN_IDS: self._run_ids, **state}, buffer)
        self._files.write(self.path, sealed(buffer.getvalue()))
        self._absent = False

    def load(self) -> dict[str, Any] | None:
        """Return the saved state; None if these runs have none that can be read, so that they start afresh."""
        try:
            try:
                content = self._files.read(self.path).to_pybytes()
            except FileNotFoundError:
                self._absent = True
                return None
            if content != sealed(content[:-_DIGEST]):
                return None
            # Data only: nothing a checkpoint holds is ever executed.
            state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError):
            return None
        return state if isinstance(state, dict) and state.pop(_RUN_IDS, None) == self._run_ids else None

    def delete(self) -> None:
        """Removes the checkpoint of runs that are finished; where that takes requests, if there can be one."""
        if self._files.local or not self._absent:
            self._files.delete([self.path])
