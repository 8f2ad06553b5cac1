"""Checks before Ray starts: that requested resources exist, and that Ray can start on this machine. Imports no Ray."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import UsageError, option
from clops_sweep.execution.jobs import Resources
from clops_sweep.machine import available_cores, check_gpu

SECONDS_OF_RAY = 8.0
"""Seconds that Ray takes to start on an idle machine."""

_ROOM_FOR_RAY = 32 * 2**20
_ROOM_FOR_OBJECTS = 256 * 2**20
"""Bytes for messages between processes, in addition to the frames."""


def check_resources(resources: Resources) -> None:
    """Check that the resources of a launch exist, as far as possible before Ray starts.

    Raises:
        UsageError: no cluster answers at the address; this machine has fewer CPUs, or no GPU that PyTorch can use.
    """
    if resources.address:
        from clops_sweep.execution.cluster.cluster_address import running_cluster  # with Ray

        running_cluster(resources.address)
    if resources.is_elsewhere:
        return  # an existing cluster checks this itself
    if resources.workers != "this process" and resources.cpus_per_trial > available_cores():
        raise UsageError(
            f"{option('cpus_per_trial', resources.cpus_per_trial)}: this machine has {available_cores()} for this "
            f"process; expected no more, or a cluster with {option('address')}"
        )
    if resources.gpus_per_trial:
        check_gpu(option("gpus_per_trial"), resources.gpus_per_trial)
    elif resources.device == "gpu":
        check_gpu(option("device", "gpu"))


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
