"""Private temporary folders: a launch creates one, and removes those of killed launches."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from clops_sweep.data.files.folder import Lock, locked

_PREFIX = "clops-"  # short, because it is a prefix of the paths of Ray's sockets
_LOCK = "lock"


@contextmanager
def private_folder(base: Path | None = None) -> Iterator[Path]:
    """Yield a new folder that only this user can access; it is removed on exit.

    This process holds a lock on a file in it, which is released when the process ends, however it ends. Folders with a
    free lock belonged to killed launches and are removed first.

    Args:
        base: parent folder; None for the folder of temporary files.
    """
    base = Path(tempfile.gettempdir()) if base is None else base
    remove_left_behind(base)
    new = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=base))
    with locked(new / _LOCK):
        # It is renamed once it is locked: other launches never see a new folder with a free lock.
        folder = new.rename(base / new.name.removeprefix("."))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_left_behind(base: Path) -> None:
    """Remove this user's private folders whose lock no process holds. Links are not followed."""
    with suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            path = Path(entry.path)
            if entry.name.startswith(_PREFIX) and _is_mine(path) and os.path.lexists(path / _LOCK):
                with locked(path / _LOCK) as holder:
                    if holder is Lock.HERE:
                        shutil.rmtree(path, ignore_errors=True)


def _is_mine(path: Path) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
