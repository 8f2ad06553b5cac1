"""Arrays as .npy files: whole, and frames that are written piece by piece, their number known only at the end."""

from __future__ import annotations

import io
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


def npy_bytes(array: NDArray[Any]) -> bytes:
    """The content of the .npy file of an array.

    numpy itself does not say why it could not write a file; what writes these bytes says that the disk is full.
    """
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


class FrameFile:
    """Appends frames [m, samples] of one dtype; the header with the final shape is written on closing.

    Attributes:
        dtype: of the samples.
        count: frames so far.
        samples: of a frame, as many as the first one has; 0 before.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.count = 0
        self.samples = 0
        self._header_size = len(self._header())
        self._file = open(path, "wb")  # noqa: SIM115 (closed by __exit__)
        self._file.write(self._header())

    def append(self, frames: NDArray[Any]) -> None:
        """Adds frames [m, samples]."""
        self.samples = self.samples or frames.shape[1]
        assert frames.shape[1:] == (self.samples,)
        self._file.write(np.ascontiguousarray(frames, dtype=self.dtype).data)
        self.count += len(frames)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            if kind is None:
                header = self._header()
                # numpy pads the header so that the number of rows may grow to 20 digits without moving the data, and
                # the number of samples stands within the padding.
                assert len(header) == self._header_size
                self._file.seek(0)
                self._file.write(header)

    def _header(self) -> bytes:
        buffer = io.BytesIO()
        fields = {
            "descr": np.lib.format.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": (self.count, self.samples),
        }
        np.lib.format.write_array_header_1_0(buffer, fields)
        return buffer.getvalue()
