"""Safe opening of files that other programs may have replaced by FIFOs, devices or links."""

from __future__ import annotations

import io
import json
import os
import stat
from typing import Any, Final

from clops_sweep.errors import UsageError

METADATA_LIMIT: Final = 2**28
"""Most bytes of a manifest or other JSON file: names of several million recordings fit."""

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_regular(path: str | os.PathLike[str], limit: int | None = None) -> io.BufferedReader:
    """Open a regular file for reading, without waiting for another process.

    Opening a FIFO waits for its writer, and reading a device such as /dev/zero never ends.

    Args:
        path: the file; links are followed.
        limit: the most bytes that the file may have; None for any size.

    Raises:
        UsageError: the path is not a regular file, or the file is larger than `limit`.
        OSError: the file cannot be opened; a loop of links is `errno.ELOOP`.
    """
    _check(path, os.stat(path), limit)  # before opening, since opening can start a device
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check(path, os.fstat(handle), limit)  # it may have been replaced since
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_json(path: str | os.PathLike[str], limit: int = 2**20) -> Any:
    """Read a small JSON file.

    Args:
        path: the file; links are followed.
        limit: the most bytes that the file may have.

    Raises:
        ValueError: the file is not JSON, is nested too deeply, is too large or is no regular file.
        OSError: the file cannot be read.
    """
    with open_regular(path, limit) as file:
        try:
            return json.load(file)
        except RecursionError:
            raise UsageError(f"{os.fspath(path)}: the JSON in it is nested too deeply") from None


def _check(path: str | os.PathLike[str], status: os.stat_result, limit: int | None) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((kind for matches, kind in _KINDS if matches(status.st_mode)), "something else")
        raise UsageError(f"{os.fspath(path)}: is {kind}; expected a regular file")
    if limit is not None and status.st_size > limit:
        raise UsageError(f"{os.fspath(path)}: has {status.st_size:,} bytes; expected at most {limit:,}")
