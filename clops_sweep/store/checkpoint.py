"""Checkpoints of unfinished runs: tensors, numbers and text in one file each, written whole or not at all.

A run's id is the hash of all that its numbers depend on, so the ids in a checkpoint say whose it is.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import zipfile
from collections.abc import Sequence
from typing import Any

import torch

from clops_sweep.store.checkpoint_path import checkpoint_path
from clops_sweep.store.files import Files

_RUN_IDS = "run_ids"
_DIGEST = hashlib.sha256().digest_size


class ForeignCheckpoint(Exception):
    """A checkpoint that lies where a run's should, and is not of that run; the message says so in a sentence."""


def sealed(content: bytes) -> bytes:
    """What PyTorch has saved with its SHA-256 behind it, where PyTorch does not look: it checks nothing by itself."""
    return content + hashlib.sha256(content).digest()


def _is_compressed(content: bytes) -> bool:
    """Whether loading a file would take more memory than the file has bytes. PyTorch never compresses what it saves.

    Raises:
        BadZipFile: the file is not what PyTorch saves.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return sum(entry.file_size for entry in file.infolist()) > len(content)


class CheckpointFile:
    """The checkpoint of the runs of one lockstep. It lies where the results do, so that every machine finds it.

    Args:
        files: the store's.
        folder: where checkpoints lie, in there; made on demand.
        run_ids: the runs, in lockstep order.
    """

    def __init__(self, files: Files, folder: str, run_ids: Sequence[str]) -> None:
        self._files = files
        self._run_ids = list(run_ids)
        self.path = checkpoint_path(folder, run_ids)
        self._absent = False

    def save(self, state: dict[str, Any]) -> None:
        """Replaces the checkpoint."""
        buffer = io.BytesIO()
        torch.save({_RUN_IDS: self._run_ids, **state}, buffer)
        self._files.write(self.path, sealed(buffer.getvalue()))
        self._absent = False

    def load(self) -> dict[str, Any] | None:
        """The saved state; None where there is none, or none that can be read (the run then starts afresh).

        Raises:
            ForeignCheckpoint: it is another run's. It has been set aside, and the run starts afresh as well.
        """
        try:
            try:
                content = self._files.read(self.path).to_pybytes()
            except FileNotFoundError:
                self._absent = True
                return None
            if content != sealed(content[:-_DIGEST]) or _is_compressed(content):
                return None
            # Data only: nothing a checkpoint holds is ever executed.
            state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError, zipfile.BadZipFile):
            return None
        if not isinstance(state, dict) or state.pop(_RUN_IDS, None) != self._run_ids:
            aside = f"{self.path}.foreign"
            self._files.move(self.path, aside)
            raise ForeignCheckpoint(
                f"{self.path}: is the checkpoint of another run; it was set aside as {aside}, and the run starts anew"
            )
        return state

    def delete(self) -> None:
        """Removes the checkpoint of runs that are finished; where that takes requests, if there can be one."""
        if self._files.local or not self._absent:
            self._files.delete([self.path])
