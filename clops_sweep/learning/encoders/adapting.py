"""Adaptation of a data set's signals to an encoder, by the rules that it declares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.filters import Filters
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepared.normalization import frame_statistics, normalized_gain_offset
from clops_sweep.data.records import MOST_SAMPLES
from clops_sweep.errors import UsageError, listed, prefixed
from clops_sweep.experiment.plugins.declarations import EncoderInput


@dataclass(frozen=True)
class Signals:
    """Properties of the frames of a data set.

    Attributes:
        dataset: name of the data set.
        channels: names of the channels; joined by "|" if a frame is any one of several leads.
        samples: samples per channel.
        sampling_rate: sampling rate in Hz; None if unknown.
        normalize: normalisation.
        unit: unit, if not normalised.
    """

    dataset: str
    channels: Sequence[str]
    samples: int
    sampling_rate: float | None
    normalize: str
    unit: str

    @classmethod
    def of(cls, frames: FrameSet) -> Signals:
        """Return the properties of a frame set."""
        rate = None if frames.frame_seconds is None else frames.samples / frames.frame_seconds
        used = np.unique(frames.leads)
        names = frames.lead_names if not frames.single_leads else ["|".join(frames.lead_names[lead] for lead in used)]
        normalize = frames.unit if frames.unit in ("minmax", "zscore") else "none"
        return cls(frames.name, names, frames.samples, rate, normalize, frames.unit)


@dataclass(frozen=True)
class Adapter:
    """Converts frames [m, channels, samples] of a data set to an encoder's signals, both float32.

    Attributes:
        picked: selected channels in order; one may be repeated.
        resampled: samples per channel after resampling.
        samples: final samples per channel, cropped or padded with zeros.
        filters: filters of the selected channels, before resampling.
        rate: sampling rate of the frames in Hz, for the filters.
        normalize: normalisation of each frame and channel, before zeros are appended.
    """

    picked: tuple[int, ...]
    resampled: int
    samples: int
    filters: Filters | None = None
    rate: float = 0.0
    normalize: str | None = None

    def __call__(self, frames: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the signals."""
        adapted = frames[:, list(self.picked)]
        if self.filters is not None:
            adapted = self.filters(adapted, self.rate).astype(np.float32)
        if self.resampled != frames.shape[2]:
            from scipy.signal import resample

            adapted = resample(adapted.astype(np.float64), self.resampled, axis=2).astype(np.float32)
        adapted = np.ascontiguousarray(adapted[:, :, : self.samples], dtype=np.float32)
        if self.normalize is not None:
            rows, ones = adapted.reshape(-1, adapted.shape[2]), np.ones(len(adapted) * len(self.picked), np.float32)
            gain, offset = normalized_gain_offset(self.normalize, ones, 0 * ones, frame_statistics(rows))
            adapted = (rows * gain[:, None] + offset[:, None]).reshape(adapted.shape)
        return np.pad(adapted, ((0, 0), (0, 0), (0, max(0, self.samples - self.resampled))))


def adapter(encoder: str, takes: EncoderInput, signals: Signals) -> Adapter:
    """Return the adapter from a data set's signals to those of an encoder.

    Raises:
        UsageError: the signals do not fit, and no declared rule adapts them.
    """

    def refuse(has: str, wants: str, rule: str | None, otherwise: str = "") -> NoReturn:
        remedy = otherwise or (f'allow it with adapt=["{rule}"], or' if rule else "use") + " another encoder"
        raise UsageError(f"encoder {encoder!r} takes {wants}, and frames of {signals.dataset!r} have {has}; {remedy}")

    if takes.normalize is not None and takes.normalize != signals.normalize:
        otherwise = f"set normalize = {takes.normalize!r}"
        refuse(f"normalize = {signals.normalize!r}", f"normalize = {takes.normalize!r}", None, otherwise)
    if takes.normalizes is not None and signals.normalize != "none":
        refuse(
            f"normalize = {signals.normalize!r}", "signals that it normalises itself", None, "set normalize = 'none'"
        )
    if takes.unit is not None and takes.unit != signals.unit:
        refuse(f"the unit {signals.unit}", f"signals in {takes.unit}", None)
    picked = _picked(takes, signals)
    if picked is None:
        has = f"{len(signals.channels)} ({listed(signals.channels)})"
        several = "|" in signals.channels[0]  # a frame is one of several leads
        if isinstance(takes.channels, int):
            wants, rule = f"{takes.channels} channels", "repeat" if len(signals.channels) == 1 else None
        else:
            wants, rule = (
                f"the channels {listed(takes.channels or ())}",
                "select" if len(signals.channels) > 1 else "repeat",
            )
        refuse(has, wants, rule, "set leads = 'all', or use another encoder" if several else "")
    length, rate = signals.samples, signals.sampling_rate
    if rate is None and (takes.sampling_rate or takes.filters):
        refuse(
            "no known sampling rate", f"{takes.sampling_rate:g} Hz" if takes.sampling_rate else "filtered frames", None
        )
    if rate is not None and takes.sampling_rate is not None and abs(rate / takes.sampling_rate - 1) > 1e-6:
        if "resample" not in takes.adapt:
            refuse(f"{rate:g} Hz", f"{takes.sampling_rate:g} Hz", "resample")
        length = max(1, round(length * takes.sampling_rate / rate))
    samples = takes.samples or length
    if max(length, samples) * len(picked) > MOST_SAMPLES:
        has = f"{len(picked):,} x {max(length, samples):,} once adapted"
        refuse(has, f"frames of at most {MOST_SAMPLES:,} values", None)
    if length != samples and (rule := "pad" if length < samples else "crop") not in takes.adapt:
        after = " after resampling" if length != signals.samples else ""
        refuse(f"{length:,}{after}", f"{samples:,} samples", rule)
    with prefixed(f"encoder {encoder!r}"):
        filters = None if takes.filters is None else takes.filters.of_unit(signals.unit)
        return Adapter(picked, length, samples, filters, rate or 0.0, takes.normalizes)


def _picked(takes: EncoderInput, signals: Signals) -> tuple[int, ...] | None:
    """Return the selected channels in order; None if they do not fit."""
    count = len(signals.channels)
    if takes.channels is None:
        return tuple(range(count))
    repeats = count == 1 and "repeat" in takes.adapt
    if isinstance(takes.channels, int):
        if count == takes.channels:
            return tuple(range(count))
        return (0,) * takes.channels if repeats else None
    available = [name.casefold() for name in signals.channels]
    wanted = [name.casefold() for name in takes.channels]
    if available == wanted:
        return tuple(range(count))
    if "select" in takes.adapt and set(wanted) <= set(available):
        return tuple(available.index(name) for name in wanted)
    return (0,) * len(wanted) if repeats else None
