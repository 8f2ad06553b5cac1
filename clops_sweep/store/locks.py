"""File locks, released when the process that holds them ends, however it ends."""

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
        path: the lock file; created with its folder if missing. Nothing is written to it, and links are not followed,
            since a folder of results may come from an untrusted source.
        shared: whether other processes may hold a shared lock at the same time.
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
