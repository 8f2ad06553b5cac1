"""A status line on a terminal during a slow step."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext


def waiting(what: str) -> AbstractContextManager[object]:
    """Show what a command waits for, on a terminal; nothing elsewhere, so that output stays data."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(what)
