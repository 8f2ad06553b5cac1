"""FrameSet: the instances of a data set as plain arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DatasetInfo
from clops_sweep.data.left_out import LeftOut

FRAME_LENGTH: Final = 2500
"""Samples in a frame of the paper's data sets, which its network requires."""

TRAINING: Final = 0
VALIDATION: Final = 1
TEST: Final = 2
UNSEEN: Final = 3
LEFT_OUT: Final = -1
UNKNOWN_PERSON: Final = "unknown person of recording "
"""How the names of people begin where people are unknown; each recording is then split on its own."""
SPLIT_NAMES: Final = ("training", "validation", "test")


@dataclass(frozen=True)
class Encoded:
    """The encoder of features, and the signals that they were computed from.

    If a run trains adapters of the encoder, the frames are these signals, adapted to the encoder.

    Attributes:
        encoder: name of the encoder, or ``run:RUN_ID``.
        encoder_hash: SHA-256 of its code, weights and declaration.
        features_hash: SHA-256 of the features, or of the adapted signals.
        seen: whether the encoder has seen each instance in pretraining: its person, or one of its signals, [n] bool.
        digests: digests of each instance's signals, as `leaks.signal_digests` returns them, [n, channels] uint64.
        channels: channels of a frame of signals.
        samples: samples per channel.
        unit: unit of the signals.
        module: creates the encoder's `torch.nn.Module` in any process; None if the frames are its features.
    """

    encoder: str
    encoder_hash: str
    features_hash: str
    seen: NDArray[np.bool_]
    digests: NDArray[np.uint64]
    channels: int
    samples: int
    unit: str
    module: Callable[[], Any] | None = None


@dataclass(frozen=True)
class StartModel:
    """The stored model whose weights are the initial ones of runs.

    Attributes:
        run: ``run:RUN_ID``.
        model: its file, as safetensors.
        model_hash: SHA-256 of the file.
        seen: whether the model has seen each instance in training or validation, as `Encoded.seen` says, [n] bool.
    """

    run: str
    model: bytes = field(repr=False)
    model_hash: str
    seen: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FrameSet:
    """n instances of one data set with their labels, patients, leads, times and split.

    Signals are stored as r rows of one channel each: the signal of row i is `gain[i] * frames[i] + offset[i]`, in
    `unit`, where gain and offset include the normalisation. An instance is one row or, with `members`, several rows as
    the channels of one frame [channels, samples]. All arrays are plain read-only `numpy.ndarray`s; `frames` is usually
    a mapped file, so that the object pickles (protocol 5) into buffers that processes share without copying.

    Shapes: frames [r, samples] float32 or int16; gain, offset [r] float32; members [n, channels] int64, indices into
    frames, or None if instance i is row i; patients [n] int32, indices into `patient_names`; labels [n] int64, indices
    into `classes`, or [n, C] uint8 multi-hot; split [n] int8 with the values TRAINING, VALIDATION, TEST and, if
    recordings are split by time, UNSEEN (people in no task) and LEFT_OUT (gaps between the parts); leads [n] int16,
    indices into `lead_names` (of the first of several channels: channel c of every instance is lead c); times [n]
    datetime64[s] or None; each of `domains` [n] int32 with its names; recordings [n] int32, number of each instance's
    recording; start [n] float64, start of each instance in its recording in seconds, or None if unknown.

    `data_hash` is a hex SHA-256 over everything that a run's numbers depend on: the arrays above, the classes and the
    normalisation. `prepared_hash` is equal for all splits, normalisations, leads and features of one prepared data set;
    None if the frames are of none. `frame_seconds` is the duration of a frame, None if unknown; numbers depend on it,
    on recordings and on start only through `split`. `info` holds facts about the data set, so that workers need no
    catalogue; None to use the catalogue. `encoded` names the encoder if the rows are features, or signals adapted to an
    encoder. `start_model` is the stored model that runs on these frames start from; None if they draw their weights.

    `left_out` is what the preparation dropped, without names. `shortcuts` and `leaks` are sentences for reports: facts
    that tell a class without a network, and how many people or recordings may be there under two names, without these.
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
    left_out: tuple[LeftOut, ...] = ()
    shortcuts: tuple[str, ...] = ()
    prepared_hash: str | None = None
    leaks: tuple[str, ...] = ()
    start_model: StartModel | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        """One line: name, numbers of instances and people, shape of a frame, classes."""
        people = f"{len(self.patient_names):,} people" if self.people_known else "unknown people"
        shape = f"{self.channels} x {self.samples:,} samples"
        return f"<FrameSet {self.name}: {len(self):,} instances of {shape}, {people}, {len(self.classes)} classes>"

    @property
    def people_known(self) -> bool:
        """Whether every instance names its person."""
        return not any(name.startswith(UNKNOWN_PERSON) for name in self.patient_names)

    @property
    def channels(self) -> int:
        """Number of channels of an instance."""
        return 1 if self.members is None else self.members.shape[1]

    @property
    def single_leads(self) -> bool:
        """Whether an instance is a single lead of a recording, or its features."""
        return self.members is None if self.encoded is None else self.encoded.channels == 1

    @property
    def samples(self) -> int:
        """Number of samples per channel."""
        return int(self.frames.shape[1])

    @property
    def multi_label(self) -> bool:
        """Whether an instance may have several labels (labels are then [n, C] multi-hot)."""
        return self.labels.ndim == 2

    def signal(self, instances: NDArray[np.integer[Any]] | slice) -> NDArray[np.float32]:
        """Return the signal of some instances in `unit`, gain * stored + offset, as a copy.

        Returns:
            float32 [m, samples], or [m, channels, samples] where there are `members`.
        """
        rows = instances if self.members is None else self.members[instances]
        stored = np.asarray(self.frames[rows], dtype=np.float32)
        return self.gain[rows, None] * stored + self.offset[rows, None]
