"""What a process waits for while another one holds a lock."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

SECONDS_BEFORE_TOLD = 1.0
"""How long a process waits for a lock before it says so."""

_LOCKS = Path("/proc/locks")
"""The locks of this machine, in which Linux names the process and the inode of each."""

_said_unlocked: set[Path] = set()
"""The locks that cannot be held, of which this process has said so."""


def say_waiting(path: Path, what: str) -> None:
    """Print to standard error which lock this process waits for, and who holds it if that is known.

    Args:
        path: the lock file.
        what: what it locks, such as "results/".
    """
    holder = holder_of(path)
    held_by = "which another process holds" if holder is None else f"held by {holder}"
    print(f"waiting for the lock of {what}, {path}, {held_by}", file=sys.stderr, flush=True)


def say_unlocked(path: Path, what: str) -> None:
    """Print to standard error, once a process, that a lock cannot be held, and what follows from it.

    Args:
        path: the lock file.
        what: what it locks, such as "results/".
    """
    if path in _said_unlocked:
        return
    _said_unlocked.add(path)
    print(
        f"{what}: {path} cannot be locked, as on file systems without locks; run one command at a time that writes "
        "there, since nothing keeps two apart",
        file=sys.stderr,
        flush=True,
    )


def holder_of(path: Path) -> str | None:
    """Return the process of this machine that holds a lock, in words; None if it is elsewhere or not known."""
    with suppress(OSError, ValueError):
        inode = os.stat(path).st_ino
        for line in _LOCKS.read_text().splitlines():
            words = line.split()  # 1: FLOCK ADVISORY WRITE 4711 08:01:131 0 EOF
            if "->" in words or len(words) < 6 or not words[5].endswith(f":{inode}"):
                continue
            if (process := int(words[4])) > 0:
                return f"process {process} on {socket.gethostname()}"
    return None
