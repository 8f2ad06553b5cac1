"""Checkpoints of unfinished runs: tensors, numbers and text in one file each, written atomically.

A run's id is the hash of everything that its numbers depend on, so the id in a checkpoint identifies its run.
"""

from __future__ import annotations

import hashlib
import io
from typing import Any

import torch

from clops_sweep.store.run_store import RunStore

_RUN_ID = "run_id"
_DIGEST = hashlib.sha256().digest_size


def with_digest(content: bytes) -> bytes:
    """Append the SHA-256 to what PyTorch saved: PyTorch verifies nothing and ignores trailing bytes."""
    return content + hashlib.sha256(content).digest()


class CheckpointFile:
    """The checkpoint of a run. It is kept in the store, so that every machine finds it.

    Args:
        store: the store.
        run_id: id of the run.

    Attributes:
        may_exist: whether the file may exist.
    """

    def __init__(self, store: RunStore, run_id: str) -> None:
        self._files = store.files
        self._run_id = run_id
        self.path = store.checkpoint_path(run_id)
        self.may_exist = True

    def save(self, state: dict[str, Any]) -> None:
        """Write the checkpoint, replacing an older one."""
        buffer = io.BytesIO()
        torch.save({_RUN_ID: self._run_id, **state}, buffer)
        self._files.write(self.path, with_digest(buffer.getvalue()))
        self.may_exist = True

    def load(self) -> dict[str, Any] | None:
        """Return the saved state; None without a checkpoint, or if it is damaged: the run starts from the beginning.

        Raises:
            OSError: it cannot be read now, such as while an object store does not answer; the progress is not given up.
            UnreadableFile: it is no regular file.
        """
        try:
            content = self._files.read(self.path).to_pybytes()
        except FileNotFoundError:
            self.may_exist = False
            return None
        if content != with_digest(content[:-_DIGEST]):
            return None
        try:
            # Data only: nothing in a checkpoint is ever executed.
            state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        except Exception:  # the unpickler raises errors of every kind on a damaged or foreign file
            return None
        return state if isinstance(state, dict) and state.pop(_RUN_ID, None) == self._run_id else None
