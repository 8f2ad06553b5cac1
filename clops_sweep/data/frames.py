"""FrameSet: the instances of a data set as every run sees them, in plain arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DatasetInfo

FRAME_LENGTH: Final = 2500
"""Samples in a frame of the paper's data sets, which its network asks for."""

TRAINING: Final = 0
VALIDATION: Final = 1
TEST: Final = 2
UNSEEN: Final = 3
LEFT_OUT: Final = -1
SPLIT_NAMES: Final = ("training", "validation", "test")


@dataclass(frozen=True)
class Encoded:
    """The encoder that computed features, and the signals that it computed them from.

    Where runs train the encoder further, the frames are these signals, adapted to what it takes.

    Attributes:
        encoder: its name, or ``run:RUN_ID``.
        encoder_hash: SHA-256 of its code, weights and declaration.
        features_hash: SHA-256 of the features, or of the adapted signals.
        people: those that it has seen in pretraining, by `leaks.person_hash`, as far as a stored run says so.
        channels: of a frame of signals.
        samples: of such a channel.
        unit: of the signals.
        module: makes the encoder's `torch.nn.Module`, in any process; None where the frames are its features.
    """

    encoder: str
    encoder_hash: str
    features_hash: str
    people: frozenset[str]
    channels: int
    samples: int
    unit: str
    module: Callable[[], Any] | None = None


@dataclass(frozen=True, eq=False)
class FrameSet:
    """n instances of one data set with their labels, patients, leads, times and split.

    What is stored is r rows of one channel each: the signal of row i is `gain[i] * frames[i] + offset[i]`, in `unit`; a
    normalisation asked for when the set was opened is part of gain and offset. An instance is one row, or, where
    `members` is given, several of them as the channels of one frame [channels, samples]. All arrays are plain read-only
    `numpy.ndarray`s, `frames` usually a mapped file, so that the object pickles (protocol 5) into buffers that
    processes share without copying.

    Shapes: frames [r, samples] float32 or int16; gain, offset [r] float32; members [n, channels] int64, positions in
    frames, or None where instance i is row i; patients [n] int32, positions in `patient_names`; labels [n] int64,
    positions in `classes`, or [n, C] uint8 multi-hot; split [n] int8 with the values TRAINING, VALIDATION, TEST, and
    where recordings are split by time UNSEEN (people in no task) and LEFT_OUT (gaps between the parts); leads
    [n] int16, positions in `lead_names` (of the first channel, where there are several: channel c of every instance
    is that of lead c); times [n] datetime64[s] or None; each of `domains` [n] int32 and the names that it counts;
    recordings [n] int32, the number of each instance's recording in the order of the data, and start [n] float64, where
    in it the instance begins, in seconds, or None where that is not known.

    `data_hash` is a hex SHA-256 over everything that a run's numbers depend on: the arrays above, the classes and
    the normalisation. `frame_seconds` is how long a frame lasts, None where that is not known. No run's numbers depend
    on it, on recordings or on start, except by `split`, which is hashed.
    `info` is what is known of the data set, so that workers need no catalogue; None for that of the catalogue.
    `encoded` says which encoder computed the set, whose rows are then features and not signals, or was it adapted to.
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
    members: NDArray[np.int64] | None = None
    domains: Mapping[str, tuple[NDArray[np.int32], tuple[str, ...]]] = field(default_factory=dict)
    info: DatasetInfo | None = None
    recordings: NDArray[np.int32] | None = None
    start: NDArray[np.float64] | None = None
    encoded: Encoded | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def channels(self) -> int:
        """Channels of an instance."""
        return 1 if self.members is None else self.members.shape[1]

    @property
    def single_leads(self) -> bool:
        """Whether an instance is one lead of a recording, or the features of one."""
        return self.members is None if self.encoded is None else self.encoded.channels == 1

    @property
    def samples(self) -> int:
        """Samples of a channel."""
        return int(self.frames.shape[1])

    @property
    def multi_label(self) -> bool:
        """Whether an instance may carry several labels (labels are then [n, C] multi-hot)."""
        return self.labels.ndim == 2

    def signal(self, instances: NDArray[np.integer[Any]] | slice) -> NDArray[np.float32]:
        """The signal of some instances in `unit`: gain * stored + offset, a copy.

        Returns:
            float32 [m, samples], or [m, channels, samples] where there are `members`.
        """
        rows = instances if self.members is None else self.members[instances]
        stored = np.asarray(self.frames[rows], dtype=np.float32)
        return self.gain[rows, None] * stored + self.offset[rows, None]
