"""What the attributes of a dataset say of its samples, by the conventions of netCDF: scale, unit, rate, fill value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared.stated_variables import differs, other_order
from clops_sweep.errors import UsageError

_FILL: Final = ("_FillValue", "missing_value")
_RATES: Final = frozenset(
    {"samplingrate", "samplingfrequency", "samplerate", "samplefrequency", "fs", "sfreq", "srate"}
)
"""Names of sampling rates, in lower case without other signs than letters."""
_UNITS: Final = ("units", "unit")
_HERTZ: Final = re.compile(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(hz|khz)?\s*", re.IGNORECASE)
"""A rate as text."""


def require_scale(
    where: str,
    attributes: Mapping[str, Any],
    gain: NDArray[np.float64],
    units: str,
    rate: float,
    channels: Sequence[str] = (),
) -> None:
    """Check that gain, unit, rate and channels of a data set are those that the attributes of a dataset state.

    Args:
        where: file and dataset, for messages.
        attributes: the attributes of the dataset.
        gain: factor from samples to units, [channels].
        units: the declared unit.
        rate: the declared sampling rate in Hz.
        channels: the names of the channels, in the declared order.

    Raises:
        UsageError: an attribute states something else.
    """
    scales, offsets = _numbers(attributes, "scale_factor"), _numbers(attributes, "add_offset")
    if any(offsets):
        raise UsageError(
            f"{where}: says add_offset = {_listed(offsets)}; read it by from_folder(..., read=function), which adds it"
        )
    fits = len(scales) in (1, len(gain))
    if scales and not (fits and np.allclose(gain, scales, rtol=1e-6)):
        raise UsageError(
            f"{where}: says scale_factor = {_listed(scales)}; give gain={_listed(scales)}, the factor from samples to "
            "units"
        )
    is_plain = not scales and bool((gain == 1).all())
    for unit in _texts_of_units(attributes) if is_plain else ():
        if differs(unit, units):
            raise UsageError(
                f"{where}: says that it is in {unit}, not in {units}; give its unit, or the factor as gain"
            )
    other = other_order(attributes, channels)
    if other is not None:
        raise UsageError(f"{where}: says {other}; expected channels in that order")
    for name, stated in stated_rates(attributes):
        if not np.isclose(stated, rate, rtol=1e-6):
            raise UsageError(f"{where}: says {name} = {stated:g}; expected sampling_rate={stated:g}, not {rate:g}")


def notes_on_groups(
    attributes: Mapping[str, Any],
    of_groups: Iterable[Mapping[str, Any]],
    units: str,
    rate: float,
    channels: Sequence[str] = (),
) -> list[str]:
    """Return sentences on another unit, rate or order of channels that the groups of a dataset state.

    A unit or rate of the dataset itself counts before that of its groups.

    Args:
        attributes: the attributes of the dataset.
        of_groups: the attributes of its groups, from its own to the file.
        units: the declared unit.
        rate: the declared sampling rate in Hz.
        channels: the names of the channels, in the declared order.
    """
    notes = list[str]()
    states_rate = any(stated_rates(attributes))
    states_unit = bool(_texts_of_units(attributes)) or "scale_factor" in attributes
    for of_group in of_groups:
        rates = [] if states_rate else list(stated_rates(of_group))
        units_of_group = [] if states_unit else _texts_of_units(of_group)
        for name, stated in rates:
            if not np.isclose(stated, rate, rtol=1e-6):
                notes.append(f"its group says {name} = {stated:g}, and sampling_rate is {rate:g}: check it")
        for unit in units_of_group:
            if differs(unit, units):
                notes.append(f"its group says that it is in {unit}, and units is {units}: check it")
        other = other_order(of_group, channels)
        if other is not None:
            notes.append(f"its group says {other}, and channels are {', '.join(channels)}: check their order")
        states_rate = states_rate or bool(rates)
        states_unit = states_unit or bool(units_of_group)
    return list(dict.fromkeys(notes))


def _texts_of_units(attributes: Mapping[str, Any]) -> list[str]:
    """Return the units that attributes state, of all channels or of each."""
    texts = list[str]()
    for name in _UNITS:
        if name in attributes:
            for unit in np.ravel(np.asarray(attributes[name], object)).tolist():
                text = unit.decode("utf-8", "replace") if isinstance(unit, bytes) else unit
                texts += [text] if isinstance(text, str) and text else []
    return texts


def stated_rates(attributes: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the sampling rates in Hz that attributes state, by the name of the attribute."""
    rates = list[tuple[str, float]]()
    for name, value in attributes.items():
        if "".join(sign for sign in name.lower() if sign.isalpha()) not in _RATES:
            continue
        number = _number(attributes, name)
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        written = _HERTZ.fullmatch(text) if isinstance(text, str) else None
        if written is not None:
            number = float(written[1]) * (1000 if (written[2] or "").lower() == "khz" else 1)
        if number is not None and number > 0:
            rates.append((name, number))
    return rates


def _listed(numbers: list[float]) -> str:
    """Return numbers as an argument has them."""
    written = ", ".join(f"{number:g}" for number in numbers)
    return written if len(numbers) == 1 else f"[{written}]"


def fill_values(attributes: Mapping[str, Any], stored: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Return where samples have the value that stands for missing ones, as `stored`; None if none has it.

    Missing samples of floats become NaN in place.
    """
    missing = np.zeros(stored.shape, bool)
    for name in _FILL:
        value = _number(attributes, name)
        if value is not None:
            missing |= stored == value
    if not missing.any():
        return None
    if stored.dtype.kind == "f":
        stored[missing] = np.nan
        return None
    return missing


def _numbers(attributes: Mapping[str, Any], name: str) -> list[float]:
    """Return an attribute of finite numbers, one or one per channel; none otherwise."""
    value = attributes.get(name)
    if value is None or np.asarray(value).dtype.kind not in "iuf":
        return []
    numbers = np.ravel(value).astype(np.float64)
    return numbers.tolist() if np.isfinite(numbers).all() else []


def _number(attributes: Mapping[str, Any], name: str) -> float | None:
    """Return an attribute that is one finite number; None otherwise."""
    value = attributes.get(name)
    if value is None or np.size(value) != 1 or np.asarray(value).dtype.kind not in "iuf":
        return None
    number = float(np.ravel(value)[0])
    return number if np.isfinite(number) else None
