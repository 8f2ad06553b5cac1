"""Where the checkpoint of runs lies that are computed together; asking whether it is there needs no torch."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def checkpoint_path(folder: str, run_ids: Sequence[str]) -> str:
    """The file in a folder that is named after one run, or after all of a lockstep."""
    name = run_ids[0] if len(run_ids) == 1 else hashlib.sha256("-".join(run_ids).encode()).hexdigest()[:32]
    return f"{folder}/{name}.pt"
