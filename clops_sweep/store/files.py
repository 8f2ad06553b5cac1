"""Files of a store, in a folder or an object store: listing, reading and atomic writing."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, TypeVar

import pyarrow as pa
from pyarrow import fs as arrow_fs

from clops_sweep.data.files.folder import appearing_file, flush, make_folder
from clops_sweep.data.files.regular_files import open_regular
from clops_sweep.errors import UnreadableFile, UsageError, masked, one_line

_REQUESTS_AT_A_TIME = 32
"""Concurrent requests to an object store. A disk gains nothing from threads."""

_SECONDS_TO_ANSWER = 20
_SECONDS_TO_CONNECT = 4
_ATTEMPTS = 10
"""Of a request of a sweep, after pauses of 0, 0.05, 0.1, 0.2, ... 12.8 s: 26 s in all."""

_MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

T = TypeVar("T")
R = TypeVar("R")


class Files:
    """The file operations of a store, with the guarantees that it relies on.

    A file appears under its name complete or not at all, and reaches the disk before anything depends on it.

    Args:
        root: a folder, or a URI that Arrow's file systems understand (``s3://bucket/results``).

    Attributes:
        uri: the root, absolute.
        local: whether it is in a local file system.

    Raises:
        UsageError: an unknown kind of URI.
    """

    def __init__(self, root: str | Path) -> None:
        self.uri = str(root)
        if "://" in self.uri:
            self.system, self.root = _within_seconds(lambda: _opened_uri(self.uri), self.shown)
        else:
            try:
                self.uri = str(Path(root).expanduser().resolve())
                self.uri.encode()
            except UnicodeEncodeError:
                raise UsageError(f"results {self.uri!r}: the path is not UTF-8; rename the folder") from None
            except (OSError, ValueError, RuntimeError) as error:  # a null byte, or an unknown user
                raise UsageError(f"results {self.uri!r}: {one_line(error)}") from None
            self.system, self.root = arrow_fs.LocalFileSystem(), self.uri
        self.local = isinstance(self.system, arrow_fs.LocalFileSystem)

    @property
    def folder(self) -> Path | None:
        """The root as a local folder; None for an object store."""
        return Path(self.root) if self.local else None

    @property
    def shown(self) -> str:
        """The root for display, without the password that a URI may contain."""
        return masked(self.uri)

    @property
    def anywhere(self) -> str:
        """The root for commands in any folder, without the password that a URI may contain."""
        return self.root if self.local else self.shown

    def check_is_there(self) -> None:
        """Check that the root exists, for commands that only read: a misspelt name must not pass for an empty store.

        Raises:
            UsageError: the root does not exist or is not a folder.
        """
        if not self.is_there():
            raise UsageError(f"results {self.shown}: there is no such folder")

    def is_there(self) -> bool:
        """Return whether the root is a folder.

        Raises:
            UsageError: it cannot be read.
        """
        try:
            return bool(self.system.get_file_info(self.root).type == arrow_fs.FileType.Directory)
        except OSError as error:
            raise UsageError(f"results {self.shown}: cannot be read ({one_line(error)})") from None

    def check_answers(self) -> None:
        """Check that the server answers within seconds; a sweep would retry for minutes.

        Raises:
            UsageError: the server does not answer, or the bucket does not exist.
        """
        if self.local:
            return
        bucket = self.root.partition("/")[0]
        info = _within_seconds(lambda: self.system.get_file_info(bucket), self.shown)
        if info.type == arrow_fs.FileType.NotFound:
            raise UsageError(f"results {self.shown}: there is no bucket {bucket!r}")

    def retry_longer(self) -> None:
        """Retry failed requests for half a minute, since a server may be busy or restart during a sweep."""
        if isinstance(self.system, arrow_fs.S3FileSystem):
            strategy = arrow_fs.AwsDefaultS3RetryStrategy(max_attempts=_ATTEMPTS)
            self.system = _changed(self.system, retry_strategy=strategy)

    def names(self, folder: str, beginning: str = "") -> list[str]:
        """Return the names of the files in a folder, sorted, without those that Parquet readers ignore.

        Args:
            folder: the folder.
            beginning: prefix of the names to return.

        Raises:
            UnreadableFile: the folder exists but cannot be read.
        """
        with self._answering():
            names = _scan(folder, beginning) if self.local else [info.base_name for info in self._select(folder)]
        return sorted(name for name in names if name.startswith(beginning) and not name.startswith((".", "_")))

    def exists(self, path: str) -> bool:
        """Return whether a file exists."""
        if self.local:
            return os.path.isfile(path)
        return bool(self._info(path).is_file)

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the size in bytes of each file in a folder; in an object store, with one listing."""
        if not self.local:
            return {info.base_name: info.size or 0 for info in self._select(folder)}
        sizes = {}
        for name in _scan(folder, ""):
            with contextlib.suppress(FileNotFoundError):
                sizes[name] = os.stat(f"{folder}/{name}").st_size
        return sizes

    def mark(self, path: str) -> list[int] | None:
        """Return values that change whenever the file changes; None if the file is gone or inaccessible.

        Size and modification time; in a local folder also the inode number and ctime, which programs cannot set: a file
        restored from a backup may keep its modification time.
        """
        if self.local:
            try:
                status = os.stat(path)
            except OSError:  # inaccessible
                return None
            return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        info = self._info(path)
        return None if info.size is None else [info.size, info.mtime_ns or 0]

    def marks(self, folder: str, names: Collection[str]) -> dict[str, list[int]]:
        """Return the `mark` of each file that exists. In an object store this is one listing of the folder."""
        if self.local:
            marks = {name: self.mark(f"{folder}/{name}") for name in names}
        else:
            wanted = frozenset(names)
            infos = self._select(folder) if wanted else []
            marks = {info.base_name: [info.size or 0, info.mtime_ns or 0] for info in infos if info.base_name in wanted}
        return {name: mark for name, mark in marks.items() if mark is not None}

    def move(self, source: str, target: str) -> None:
        """Move a file inside the store. A file of that name is replaced, and the move survives a power cut."""
        self.make_folder(target.rpartition("/")[0])
        self.system.move(source, target)
        if self.local:
            flush(Path(target).parent)

    def read(self, path: str) -> pa.Buffer:
        """Return the content of a file.

        Raises:
            UnreadableFile: it is a folder, a FIFO or a device, or larger than this machine's memory.
            OSError: it cannot be read.
        """
        if self.local:
            try:
                with open_regular(path, _MEMORY) as file:
                    return pa.py_buffer(file.read())
            except UsageError as error:
                raise UnreadableFile(str(error)) from None
        with self.system.open_input_stream(path) as stream:
            return stream.read_buffer()

    def write(self, path: str, content: bytes | pa.Buffer) -> None:
        """Write a file."""
        with self.being_written(path) as file:
            file.write(content)

    @contextlib.contextmanager
    def being_written(self, path: str) -> Iterator[IO[bytes]]:
        """Open a file for writing. It appears under its name when the block exits without an exception.

        Its folder is flushed to disk, so that earlier files in it survive a power cut, too.
        """
        if not self.local:
            # an object exists once its upload completes, and an upload cannot be taken back: so the content
            # is complete before the upload starts
            with tempfile.TemporaryFile() as file:
                yield file
                file.seek(0)
                with self.system.open_output_stream(path) as stream:
                    shutil.copyfileobj(file, stream, 2**20)
            return
        make_folder(Path(path).parent)
        with appearing_file(Path(path)) as file:
            yield file

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; files that another process has already deleted are ignored."""
        self.for_each(self._delete, list(paths))

    def make_folder(self, folder: str) -> None:
        """Make a folder and its parents."""
        if self.local:
            make_folder(Path(folder))
        else:
            self.system.create_dir(folder, recursive=True)

    def for_each(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return the result of `work` for each item, computed concurrently in an object store."""
        if self.local or len(items) < 2:
            return [work(item) for item in items]
        with ThreadPoolExecutor(_REQUESTS_AT_A_TIME) as pool:
            return list(pool.map(work, items))

    def _delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            if self.local:
                os.unlink(path)
            else:
                self.system.delete_file(path)

    def _info(self, path: str | arrow_fs.FileSelector) -> Any:
        with self._answering():
            return self.system.get_file_info(path)

    def _select(self, folder: str) -> list[arrow_fs.FileInfo]:
        infos = self._info(arrow_fs.FileSelector(folder, allow_not_found=True))
        return [info for info in infos if info.is_file]

    @contextlib.contextmanager
    def _answering(self) -> Iterator[None]:
        """Convert errors of the file system, such as a busy server, to `UnreadableFile`."""
        try:
            yield
        except OSError as error:
            raise UnreadableFile(f"results {self.shown}: cannot be read ({one_line(error)})") from None


def _opened_uri(uri: str) -> tuple[arrow_fs.FileSystem, str]:
    system, root = arrow_fs.FileSystem.from_uri(uri)
    if not root.strip("/"):
        raise ValueError("names no folder; expected something like s3://bucket/folder")
    if isinstance(system, arrow_fs.S3FileSystem):  # a URI cannot set a timeout
        system = _changed(system, connect_timeout=_SECONDS_TO_CONNECT)
    return system, root


def _changed(system: arrow_fs.S3FileSystem, **changes: object) -> arrow_fs.S3FileSystem:
    _, (options,) = system.__reduce__()
    if "allow_delayed_open" in options:  # since Arrow 18: one request for a small object instead of three
        changes["allow_delayed_open"] = True
    return arrow_fs.S3FileSystem(**options | changes)


def _within_seconds(work: Callable[[], R], shown: str) -> R:
    """Return the result of a call that may wait for a server much longer than a user would."""
    done: list[R] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(_SECONDS_TO_ANSWER)
    if done:
        return done[0]
    if not failed:
        raise UsageError(f"results {shown!r}: no answer within {_SECONDS_TO_ANSWER} s")
    if isinstance(failed[0], OSError | ValueError):
        raise UsageError(f"results {shown!r}: {one_line(failed[0])}") from None
    raise failed[0]


def _scan(folder: str, beginning: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.name.startswith(beginning) and _is_file(entry)]
    except FileNotFoundError:
        return []


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError as error:
        if error.errno == errno.ELOOP:  # links that lead to each other
            return False
        raise
