"""Files of a store, in a folder or behind a URI: listed, read, and written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, TypeVar

import pyarrow as pa
from pyarrow import fs as arrow_fs

from clops_sweep.errors import BadInput

_REQUESTS_AT_A_TIME = 32
"""An object store answers many requests at a time, each after a while; a disk gains nothing from threads."""

T = TypeVar("T")
R = TypeVar("R")


class Files:
    """What a store asks of a file system, with the promises that the store is built on.

    A file appears under its name whole or not at all, and on the disk before anybody relies on it.

    Args:
        root: a folder, or a URI that Arrow's file systems understand (``s3://bucket/results``).

    Attributes:
        uri: the root, absolute.
        local: whether the operating system's own calls reach it.

    Raises:
        BadInput: a URI that nobody understands.
    """

    def __init__(self, root: str | Path) -> None:
        self.uri = str(root)
        try:
            if "://" in self.uri:
                self.system, self.root = arrow_fs.FileSystem.from_uri(self.uri)
            else:
                self.uri = str(Path(root).expanduser().resolve())
                self.system, self.root = arrow_fs.LocalFileSystem(), self.uri
        except (OSError, ValueError) as error:
            raise BadInput(f"results {self.uri!r}: {reason(error)}") from None
        self.local = isinstance(self.system, arrow_fs.LocalFileSystem)

    def names(self, folder: str) -> list[str]:
        """The files of a folder, in order; those that a reader of Parquet folders passes over are passed over.

        Raises:
            BadInput: the folder is there and cannot be read.
        """
        try:
            found = _scan(folder) if self.local else self._select(folder)
        except OSError as error:
            raise BadInput(f"results {self.uri}: cannot be read ({reason(error)})") from None
        return sorted(name for name in found if not name.startswith((".", "_")))

    def exists(self, path: str) -> bool:
        """Whether there is a file of this name."""
        if self.local:
            return os.path.isfile(path)
        info: arrow_fs.FileInfo = self.system.get_file_info(path)
        return bool(info.is_file)

    def size(self, path: str) -> int:
        """Bytes of a file; 0 if it has gone."""
        return self.system.get_file_info(path).size or 0

    def read(self, path: str) -> pa.Buffer:
        """The content of a file."""
        if self.local:
            with open(path, "rb") as file:
                return pa.py_buffer(file.read())
        with self.system.open_input_stream(path) as stream:
            return stream.read_buffer()

    def write(self, path: str, content: bytes | pa.Buffer) -> None:
        """Writes a file."""
        with self.being_written(path) as file:
            file.write(content)

    @contextlib.contextmanager
    def being_written(self, path: str) -> Iterator[IO[bytes]]:
        """A file to write to; it appears under its name when the block is left without an exception."""
        if not self.local:
            # An object is there when its upload is complete, and nothing can take back what has been sent: so it is
            # made here first.
            with tempfile.TemporaryFile() as file:
                yield file
                file.seek(0)
                with self.system.open_output_stream(path) as stream:
                    shutil.copyfileobj(file, stream, 2**20)
            return
        folder, name = os.path.split(path)
        temporary = f"{folder}/.{name}.{uuid.uuid4().hex}"
        try:
            with _opened(temporary) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException as error:
            with contextlib.suppress(OSError):
                self.delete([temporary])
            if isinstance(error, OSError):  # a full disk does not say which file it had no room for
                raise OSError(error.errno, error.strerror, path) from None
            raise

    def settle(self, folder: str) -> None:
        """Returns when the names that have appeared in a folder would survive a power cut."""
        if not self.local:
            return
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes files; another process may have been faster."""
        self.for_each(self._delete, list(paths))

    def make_folder(self, folder: str) -> None:
        """Makes a folder and those above it."""
        self.system.create_dir(folder, recursive=True)

    def for_each(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """What `work` returns for each item; many at a time where each has to wait for an answer."""
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

    def _select(self, folder: str) -> list[str]:
        infos = self.system.get_file_info(arrow_fs.FileSelector(folder, allow_not_found=True))
        return [info.base_name for info in infos if info.is_file]


def reason(error: BaseException) -> str:
    """What an exception says, on one line."""
    return " ".join(str(error).split())


def _scan(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_file()]
    except FileNotFoundError:
        return []


def _opened(path: str) -> IO[bytes]:
    try:
        return open(path, "wb")
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return open(path, "wb")
