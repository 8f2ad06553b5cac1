"""Checks that Ray can start on this machine, with one sentence per problem."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import UsageError

_ROOM_FOR_RAY = 32 * 2**20
_ROOM_FOR_OBJECTS = 256 * 2**20
"""Bytes for messages between processes, in addition to the frames."""


def object_store_bytes(frames: Mapping[DataKey, FrameSet]) -> int:
    """Return the size of the object store that a sweep over these frames needs."""
    return sum(frame_set.frames.nbytes for frame_set in frames.values()) + _ROOM_FOR_OBJECTS


def check_ray_can_start() -> None:
    """Check that Ray can start here: its processes use files to connect, and without them it waits until a timeout.

    Raises:
        UsageError: the temporary folder cannot be written to, or has no room.
    """
    name = next((name for name in ("RAY_TMPDIR", "TMPDIR") if name in os.environ), "TMPDIR")
    folder = Path(os.environ.get(name, "/tmp"))
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(2**16))
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise UsageError(
            f"temporary folder {folder}: cannot be written to ({error.strerror}), and Ray needs it; set {name} to a "
            "folder that can be"
        ) from None
    if free < _ROOM_FOR_RAY:
        raise UsageError(
            f"temporary folder {folder}: {free / 2**20:.0f} MiB are free, and Ray needs {_ROOM_FOR_RAY >> 20}; free "
            f"some, or set {name} to a folder on another disk"
        )
