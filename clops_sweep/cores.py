"""How many cores this process may use."""

from __future__ import annotations

import os


def available_cores() -> int:
    """The cores that the process may run on, which a container or `taskset` may have made fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
