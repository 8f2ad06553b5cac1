"""What variables beside the samples of a file state: rate, distance and times of samples, unit, names of channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from clops_sweep.data.declared.time_column import fits_rate, notes_on_times
from clops_sweep.data.files.units import factor, known

RATES: Final = (
    "fs",
    "Fs",
    "FS",
    "sfreq",
    "srate",
    "sampling_rate",
    "sampling_frequency",
    "sample_rate",
    "samplingRate",
    "SamplingRate",
)
"""Names of variables that are the sampling rate."""
DISTANCES: Final = ("dt", "Ts", "sampling_interval", "sample_interval", "sampling_period")
"""Names of variables that are the time between two samples."""
TIMES: Final = ("time", "times", "Time", "t", "tm", "timestamps", "timestamp")
"""Names of variables with the time of each sample."""
SHORT: Final = ("t", "tm")
"""Those that may be something else, such as a temperature, unless they rise."""
UNITS: Final = ("units", "unit")
"""Names of variables with the unit of the samples."""
NAMES: Final = ("channels", "channel_names", "ch_names", "leads", "lead_names", "sig_name")
"""Names of variables with the names of the channels."""


@dataclass(frozen=True, eq=False)
class StatedVariables:
    """Variables beside the samples, by name; those that the caller contradicts on purpose are left out.

    Attributes:
        rates: sampling rates; the first one counts.
        distances: distances of samples; the first one counts.
        times: times of samples; the first one counts.
        units: units; the first one counts.
        names: names of the channels.
    """

    rates: Mapping[str, Any] = field(default_factory=dict)
    distances: Mapping[str, Any] = field(default_factory=dict)
    times: Mapping[str, Any] = field(default_factory=dict)
    units: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, holders: Sequence[Mapping[str, Any]]) -> StatedVariables:
        """Return what structs state, the one that holds the samples first."""

        def named(names: Sequence[str]) -> dict[str, Any]:
            values: dict[str, Any] = {}
            for holder in holders:
                for name in names:
                    if name in holder:
                        values.setdefault(name, holder[name])
            return values

        return cls(named(RATES), named(DISTANCES), named(TIMES), named(UNITS), named(NAMES))

    def notes(
        self, samples: int, rate: float | None, units: Sequence[str] | None, channels: Sequence[str] | None
    ) -> list[str]:
        """Return a sentence on each variable that states something else; what is None is not compared.

        Args:
            samples: number of samples of a channel.
            rate: the sampling rate in Hz.
            units: the unit of each channel.
            channels: the names of the channels.
        """
        notes = []
        if rate is not None:
            notes += self._notes_on_rate(rate)
            notes += self._notes_on_times(samples, rate)
        if units is not None:
            notes += self._notes_on_units(units)
        if channels is not None and (other := other_order(self.names, channels)) is not None:
            notes.append(f"its variable says {other}, and channels are {', '.join(channels)}: check it")
        return notes

    def _notes_on_rate(self, rate: float) -> list[str]:
        for name, stated in self.rates.items():
            if _is_number(stated):
                if np.isclose(float(stated), rate, rtol=1e-6):
                    return []
                return [f"its variable {name} is {stated:g}, and sampling_rate is {rate:g}: check it"]
        for name, stated in self.distances.items():
            if _is_number(stated) and stated > 0:
                if fits_rate(float(stated), rate):
                    return []
                return [f"its variable {name} is {stated:g}, which is no {1 / rate:.4g} s in any unit: check it"]
        return []

    def _notes_on_times(self, samples: int, rate: float) -> list[str]:
        for name, stated in self.times.items():
            times = np.ravel(np.asarray(stated))
            if len(times) != samples or times.dtype.kind not in "iufM":
                continue
            plain = times if times.dtype.kind == "M" else times.astype(np.float64)
            if name in SHORT and not (plain[1:] > plain[:-1]).all():
                continue
            return notes_on_times(name, plain, rate, what="variable")
        return []

    def _notes_on_units(self, units: Sequence[str]) -> list[str]:
        for name, stated in self.units.items():
            texts = [text for text in np.ravel(np.asarray(stated, object)).tolist() if isinstance(text, str)]
            if len(texts) not in (1, len(units)):
                continue
            of_channels = texts * len(units) if len(texts) == 1 else texts
            for unit, declared in zip(of_channels, units, strict=True):
                if differs(unit, declared):
                    return [f"its variable {name} says that it is in {unit}, and units is {declared}: check it"]
            return []
        return []


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def differs(unit: str, units: str) -> bool:
    """Return whether a unit can be converted to the declared one, and is another."""
    return known(unit) and known(units) and factor(unit, units) != 1


def other_order(values: Mapping[str, Any], channels: Sequence[str]) -> str | None:
    """Return the value that names the channels in another order, such as "leads = II, I"; None without one."""
    declared = [channel.casefold() for channel in channels]
    for name, value in values.items():
        if isinstance(value, str | bytes) or np.size(value) != len(declared) or len(declared) < 2:
            continue
        texts = []
        for text in np.ravel(np.asarray(value, object)).tolist():
            texts.append(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)
        if not all(isinstance(text, str) for text in texts):
            continue
        plain = [text.strip().casefold() for text in texts]
        if sorted(plain) == sorted(declared) and plain != declared:
            return f"{name} = {', '.join(text.strip() for text in texts)}"
    return None
