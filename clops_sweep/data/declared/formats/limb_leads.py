"""`with_limb_leads`: the limb leads that follow from I and II."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from clops_sweep.arguments import named_arguments
from clops_sweep.data.declared.one_by_one import Recording
from clops_sweep.data.files.units import factor
from clops_sweep.errors import UsageError

_DEFINITIONS = {"III": (-1.0, 1.0), "aVR": (-0.5, -0.5), "aVL": (1.0, -0.5), "aVF": (-0.5, 1.0)}
"""Weights of I and II: III = II - I, aVR = -(I + II)/2, aVL = I - II/2, aVF = II - I/2."""


@named_arguments
def with_limb_leads(recording: Recording, where: str = "") -> Recording:
    """Return a recording with III, aVR, aVL and aVF, computed from I and II where they lack.

    III = II - I, aVR = -(I + II)/2, aVL = I - II/2, aVF = II - I/2, in the unit of I; they follow II. A sample is
    missing where that of I or II is. Leads that the recording has stay as they are.

    Args:
        recording: a recording with `channels`.
        where: start of an error message.

    Raises:
        UsageError: I or II lacks, or they have different rates, gains, or units that cannot be converted.
    """
    names = [] if recording.channels is None else list(recording.channels)
    if "I" not in names or "II" not in names:
        raise UsageError(f"{where}derive_leads: needs the leads I and II; there are {', '.join(names) or 'no names'}")
    first = names.index("I")
    second = names.index("II")
    units = _of_each(recording.units, len(names))
    rates = _of_each(recording.sampling_rate, len(names))
    gains = _of_each(recording.gain, len(names))
    scale = 1.0
    if units[first] != units[second]:
        scale = factor(units[second], units[first]) or 0.0
    if not scale or rates[first] != rates[second] or gains[first] != gains[second]:
        raise UsageError(f"{where}derive_leads: I and II have different rates, gains or units; make them equal")
    signal = list(recording.signal)
    one = np.asarray(signal[first], np.float64)
    two = np.asarray(signal[second], np.float64) * scale
    position = second + 1
    for name, (weight, other) in _DEFINITIONS.items():
        if name in names:
            position = max(position, names.index(name) + 1)
            continue
        names.insert(position, name)
        signal.insert(position, weight * one + other * two)
        for values in (units, rates, gains):
            values.insert(position, values[first])
        position += 1
    return replace(
        recording,
        signal=signal,
        channels=names,
        units=units if _is_list(recording.units) else recording.units,
        sampling_rate=rates if _is_list(recording.sampling_rate) else recording.sampling_rate,
        gain=gains if _is_list(recording.gain) else recording.gain,
    )


def _is_list(value: Any) -> bool:
    return np.ndim(value) > 0


def _of_each(value: Any, count: int) -> list[Any]:
    """Return a value of each channel."""
    return list(value) if _is_list(value) else [value] * count
