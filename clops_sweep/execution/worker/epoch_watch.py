"""The end of a worker in which an epoch takes too long, whatever it hangs in."""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator
from contextlib import contextmanager

_ERROR_OUTPUT = 2


@contextmanager
def epoch_limit(seconds: float | None) -> Iterator[None]:
    """End this process if the block takes longer, after the stacks of its threads were printed to the launch's log.

    A thread that is none of Python's does this, so that compiled code cannot keep it from running.

    Args:
        seconds: what an epoch may take; None for any time.
    """
    if seconds is None:
        yield
        return
    faulthandler.dump_traceback_later(seconds, exit=True, file=_ERROR_OUTPUT)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
