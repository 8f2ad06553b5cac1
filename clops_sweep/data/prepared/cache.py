"""The cache of prepared frames: its folders, their sizes, when they were last used, and how to remove them.

A process that maps frames holds a shared lock on their file until it ends; removing them needs an exclusive lock. The
modification time of `verified.json` is the time at which a process last mapped the frames.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clops_sweep.data.files.folder import one_sentence, remove_folder, remove_leftovers
from clops_sweep.data.prepared.earlier_editions import EARLIER
from clops_sweep.data.prepared.manifest import FRAMES, MANIFEST
from clops_sweep.data.prepared.verified_frames import VERIFIED
from clops_sweep.errors import UsageError, listed

_SECONDS_A_DAY: Final = 86_400
_locks: dict[tuple[int, int], int] = {}
"""Open files whose lock this process holds, by device and inode."""


@dataclass(frozen=True)
class CachedSet:
    """A folder of prepared frames.

    Attributes:
        folder: its path, which ends with the name of the data set, or is that of an earlier edition, `NAME@HASH`.
        size: total size of its files in bytes.
        last_used: seconds since the epoch.
        in_use: whether a process has mapped the frames.
    """

    folder: Path
    size: int
    last_used: float
    in_use: bool

    @property
    def days_unused(self) -> float:
        """Days since a process last mapped the frames."""
        return max(0.0, time.time() - self.last_used) / _SECONDS_A_DAY


def hold(folder: Path) -> None:
    """Lock prepared frames against removal while this process lives, and record that they are used now.

    If this process may not write to the folder, it only takes the lock.
    """
    with suppress(OSError):
        os.utime(folder / VERIFIED)
    with suppress(OSError):
        file = os.open(folder / FRAMES, os.O_RDONLY | os.O_CLOEXEC)
        status = os.fstat(file)
        key = status.st_dev, status.st_ino
        if key in _locks or not _locked(file, fcntl.LOCK_SH):
            os.close(file)
        else:
            _locks[key] = file


def cached_sets(prepared_root: Path) -> list[CachedSet]:
    """Return the prepared folders under a root, sorted by name.

    Raises:
        UsageError: the root cannot be read.
    """
    with one_sentence(prepared_root):
        if not prepared_root.is_dir():
            return []
        folders = [path for path in sorted(prepared_root.iterdir()) if not path.name.startswith(".")]
        return [_cached_set(folder) for folder in folders if (_of_frames(folder) / MANIFEST).is_file()]


def _of_frames(folder: Path) -> Path:
    """Return the folder with the frames: a prepared folder itself, or that in the folder of an earlier edition."""
    if (folder / EARLIER).is_file():
        return folder / folder.name.partition("@")[0]
    return folder


def evict(prepared_root: Path, names: Iterable[str]) -> list[CachedSet]:
    """Remove prepared folders, after checking all of them. A sweep that needs one prepares it again.

    Earlier editions, `NAME@HASH`, cannot be prepared again from the present files.

    Args:
        prepared_root: the folder of prepared data sets.
        names: names of the data sets.

    Returns:
        The removed folders.

    Raises:
        UsageError: a folder is missing, is in use, or cannot be removed.
    """
    prepared = {cached.folder.name: cached for cached in cached_sets(prepared_root)}
    wanted = list(dict.fromkeys(names))
    for name in wanted:
        if name not in prepared:
            known = f"prepared: {listed(prepared)}" if prepared else "nothing is prepared there"
            raise UsageError(f"data set {name!r}: not prepared in {prepared_root}; {known}")
        if prepared[name].in_use:
            raise UsageError(
                f"data set {name!r}: a running process has its frames open, or they cannot be locked; end it first"
            )
    for name in wanted:
        with one_sentence(prepared_root / name):
            remove_leftovers(prepared_root / name)
            remove_folder(prepared_root / name)
    return [prepared[name] for name in wanted]


def _cached_set(folder: Path) -> CachedSet:
    size, used = 0, (_of_frames(folder) / MANIFEST).stat().st_mtime
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # another process is replacing it
            status = path.lstat()
            size += status.st_size
            used = max(used, status.st_mtime if path.name == VERIFIED else 0)
    return CachedSet(folder, size, used, _is_held(_of_frames(folder) / FRAMES))


def _is_held(frames: Path) -> bool:
    """Whether a process holds the lock of a file of frames; true if the file system cannot tell."""
    try:
        file = os.open(frames, os.O_RDWR | os.O_CLOEXEC)  # network file systems want write access for this lock
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        return not _locked(file, fcntl.LOCK_EX)
    finally:
        os.close(file)


def _locked(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError:  # another process holds it, or the file system has no locks
        return False
    return True
