"""Output of the display: the original standard output, which the sweep redirects."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO

from clops_sweep.execution.display.terminal import descriptor_of


def own_output() -> IO[str]:
    """Return the display's output while output of libraries is redirected: a duplicate of standard output.

    It is a duplicate of standard error if a command prints data on standard output. In a notebook, standard output is
    an object that sends text to a page, which is not redirected.
    """
    descriptor = descriptor_of(sys.stdout)
    return os.fdopen(os.dup(descriptor), "w", buffering=1) if descriptor > 0 else sys.stdout


def nearby(path: Path) -> Path:
    """Return a path relative to the current folder if it is inside."""
    try:
        return path.relative_to(Path.cwd())
    except (OSError, ValueError):  # the current folder is gone, or the path is elsewhere
        return path
