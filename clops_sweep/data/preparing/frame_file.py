"""An .npy file to which frames are appended; their number is written at the end."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.arrays import bytes_of, npy_header


class FrameFile:
    """Appends frames [m, samples] of one dtype; closing writes the header with the final shape.

    Attributes:
        path: path of the file.
        dtype: type of the samples.
        count: number of frames so far.
        samples: samples per frame, 0 before the first frame.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self.path, self.dtype = path, dtype
        self.count = self.samples = 0
        self._file = open(path, "xb")  # noqa: SIM115 (closed by __exit__)
        self._file.write(npy_header(dtype, (0, 0)))

    def append(self, frames: NDArray[Any]) -> None:
        """Append frames [m, samples]."""
        self.samples = self.samples or frames.shape[1]
        assert frames.shape[1] == self.samples
        self.count += len(frames)
        self._file.write(bytes_of(np.asarray(frames, self.dtype)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            if kind is None:
                # numpy pads the header for up to 20 digits of rows, so the data does not move;
                # the number of samples fits into the same padding
                self._file.seek(0)
                self._file.write(npy_header(self.dtype, (self.count, self.samples)))
