"""Where the display writes: the terminal or file that standard output was before the sweep redirected it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO, Any

from rich.live import Live


class OwnLive(Live):
    """A live display that is refreshed by its own thread, and above which lines may be printed meanwhile."""

    def print(self, text: str, **options: Any) -> None:
        """Prints above the display.

        The console itself takes two steps, unlocked: how many lines are to be erased, and their erasure. A refresh
        between the two moves the cursor, and what is erased then is what was printed.
        """
        with self._lock:
            self.console.print(text, **options)


def own_output() -> IO[str]:
    """Where the display writes while what libraries print goes elsewhere: a duplicate of the real standard output.

    Or of standard error, where a command prints data on standard output.

    In a notebook standard output is an object that sends text to a page, and that is not redirected.
    """
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):  # io.UnsupportedOperation is both of the first
        descriptor = -1
    return os.fdopen(os.dup(descriptor), "w", buffering=1) if descriptor in (1, 2) else sys.stdout


def nearby(path: Path) -> Path:
    """A path, from the current folder if it is in there: shorter, and as good."""
    try:
        return path.relative_to(Path.cwd())
    except (OSError, ValueError):  # that folder has gone, or it is elsewhere
        return path
