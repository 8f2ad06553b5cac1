"""FrameSet: the instances of a data set as every run sees them, in plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

FRAME_LENGTH: Final = 2500
"""Samples in a frame, for every data set (the network's input is 1 x 2500)."""

TRAINING: Final = 0
VALIDATION: Final = 1
TEST: Final = 2
SPLIT_NAMES: Final = ("training", "validation", "test")


@dataclass(frozen=True, eq=False)
class FrameSet:
    """n frames of one data set with their labels, patients, leads, times and split.

    The signal of frame i is `gain[i] * frames[i] + offset[i]`, in `unit`; a normalisation asked for when the set
    was opened is part of gain and offset. All arrays are plain read-only `numpy.ndarray`s, `frames` usually a
    mapped file, so that the object pickles (protocol 5) into buffers that processes share without copying.

    Shapes: frames [n, 2500] float32 or int16; gain, offset [n] float32; patients [n] int32, positions in
    `patient_names`; labels [n] int64, positions in `classes`, or [n, C] uint8 multi-hot; split [n] int8 with the
    values TRAINING, VALIDATION, TEST; leads [n] int16, positions in `lead_names`; times [n] datetime64[s] or None.

    `data_hash` is a hex SHA-256 over everything that a run's numbers depend on: the arrays above, the classes and
    the normalisation. `frame_seconds` is how long a frame lasts, None where that is not known; no run depends on it.
    """

    name: str
    frames: NDArray[Any]
    gain: NDArray[np.float32]
    offset: NDArray[np.float32]
    unit: str
    patients: NDArray[np.int32]
    patient_names: tuple[str, ...]
    labels: NDArray[Any]
    classes: tuple[str, ...]
    split: NDArray[np.int8]
    leads: NDArray[np.int16]
    lead_names: tuple[str, ...]
    times: NDArray[np.datetime64] | None
    data_hash: str
    frame_seconds: float | None = None

    def __len__(self) -> int:
        return len(self.frames)

    @property
    def multi_label(self) -> bool:
        """Whether an instance may carry several labels (labels are then [n, C] multi-hot)."""
        return self.labels.ndim == 2

    def signal(self, rows: NDArray[np.integer[Any]] | slice) -> NDArray[np.float32]:
        """The signal of the given rows in `unit`: gain * stored + offset, [m, 2500] float32 (a copy)."""
        stored = np.asarray(self.frames[rows], dtype=np.float32)
        return self.gain[rows, None] * stored + self.offset[rows, None]
