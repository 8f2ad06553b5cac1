"""Time limit of an epoch; it ends the worker process even if compiled code hangs."""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clops_sweep.store.run_logs import stacks_file


@contextmanager
def epoch_limit(seconds: float | None, folder: Path, run_id: str) -> Iterator[None]:
    """End this process if the block takes longer, and leave the stacks of its threads in a file.

    Compiled code cannot prevent this, since it needs no Python thread.

    Args:
        seconds: time limit of an epoch; None for no limit.
        folder: folder of the logs.
        run_id: id of the run.
    """
    if seconds is None:
        yield
        return
    path = stacks_file(folder, run_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        faulthandler.dump_traceback_later(seconds, exit=True, file=file)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            path.unlink(missing_ok=True)
