"""Checkpoints of unfinished runs: tensors, numbers and text in one file each, written whole or not at all."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch


class CheckpointFile:
    """The checkpoint of the runs of one lockstep.

    Args:
        folder: where checkpoints lie; made on demand.
        run_ids: the runs, in lockstep order.
    """

    def __init__(self, folder: Path, run_ids: Sequence[str]) -> None:
        name = run_ids[0] if len(run_ids) == 1 else hashlib.sha256("-".join(run_ids).encode()).hexdigest()[:32]
        self.path = folder / f"{name}.pt"

    def save(self, state: dict[str, Any]) -> None:
        """Replaces the checkpoint."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}")
        # Through memory: a disk that is full then shows as an OSError that names the file.
        buffer = io.BytesIO()
        torch.save(state, buffer)
        try:
            temporary.write_bytes(buffer.getbuffer())
            os.replace(temporary, self.path)
        except OSError as error:  # a full disk does not say which file it had no room for
            raise OSError(error.errno, error.strerror, str(self.path)) from None
        finally:
            temporary.unlink(missing_ok=True)

    def load(self) -> dict[str, Any] | None:
        """The saved state; None where there is none, or none that can be read (the run then starts afresh)."""
        try:
            # Data only: nothing a checkpoint holds is ever executed.
            state: dict[str, Any] = torch.load(self.path, map_location="cpu", weights_only=True)
        except FileNotFoundError:
            return None
        except (OSError, RuntimeError, EOFError, pickle.UnpicklingError):
            return None
        return state

    def delete(self) -> None:
        """Removes the checkpoint of runs that are finished."""
        self.path.unlink(missing_ok=True)
