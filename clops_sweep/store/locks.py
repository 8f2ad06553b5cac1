"""Locks on files, held by a process and let go when it ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path) -> Iterator[bool | None]:
    """Whether this process alone holds a lock inside; None if nobody can tell, as on a file system without locks.

    Args:
        path: of the lock; made if it is not there, with its folder. Nothing is written to it, and a link is not
            followed: a folder of results may come from anybody.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError:
        yield None
        return
    try:
        yield _locked(file)
    finally:
        os.close(file)


def _locked(file: int) -> bool | None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
