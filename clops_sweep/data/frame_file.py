"""Frames that are written to an .npy file piece by piece, their number known only at the end."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.arrays import npy_header
from clops_sweep.data.manifest import array_sha256, digest_of_array

_AT_ONCE: Final = 2**18
"""Bytes that are handed to the thread at a time, at least."""


class FrameFile:
    """Appends frames [m, samples] of one dtype; the header with the final shape is written on closing.

    A thread writes them, and computes their checksum, while others are read. The checksum begins with the number of
    frames: it is computed in passing for the number that is expected, and from the file where it has become another.
    As long as it `follows`, frames that an earlier attempt left in the file are compared and not written again.

    Attributes:
        path: of the file.
        dtype: of the samples.
        count: frames so far.
        samples: of a frame, as many as the first one has; 0 before.
        follows: whether all frames so far are there from an earlier attempt.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any], expected: int) -> None:
        self.dtype = dtype
        self.count = 0
        self.samples = 0
        self.follows = True
        self.path, self._expected = path, expected
        self._sum = hashlib.sha256()
        self._checked: list[tuple[int, hashlib._Hash]] = []
        self._room = bytearray()
        self._waiting: list[memoryview] = []
        self._waiting_bytes = 0
        self._written: Future[None] | None = None
        self._thread = ThreadPoolExecutor(1)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._file = open(handle, "r+b", buffering=0)  # noqa: SIM115 (closed by __exit__)
        self._header_size = data_begin(dtype)

    def follow(self, count: int, samples: int, digest: hashlib._Hash) -> None:
        """Takes it as known that the first `count` frames in the file are whole, and have this sum."""
        self.samples = samples
        self._checked = [*self._checked[-1:], (count, digest)]

    def stands(self, frames: NDArray[Any]) -> bool:
        """Whether the next frames of an earlier attempt are these, byte for byte."""
        known = self._checked[-1][0] if self.follows and self._checked else 0
        if self.count + len(frames) > known or frames.shape[1:] != (self.samples,):
            return False
        content = np.ascontiguousarray(frames, dtype=self.dtype).data
        if len(self._room) != content.nbytes:
            self._room = bytearray(content.nbytes)
        return os.preadv(self._file.fileno(), [self._room], self._place(self.count)) == content.nbytes and (
            self._room == content
        )

    def skip(self, count: int) -> None:
        """Leaves the next frames of an earlier attempt as they are."""
        self.count += count

    def leave(self) -> None:
        """Goes on behind the frames so far: what an earlier attempt wrote after them is gone."""
        if not self.follows:
            return
        self.follows = False
        if not self.count:
            self.samples = 0
        begin = 0
        self._sum = digest_of_array(self.dtype, (self._expected, self.samples))
        for count, digest in self._checked:
            if count <= self.count:
                begin, self._sum = count, digest
        add_frames(self._sum, self._file, self._place(begin), self._place(self.count))
        self._file.seek(self._place(self.count))
        self._file.truncate()

    def append(self, frames: NDArray[Any]) -> None:
        """Adds frames [m, samples], which nobody changes any more."""
        if self.stands(frames):
            self.count += len(frames)
            return
        self.leave()
        if not self.samples:
            self.samples = frames.shape[1]
            self._sum = digest_of_array(self.dtype, (self._expected, self.samples))
        assert frames.shape[1:] == (self.samples,)
        content = np.ascontiguousarray(frames, dtype=self.dtype).data
        self._waiting.append(content)
        self._waiting_bytes += content.nbytes
        self.count += len(frames)
        if self._waiting_bytes >= _AT_ONCE:
            self._hand_on()

    def then(self, note: Callable[[bytes], None]) -> None:
        """Has the thread call `note` with the sum of the frames so far, once they are written."""
        self._hand_on()
        self._written = self._thread.submit(lambda before: note(self._sum_after(before)), self._written)

    def _sum_after(self, before: Future[None] | None) -> bytes:
        if before is not None:
            before.result()
        return self._sum.copy().digest()

    def _hand_on(self) -> None:
        if self._written is not None:
            self._written.result()
        self._written = self._thread.submit(self._write, self._waiting)
        self._waiting, self._waiting_bytes = [], 0

    def _write(self, contents: list[memoryview]) -> None:
        for content in contents:
            self._sum.update(content)
            rest = content.cast("B")
            while rest:
                rest = rest[self._file.write(rest) :]

    def _place(self, count: int) -> int:
        return self._header_size + count * self.samples * self.dtype.itemsize

    def sha256(self) -> str:
        """Hex SHA-256 of the array in the file (`array_sha256`), once it is closed."""
        if self.count == self._expected:
            return self._sum.hexdigest()
        return array_sha256(np.load(self.path, mmap_mode="r"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file, self._thread:
            if kind is None:
                self.leave()
                self._hand_on()
                assert self._written is not None
                self._written.result()
                header = npy_header(self.dtype, (self.count, self.samples))
                # numpy pads the header so that the number of rows may grow to 20 digits without moving the data, and
                # the number of samples stands within the padding.
                assert len(header) == self._header_size
                self._file.seek(0)
                self._file.write(header)


def data_begin(dtype: np.dtype[Any]) -> int:
    """Where the frames begin in their file, in bytes."""
    return len(npy_header(dtype, (0, 0)))


def add_frames(digest: hashlib._Hash, file: io.FileIO, begin: int, end: int) -> bool:
    """Adds what a file holds between two places to a sum; False where it ends before that."""
    file.seek(begin)
    room = memoryview(bytearray(min(_AT_ONCE, end - begin)))
    while begin < end:
        got = file.readinto(room[: end - begin])
        if not got:
            return False
        digest.update(room[:got])
        begin += got
    return True
