"""Recordings in files, each read by itself: what is known of them beforehand, and the frames of one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.records import Common, Signals, Source, Windows
from clops_sweep.data.same_samples import samples_digest
from clops_sweep.errors import UsageError

SHORT = "recording shorter than a frame"


class Signal(NamedTuple):
    """All samples of a recording: stored [channels, samples]; gain * stored + offset, [channels] each, is in units."""

    stored: NDArray[Any]
    gain: NDArray[np.float64]
    offset: NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class FileRecording(Source):
    """One recording: `label` is a position in the classes, 0 or 1 for each [C] uint8, or None where the file says it.

    `part` is its split, where one is given.
    """

    patient: str
    label: int | NDArray[np.uint8] | None
    time: np.datetime64 | None = None
    domains: Mapping[str, str] = field(default_factory=dict)
    part: int | None = None

    @abstractmethod
    def extent(self) -> tuple[int, float]:
        """How many samples, and how many a second."""

    def stretches(self) -> Any:
        """The `Stretch`es of its labels, where these are in its files."""
        return None

    @abstractmethod
    def read(self) -> Signal:
        """The samples."""

    def windows(self, common: Common) -> Windows:
        """Window by window, channel after channel."""
        samples, rate = self.extent()
        label = self.stretches() if self.label is None else self.label
        begins, width, labels = common.windows(samples, rate, label)
        reason = "no label that is used" if isinstance(label, list) and not label else SHORT
        return common.offered(
            begins, labels, width, rate, patient=self.patient, time=self.time, domains=self.domains,
            dropped={} if len(begins) else {reason: 1},
        )  # fmt: skip

    def signals(self, common: Common, windows: Windows) -> Signals:
        """The samples as they are, or resampled."""
        stored, gain, offset = self.read()
        if len(stored) != len(common.channels):
            raise UsageError(f"{self.place}: has {len(stored)} channels; expected {len(common.channels)}")
        whole = stored.shape[1] == windows.width and len(windows) == len(stored)
        frames = common.frames(stored if whole else windows.cut(stored), self.extent()[1], self.place)
        return as_signals(frames, windows, gain, offset, samples_digest(stored))


def as_signals(
    frames: NDArray[Any], windows: Windows, gain: NDArray[np.float64], offset: NDArray[np.float64], digest: bytes | None
) -> Signals:
    """Frames without a missing sample; gain and offset [channels]."""
    with np.errstate(over="ignore"):  # what is infinite in float32 is refused as not finite
        factors, zeros = gain[windows.leads].astype(np.float32), offset[windows.leads].astype(np.float32)
    return Signals(frames, factors, zeros, np.zeros(len(windows), bool), digest)


def stored_as(dtype: np.dtype[Any], rate: float | None) -> type[np.float32] | type[np.int16]:
    """The type that samples are stored as: whole numbers of up to 16 bits as they are, all others as float32."""
    return np.int16 if rate is None and dtype.kind in "iu" and np.can_cast(dtype, np.int16) else np.float32
