"""Frames that are written to an .npy file piece by piece; their number is known only at the end."""

from __future__ import annotations

import hashlib
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.arrays import npy_header
from clops_sweep.data.files.hashes import array_sha256, digest_of_array

_AT_ONCE: Final = 2**18
"""Bytes that a write to the file has at least."""


class FrameFile:
    """Appends frames [m, samples] of one dtype; the header with the final shape is written on closing.

    A thread writes the frames and computes their checksum while the caller reads more. The checksum begins with the
    number of frames. If that is not the expected number, the checksum is computed again from the file.

    Attributes:
        path: of the file.
        dtype: of the samples.
        count: frames so far.
        samples: of a frame, as many as the first one has; 0 before.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any], expected: int) -> None:
        self.dtype = dtype
        self.count = 0
        self.samples = 0
        self.path, self._expected = path, expected
        self._sum = hashlib.sha256()
        self._waiting: list[memoryview] = []
        self._waiting_bytes = 0
        self._written: Future[None] | None = None
        self._thread = ThreadPoolExecutor(1)
        self._file = open(path, "xb", buffering=0)  # noqa: SIM115 (closed by __exit__)
        self._header_size = len(npy_header(dtype, (0, 0)))
        self._file.seek(self._header_size)

    def append(self, frames: NDArray[Any]) -> None:
        """Adds frames [m, samples], which the caller must not change afterwards."""
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
                self._hand_on()
                assert self._written is not None
                self._written.result()
                header = npy_header(self.dtype, (self.count, self.samples))
                # numpy pads the header so that the number of rows may grow to 20 digits without moving the data, and
                # the number of samples stands within the padding.
                assert len(header) == self._header_size
                self._file.seek(0)
                self._file.write(header)
