"""Adaptation of a data set's signals to an encoder, by the rules that it declares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.filters import Filters
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepared.normalization import normalized
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
        names: Sequence[str] = frames.lead_names
        if frames.single_leads:
            leads = np.unique(frames.leads)
            names = ["|".join(frames.lead_names[lead] for lead in leads)]
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
            adapted = normalized(self.normalize, adapted)
        missing = max(0, self.samples - self.resampled)
        return np.pad(adapted, ((0, 0), (0, 0), (0, missing)))


def adapter(encoder: str, takes: EncoderInput, signals: Signals) -> Adapter:
    """Return the adapter from a data set's signals to those of an encoder.

    Raises:
        UsageError: the signals do not fit, and no declared rule adapts them.
    """
    _check_values(encoder, takes, signals)
    picked = _picked(takes, signals)
    if picked is None:
        raise _refused_channels(encoder, takes, signals)
    length = _resampled_length(encoder, takes, signals)
    samples = takes.samples or length
    longest = max(length, samples)
    if longest * len(picked) > MOST_SAMPLES:
        has = f"{len(picked):,} x {longest:,} once adapted"
        raise _refused(encoder, signals, has, f"frames of at most {MOST_SAMPLES:,} values")
    rule = "pad" if length < samples else "crop"
    if length != samples and rule not in takes.adapt:
        resampled = " after resampling" if length != signals.samples else ""
        raise _refused(encoder, signals, f"{length:,}{resampled}", f"{samples:,} samples", _remedy(rule))
    rate = signals.sampling_rate
    with prefixed(f"encoder {encoder!r}"):
        filters = None if takes.filters is None else takes.filters.of_unit(signals.unit)
        return Adapter(picked, length, samples, filters, rate or 0.0, takes.normalizes)


def _check_values(encoder: str, takes: EncoderInput, signals: Signals) -> None:
    """Check normalisation and unit."""
    has = f"normalize = {signals.normalize!r}"
    if takes.normalize is not None and takes.normalize != signals.normalize:
        wants = f"normalize = {takes.normalize!r}"
        raise _refused(encoder, signals, has, wants, f"set {wants}")
    if takes.normalizes is not None and signals.normalize != "none":
        raise _refused(encoder, signals, has, "signals that it normalises itself", "set normalize = 'none'")
    if takes.unit is not None and takes.unit != signals.unit:
        raise _refused(encoder, signals, f"the unit {signals.unit}", f"signals in {takes.unit}")


def _resampled_length(encoder: str, takes: EncoderInput, signals: Signals) -> int:
    """Return the samples per channel after resampling, if the encoder takes another sampling rate."""
    rate = signals.sampling_rate
    if rate is None and takes.sampling_rate is not None:
        raise _refused(encoder, signals, "no known sampling rate", f"{takes.sampling_rate:g} Hz")
    if rate is None and takes.filters is not None:
        raise _refused(encoder, signals, "no known sampling rate", "filtered frames")
    if rate is None or takes.sampling_rate is None or abs(rate / takes.sampling_rate - 1) <= 1e-6:
        return signals.samples
    if "resample" not in takes.adapt:
        raise _refused(encoder, signals, f"{rate:g} Hz", f"{takes.sampling_rate:g} Hz", _remedy("resample"))
    return max(1, round(signals.samples * takes.sampling_rate / rate))


def _refused_channels(encoder: str, takes: EncoderInput, signals: Signals) -> UsageError:
    """Return the error of channels that do not fit."""
    count = len(signals.channels)
    if isinstance(takes.channels, int):
        wants = f"{takes.channels} channels"
        remedy = _remedy("repeat") if count == 1 else _ANOTHER
    else:
        wants = f"the channels {listed(takes.channels or ())}"
        remedy = _remedy("repeat" if count == 1 else "select")
    is_one_of_several_leads = "|" in signals.channels[0]
    if is_one_of_several_leads:
        remedy = f"set leads = 'all', or {_ANOTHER}"
    return _refused(encoder, signals, f"{count} ({listed(signals.channels)})", wants, remedy)


_ANOTHER = "use another encoder"


def _remedy(rule: str) -> str:
    return f'allow it with adapt=["{rule}"], or another encoder'


def _refused(encoder: str, signals: Signals, has: str, wants: str, remedy: str = _ANOTHER) -> UsageError:
    """Return the error of signals that do not fit."""
    return UsageError(f"encoder {encoder!r} takes {wants}, and frames of {signals.dataset!r} have {has}; {remedy}")


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
