"""The folder that Tune writes to during a sweep, which is of no use afterwards, and those that killed drivers left."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder in the temporary folder that is there inside alone. What killed drivers have left there is removed."""
    remove_left_behind(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=f"clops-sweep-{_host()}-{os.getpid()}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_left_behind(temporary: Path) -> None:
    """Removes folders of sweeps of this user whose drivers ran on this machine and run no longer. Follows no link."""
    name = re.compile(rf"clops-sweep-{re.escape(_host())}-(\d+)-\w+")
    with suppress(OSError), os.scandir(temporary) as entries:
        for entry in entries:
            found = name.fullmatch(entry.name)
            if found and _is_mine(Path(entry.path)) and not _runs(int(found[1])):
                shutil.rmtree(entry.path, ignore_errors=True)


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9.]", "_", socket.gethostname())


def _is_mine(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _runs(number: int) -> bool:
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is somebody else's
        return True
    return True
