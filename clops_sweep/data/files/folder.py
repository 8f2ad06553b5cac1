"""Atomic creation of folders, and atomic replacement of files."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import IO

from clops_sweep.errors import UsageError

REMEDIES = {
    errno.ENOSPC: "the disk is full; free some space or choose another folder",
    errno.EDQUOT: "the disk quota is used up; free some space or choose another folder",
    errno.EFBIG: "too large for the file system or for the limit of this process (ulimit -f); choose another folder or "
    "raise the limit",
    errno.EROFS: "the file system is read-only; choose another folder",
    errno.EACCES: "permission is denied; make it accessible or choose another folder",
    errno.EPERM: "permission is denied; make it accessible or choose another folder",
    errno.ENAMETOOLONG: "the name is too long for this file system; use a shorter one",
    errno.ENOENT: "there is no such file or folder; check the path",
    errno.EEXIST: "there is a file where a folder is needed; choose another folder",
    errno.ENOTDIR: "part of the path is a file, not a folder; check the path",
    errno.EISDIR: "this is a folder where a file was expected; check the path",
    errno.ELOOP: "the links lead in a circle; point them to a file",
    errno.EIO: "the disk cannot read or write it; check the disk or copy the file again",
}

_REPLACED = ".replaced"

_NUMBERS = re.compile(r"([^0-9]*)([0-9]*)")


@contextmanager
def one_sentence(path: Path | str) -> Iterator[None]:
    """Convert an operating-system error about `path` to a UsageError that names it and the remedy."""
    try:
        yield
    except OSError as error:
        at_fault = error.filename if isinstance(error.filename, str) else str(path)
        reason = REMEDIES.get(error.errno or 0, error.strerror or type(error).__name__)
        raise UsageError(f"{shorten(at_fault)}: {reason}") from None


def is_of_the_file_system(error: BaseException) -> bool:
    """Return whether an error is about the disk or a path, not about a network or a program."""
    return isinstance(error, OSError) and error.errno in REMEDIES


def is_file(path: Path) -> bool:
    """Return whether a file exists; False for invalid names."""
    return os.path.isfile(path)


def shorten(path: Path | str, limit: int = 200) -> str:
    """Shorten a path for a sentence, but keep its end with the file's name."""
    text = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in str(path))
    return text if len(text) <= limit else f"{text[: limit // 4]}...{text[-limit // 2 :]}"


class Lock(Enum):
    """Who holds a lock."""

    HERE = "this process"
    ELSEWHERE = "another process"
    UNSUPPORTED = "no process: the file system has no locks"


@contextmanager
def locked(path: Path) -> Iterator[Lock]:
    """Hold a lock in the block, unless another process holds it; yield who does.

    The lock ends with the process, however that ends.

    Args:
        path: the lock file; created with its folder if missing. Nothing is written to it, and links are not followed,
            since a folder of results may come from an untrusted source.
    """
    from filelock import FileLock, Timeout  # imported here, because it takes a third of the time of a short command

    lock = FileLock(path, timeout=0, mode=0o664)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
        holder = Lock.HERE
    except Timeout:
        holder = Lock.ELSEWHERE
    except (OSError, NotImplementedError):
        holder = Lock.UNSUPPORTED
    try:
        yield holder
    finally:
        lock.release()


@contextmanager
def appearing_folder(final: Path, place_of_old: Callable[[], Path | None] = lambda: None) -> Iterator[Path]:
    """Yield a new folder that is renamed to `final` when the block exits without an error.

    Files are flushed to disk before the folder is renamed, so that a crash leaves either nothing or everything. An
    existing folder at `final` is replaced. Leftovers of killed processes of this machine are removed: a folder whose
    lock, a file beside it, is held is not a leftover.

    Args:
        final: path of the folder.
        place_of_old: returns where a folder that is replaced is moved to; None to remove it.

    Raises:
        UsageError: `final` exists and is not a folder.
    """
    with one_sentence(final.parent):
        final.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(final)
        if final.exists() and not final.is_dir():
            raise UsageError(f"{shorten(final)}: is not a folder; move or delete it")
    staging = _beside(final, "partial")
    with locked(lock := staging.with_suffix(".lock")):
        try:
            with one_sentence(final):
                staging.mkdir()
                yield staging
                for file in sorted(staging.rglob("*")):
                    flush(file)
                flush(staging)
                _replace_folder(staging, final, place_of_old)
                flush(final.parent)
        finally:
            shutil.rmtree(staging, ignore_errors=True)  # exists only after an error
            with suppress(OSError):
                lock.unlink()


def remove_leftovers(final: Path) -> None:
    """Remove unfinished folders for `final` that no process of this machine is writing.

    A folder that was moved aside for a replacement that never came is restored.
    """
    prefix = f".{final.name}.{socket.gethostname()}."
    for folder in final.parent.iterdir():
        if not folder.name.startswith(prefix) or folder.suffix not in (".partial", _REPLACED, ".removed"):
            continue
        with locked(lock := folder.with_suffix(".lock")) as holder:
            if holder is not Lock.HERE:
                continue
            if folder.suffix == _REPLACED and not final.exists():
                os.rename(folder, final)
            else:
                shutil.rmtree(folder, ignore_errors=True)
            lock.unlink()


@contextmanager
def appearing_file(final: Path) -> Iterator[IO[bytes]]:
    """Open a file that is renamed to `final` when the block exits without an error.

    File and folder are flushed to disk, and with the folder all files that appeared in it earlier.

    Raises:
        OSError: it cannot be written; names `final` (a full disk does not say which file it had no room for).
    """
    staging = _beside(final, "partial")
    try:
        with open(staging, "xb") as file:  # an existing link is not followed
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(staging, final)
        flush(final.parent)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(final)) from None
    finally:
        with suppress(OSError):
            staging.unlink(missing_ok=True)


def write_file(final: Path, content: bytes) -> None:
    """Write a file atomically."""
    with appearing_file(final) as file:
        file.write(content)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, and flush them to disk: files in them are only as safe as they are."""
    missing = [folder]
    while not missing[-1].exists():
        missing.append(missing[-1].parent)
    for made in reversed(missing[:-1]):
        made.mkdir(exist_ok=True)
        flush(made.parent)


def flush(path: Path) -> None:
    """Flush a file's content, or a folder's list of names, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _beside(final: Path, purpose: str) -> Path:
    """Return a unique name on this machine."""
    return final.parent / f".{final.name}.{socket.gethostname()}.{secrets.token_hex(4)}.{purpose}"


def remove_folder(folder: Path) -> None:
    """Remove a folder with its content. If killed meanwhile, nothing remains under its name.

    If it is a link, only the link is removed.

    Raises:
        OSError: it cannot be removed.
    """
    if folder.is_symlink():
        folder.unlink()
        return
    aside = _beside(folder, "removed")
    os.rename(folder, aside)
    shutil.rmtree(aside)


def _replace_folder(staging: Path, final: Path, place_of_old: Callable[[], Path | None]) -> None:
    try:
        os.rename(staging, final)
    except OSError:
        if not final.exists():
            raise
        # A folder cannot be renamed onto a full one; the old one is renamed first.
        kept = place_of_old()
        aside = kept or staging.with_suffix(_REPLACED)
        os.rename(final, aside)
        os.rename(staging, final)
        if kept:
            return
        if aside.is_symlink():
            aside.unlink()  # not what it leads to
        else:
            shutil.rmtree(aside, ignore_errors=True)


def visible(files: Iterable[Path], folder: Path) -> list[Path]:
    """Return the files that are not hidden: no part of their path below the folder begins with a dot."""
    visible_files = []
    for file in files:
        parts = file.relative_to(folder).parts
        if not any(part.startswith(".") for part in parts):
            visible_files.append(file)
    return visible_files


def natural(name: str) -> list[tuple[str, int]]:
    """Return a key that sorts numbers within names by value: r2 before r10."""
    return [(text, int(number or 0)) for text, number in _NUMBERS.findall(name)]
