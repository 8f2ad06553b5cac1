"""How many cores this process may use."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from pathlib import Path

_LIMITS = Path("/sys/fs/cgroup")


def available_cores(limits: Path = _LIMITS) -> int:
    """The cores that the process may keep busy, which `taskset`, a batch system or a container may have made fewer.

    Args:
        limits: where Linux tells what a container may take.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _quota(limits)))


def _quota(limits: Path) -> int:
    """The cores that a container may keep busy, by the second version of control groups or the first."""
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        with contextlib.suppress(OSError, ValueError):  # no such file, or no limit: "max", -1
            quota, period = (int(word) for name in files for word in (limits / name).read_text().split())
            if quota > 0 and period > 0:
                return math.ceil(quota / period)
    return sys.maxsize
