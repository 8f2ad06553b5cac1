"""What can keep Ray from starting on this machine, found before it starts and said in one sentence."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import UsageError

_ROOM_FOR_RAY = 32 * 2**20
_ROOM_FOR_OBJECTS = 256 * 2**20
"""For what passes between the processes, beside the frames."""


def object_store_bytes(frames: Mapping[DataKey, FrameSet]) -> int:
    """Return the size of the object store that a sweep over these frames needs."""
    return sum(frame_set.frames.nbytes for frame_set in frames.values()) + _ROOM_FOR_OBJECTS


def check_ray_can_start(frames: Mapping[DataKey, FrameSet]) -> None:
    """See whether Ray can start here; where it cannot, it only waits for its own processes until it gives up.

    Raises:
        UsageError: the temporary folder, a limit on file sizes or a setting of Python is in the way.
    """
    _check_temporary_folder()
    _check_file_size(object_store_bytes(frames))
    if sys.flags.optimize > 1:
        raise UsageError("PYTHONOPTIMIZE=2 (python -OO): Ray cannot start without docstrings; unset it, or set it to 1")


def _check_temporary_folder() -> None:
    """Ray's processes meet over files."""
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


def _check_file_size(object_store: int) -> None:
    """Ray's object store is a file that is mapped into memory."""
    limit = _limit("RLIMIT_FSIZE")
    if limit is not None and limit < object_store:
        raise UsageError(
            f"file-size limit (ulimit -f): {_in_words(limit)}, and Ray needs a file of {_in_words(object_store)} here; "
            "raise the limit"
        )


def memory_limit_in_words() -> str:
    """Return a hint that the memory of this process is limited; an empty one where it is not."""
    limit = _limit("RLIMIT_AS")
    return "" if limit is None else f"; virtual memory is limited to {_in_words(limit)} here (ulimit -v): raise that"


def _limit(name: str) -> int | None:
    """Return a limit in bytes; None where the system has none."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(getattr(resource, name))
    return None if soft == resource.RLIM_INFINITY else soft


def _in_words(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"
