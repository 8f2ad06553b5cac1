"""Recordings one by one, as they are prepared: what is known of each, and where its samples are to be had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


class Stretch(NamedTuple):
    """Samples begin..end (end excluded) of a recording that carry one label, a position in the classes."""

    begin: int
    end: int
    label: int


class Signal(NamedTuple):
    """All samples of a recording: stored [channels, samples]; gain * stored + offset, [channels] each, is in units."""

    stored: NDArray[Any]
    gain: NDArray[np.float64]
    offset: NDArray[np.float64]


class Samples(Protocol):
    """Where the samples of a recording are."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that hold them, and labels where these are with them; none in memory."""

    def extent(self) -> tuple[int, float]:
        """How many samples, and how many a second."""

    def label(self) -> Any:
        """Its label, or labels, as in `Item.label`; a list of `Stretch`es; None where it has none that is wanted."""

    def read(self) -> Signal:
        """The samples."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """Samples that are at hand: [channels, samples]."""

    array: NDArray[Any]
    rate: float
    gain: NDArray[np.float64]

    @property
    def files(self) -> tuple[Path, ...]:
        """None."""
        return ()

    def extent(self) -> tuple[int, float]:
        """Samples, and samples a second."""
        return self.array.shape[1], self.rate

    def label(self) -> Any:
        """None: it is known from elsewhere."""
        return None

    def read(self) -> Signal:
        """The array itself."""
        return Signal(self.array, self.gain, np.zeros(len(self.gain)))


@dataclass(frozen=True, eq=False)
class Item:
    """One recording: `label` is a position in the classes, 0 or 1 for each [C] uint8, or None where the file says it.

    `part` is its split, where one is given.
    """

    name: str
    patient: str
    label: int | NDArray[np.uint8] | None
    samples: Samples
    time: np.datetime64 | None = None
    domains: Mapping[str, str] = field(default_factory=dict)
    part: int | None = None


@dataclass(frozen=True)
class Common:
    """What all recordings of a data set have in common.

    `window` and `stride` are in seconds, None for recordings that are a frame each; `rate` is what frames are resampled
    to, samples a second, None for what they were sampled with. `stored_as` is the type of stored samples.
    """

    classes: tuple[str, ...]
    channels: tuple[str, ...]
    units: str
    multi_label: bool
    stored_as: type[np.float32] | type[np.int16]
    window: float | None = None
    stride: float | None = None
    rate: float | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)

    def windows(self, samples: int, rate: float, label: Any) -> tuple[NDArray[np.int64], int, list[Any]]:
        """Begins [m] of the windows of a recording, their length in samples, and the label of each.

        A window begins every `stride`, from where the recording, or a stretch of one label, begins; what is left at the
        end, and too short for a window, is left out.
        """
        width = samples if self.window is None else round(self.window * rate)
        stride = width if self.stride is None else max(1, round(self.stride * rate))
        stretches: Sequence[Stretch] = label if isinstance(label, list) else [Stretch(0, samples, label)]
        found = [
            (begin, stretch.label)
            for stretch in stretches
            for begin in range(stretch.begin, min(stretch.end, samples) - width + 1, max(1, stride))
        ]
        return np.array([begin for begin, _ in found], np.int64), width, [label for _, label in found]

    def frame_samples(self, width: int, rate: float) -> int:
        """Samples of a frame, from those of its window."""
        return width if self.rate is None or self.rate == rate else max(1, round(width * self.rate / rate))


def stored_as(dtype: np.dtype[Any], rate: float | None) -> type[np.float32] | type[np.int16]:
    """The type that samples are stored as: whole numbers of up to 16 bits as they are, all others as float32."""
    return np.int16 if rate is None and dtype.kind in "iu" and np.can_cast(dtype, np.int16) else np.float32
