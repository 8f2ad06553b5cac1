"""Locks on files, held by a process and let go when it ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path, *, shared: bool = False) -> Iterator[bool | None]:
    """Hold a lock in the block; yield whether this process got it, or None on a file system without locks.

    Args:
        path: of the lock; made if it is not there, with its folder. Nothing is written to it, and a link is not
            followed: a folder of results may come from anybody.
        shared: whether other processes may hold it too, if they share it as well.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError:
        yield None
        return
    try:
        yield _locked(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
    finally:
        os.close(file)


def _locked(file: int, kind: int) -> bool | None:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
