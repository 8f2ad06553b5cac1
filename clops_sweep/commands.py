"""Command lines that are shown for the user to type."""

from __future__ import annotations

import shlex


def rerun_command(run_id: str, results: str, *, verify: bool = False) -> str:
    """The command line that repeats a run.

    Args:
        run_id: which run.
        results: the store that it is in, as `--results` takes it.
        verify: whether the numbers are to be compared with the stored ones.
    """
    return shlex.join(["clops-sweep", "rerun", run_id, *(["--verify"] if verify else []), "--results", results])
