"""Arrays as .npy files: whole, and frames that are written piece by piece, their number known only at the end."""

from __future__ import annotations

import hashlib
import io
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.manifest import array_sha256, digest_of_array, file_sha256

_WORTH_A_THREAD: Final = 2**18
"""Bytes whose checksums are computed while others are read."""


def npy_bytes(array: NDArray[Any]) -> bytes:
    """The content of the .npy file of an array.

    numpy itself does not say why it could not write a file; what writes these bytes says that the disk is full.
    """
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


class FrameFile:
    """Appends frames [m, samples] of one dtype; the header with the final shape is written on closing.

    Checksums begin with the number of frames. They are computed in passing, by a thread, for the number that is
    expected, and from the file where it has become another, so that what is written is seldom read again.

    Attributes:
        dtype: of the samples.
        count: frames so far.
        samples: of a frame, as many as the first one has; 0 before.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any], expected: int) -> None:
        self.dtype = dtype
        self.count = 0
        self.samples = 0
        self._path, self._expected = path, expected
        self._whole, self._array = hashlib.sha256(), hashlib.sha256()
        self._thread = ThreadPoolExecutor(1)
        self._hashed: Future[None] | None = None
        self._header_size = len(self._header(0))
        self._file = open(path, "wb")  # noqa: SIM115 (closed by __exit__)
        self._file.write(self._header(0))

    def append(self, frames: NDArray[Any]) -> None:
        """Adds frames [m, samples]."""
        if not self.samples:
            self.samples = frames.shape[1]
            self._whole = hashlib.sha256(self._header(self._expected))
            self._array = digest_of_array(self.dtype, (self._expected, self.samples))
        assert frames.shape[1:] == (self.samples,)
        content = np.ascontiguousarray(frames, dtype=self.dtype).data
        if self._hashed is not None:
            self._hashed.result()
        self._hashed = self._thread.submit(self._hash, content) if content.nbytes >= _WORTH_A_THREAD else None
        self._file.write(content)
        if self._hashed is None:
            self._hash(content)
        self.count += len(frames)

    def _hash(self, content: memoryview) -> None:
        self._whole.update(content)
        self._array.update(content)

    def sums(self) -> tuple[str, str]:
        """Hex SHA-256 of the whole file and of the array in it (`array_sha256`), once it is closed."""
        if self.count == self._expected:
            return self._whole.hexdigest(), self._array.hexdigest()
        return file_sha256(self._path), array_sha256(np.load(self._path, mmap_mode="r"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file, self._thread:
            if kind is None:
                header = self._header(self.count)
                # numpy pads the header so that the number of rows may grow to 20 digits without moving the data, and
                # the number of samples stands within the padding.
                assert len(header) == self._header_size
                self._file.seek(0)
                self._file.write(header)

    def _header(self, count: int) -> bytes:
        buffer = io.BytesIO()
        fields = {
            "descr": np.lib.format.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": (count, self.samples),
        }
        np.lib.format.write_array_header_1_0(buffer, fields)
        return buffer.getvalue()
