"""Keeps what libraries print out of the user's terminal, and all of it in a log file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def output_to(log: Path) -> Iterator[None]:
    """Standard output and error of this process, and of those it starts, go to `log` meanwhile.

    Ray and Tune print from C++ as well as from Python, so the file descriptors themselves are redirected. Whoever has
    to reach the terminal meanwhile needs a duplicate made before (see `display`).
    """
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(target, 1)
        os.dup2(target, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        for descriptor in (*saved, target):
            os.close(descriptor)
