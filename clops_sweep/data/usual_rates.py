"""Notes on sampling rates, or durations of frames, that a channel of its kind does not have: a rate in another unit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from clops_sweep.data.files.units import factor, is_voltage, of_each
from clops_sweep.errors import listed, several


@dataclass(frozen=True)
class Kind:
    """A kind of signal, and what its recordings have.

    Attributes:
        name: its name in a sentence.
        words: words in the names of its channels, in lower case.
        least: samples a second that show its shape; 0 if averages of minutes are common.
        most: samples a second of the fastest common recorders.
        cycle: duration in seconds of what a whole recording cannot be shorter than.
        of_cycle: what lasts so long, at the end of a sentence.
    """

    name: str
    words: frozenset[str]
    least: float
    most: float
    cycle: float
    of_cycle: str


_ECG: Final = Kind(
    "an ECG",
    frozenset({"ecg", "ekg", "ml", "mlii", "mli", "mliii", "avr", "avl", "avf"}),
    least=25,
    most=10_000,
    cycle=0.25,
    of_cycle="a heart beat",
)
_PPG: Final = Kind(
    "a PPG",
    frozenset({"ppg", "bvp", "pleth", "plethysmogram", "photoplethysmogram"}),
    least=4,
    most=5_000,
    cycle=0.25,
    of_cycle="a heart beat",
)
_PRESSURE: Final = Kind(
    "a blood pressure", frozenset({"abp", "pap", "cvp"}), least=0, most=5_000, cycle=0.25, of_cycle="a heart beat"
)
_EEG: Final = Kind("an EEG", frozenset({"eeg"}), least=20, most=50_000, cycle=0.1, of_cycle="a wave of alpha rhythm")
_EMG: Final = Kind("an EMG", frozenset({"emg"}), least=10, most=50_000, cycle=0, of_cycle="")
_RESPIRATION: Final = Kind(
    "a respiration",
    frozenset({"resp", "rsp", "respiration", "breath", "breathing", "airflow"}),
    least=0,
    most=5_000,
    cycle=0.5,
    of_cycle="a breath",
)
_SLOW: Final = Kind(
    "a skin conductance or temperature",
    frozenset({"eda", "gsr", "temp", "temperature", "skt"}),
    least=0,
    most=5_000,
    cycle=0.5,
    of_cycle="a change of such a signal",
)
_MOVEMENT: Final = Kind("an acceleration", frozenset({"acc"}), least=0, most=5_000, cycle=0.1, of_cycle="a movement")
_VOLTAGE: Final = Kind(
    "most voltages of the body", frozenset(), least=1, most=50_000, cycle=0.03, of_cycle="their waves"
)
_KINDS: Final = (_ECG, _PPG, _PRESSURE, _EEG, _EMG, _RESPIRATION, _SLOW, _MOVEMENT)

_LEAD: Final = re.compile(r"(lead )?(i{1,3}|v[1-9xyz])")
"""Leads of an ECG whose names say nothing in other units."""
_ELECTRODE: Final = re.compile(r"(fp|af|fc|ft|cp|tp|po|f|c|t|p|o)(z|[1-9]|10)")
"""Electrodes of the 10-10 system, which other channels than voltages may be named like."""
_FAST: Final = 1000
"""Samples a second up to which short recordings may be beats or windows that were cut before."""
_CAPITALS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SEPARATORS: Final = re.compile(r"[^a-z]+")


def rate_notes(
    rates: Mapping[float, Sequence[str]], channels: Sequence[str], units: str, frame_seconds: float | None
) -> list[str]:
    """Return a sentence for each kind of channel and rate that its recordings do not have.

    Args:
        rates: names of the recordings of each sampling rate in Hz.
        channels: names of the channels.
        units: the unit of the data set, or those of its channels.
        frame_seconds: duration of a frame if each recording is one; None if they are cut, or if it is unknown.
    """
    notes = []
    for kind, names in _of_kinds(channels, units).items():
        which = f"channel {names[0]}" if len(names) == 1 else f"channels {listed(names)}"
        for rate, recordings in rates.items():
            where = "" if len(rates) == 1 else f" in {several(len(recordings), 'recording')} ({listed(recordings)})"
            if problem := _problem(kind, rate, frame_seconds):
                notes.append(f"{which}: {rate:,.6g} samples a second{where}, {problem}")
    return notes


def _problem(kind: Kind, rate: float, frame_seconds: float | None) -> str:
    """Return why a rate is doubtful for a kind of signal, as the end of a sentence; empty if it is usual."""
    if rate < kind.least:
        return f"too few for {kind.name}; give the rate in Hz, not in kHz or as the distance of samples"
    reasons = []
    if rate > kind.most:
        reasons.append(f"more than {kind.name} is recorded with")
    if rate > _FAST and frame_seconds is not None and frame_seconds < kind.cycle:
        reasons.append(f"and each recording lasts {frame_seconds:.3g} s, less than {kind.of_cycle}")
    return f"{', '.join(reasons)}; is the rate in Hz?" if reasons else ""


def _of_kinds(channels: Sequence[str], units: str) -> dict[Kind, list[str]]:
    """Return the channels of each kind; those of unknown kinds are left out."""
    of_channels: Iterable[str] = of_each(units, len(channels)) or [""] * len(channels)
    of_kinds: dict[Kind, list[str]] = {}
    for channel, unit in zip(channels, of_channels, strict=True):
        kind = kind_of(channel, unit)
        if kind is not None:
            of_kinds.setdefault(kind, []).append(channel)
    return of_kinds


def kind_of(channel: str, unit: str) -> Kind | None:
    """Return the kind of signal of a channel, by words of its name and by its unit; None if they do not tell it."""
    plain = channel.strip().lower()
    words = {word for word in _SEPARATORS.split(_CAPITALS.sub(" ", channel).lower()) if word}
    for kind in _KINDS:
        if not kind.words.isdisjoint(words):
            return kind
    if is_voltage(unit):
        if _LEAD.fullmatch(plain):
            return _ECG
        return _EEG if _ELECTRODE.fullmatch(plain) else _VOLTAGE
    return _MOVEMENT if factor(unit, "m/s2") is not None else None


def is_ecg(channel: str, unit: str) -> bool:
    """Return whether a channel is a lead of an ECG, by its name, in a unit of voltage."""
    return is_voltage(unit) and kind_of(channel, unit) is _ECG
