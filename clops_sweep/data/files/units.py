"""Conversion between spellings and prefixes of the units of physiological signals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_KNOWN: Final = {
    "V": ("volt", 1.0),
    "mV": ("volt", 1e-3),
    "uV": ("volt", 1e-6),
    "nV": ("volt", 1e-9),
    "g": ("acceleration", 9.80665),
    "mg": ("acceleration", 9.80665e-3),
    "m/s2": ("acceleration", 1.0),
}
_SPELLINGS: Final = {
    "volt": "V", "volts": "V", "millivolt": "mV", "millivolts": "mV", "microvolt": "uV", "microvolts": "uV",
    "nanovolt": "nV", "nanovolts": "nV", "v": "V", "mv": "mV", "uv": "uV", "nv": "nV",
    "\N{GREEK SMALL LETTER MU}v": "uV",
    "m/s^2": "m/s2", "m/s\N{SUPERSCRIPT TWO}": "m/s2", "m/s**2": "m/s2", "ms-2": "m/s2",
    "m*s^-2": "m/s2", "m s-2": "m/s2",
}  # fmt: skip
"""Other spellings, in lower case; the micro sign in lower case is the Greek letter."""

CONVERTED: Final = "converted from "
"""How the note on a recording in another unit than the others begins."""


BETWEEN: Final = ", "
"""What stands between the units of channels where these have several."""


def of_each(units: str, channels: int) -> tuple[str, ...]:
    """Return the unit of each channel, from the unit of a data set; empty if it does not tell them."""
    units_in_order = tuple(units.split(BETWEEN))
    if len(units_in_order) == 1:
        return units_in_order * channels
    return units_in_order if len(units_in_order) == channels else ()


def known(unit: str) -> bool:
    """Return whether a unit can be converted."""
    return _spelled(unit) in _KNOWN


def is_voltage(unit: str) -> bool:
    """Return whether a unit is that of a voltage, as ECG and EEG have."""
    return _KNOWN.get(_spelled(unit), ("", 0.0))[0] == "volt"


def factor(given: str, wanted: str) -> float | None:
    """Return the factor from one unit to another, 1 for equal names; None if they cannot be converted."""
    spelled = _spelled(given)
    wanted_spelled = _spelled(wanted)
    if spelled == wanted_spelled:
        return 1.0
    if spelled not in _KNOWN or wanted_spelled not in _KNOWN:
        return None
    kind, size = _KNOWN[spelled]
    wanted_kind, wanted_size = _KNOWN[wanted_spelled]
    return size / wanted_size if kind == wanted_kind else None


def conversion_notes(given: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """Return a note on each pair of units of channels that is converted: "converted from uV to mV"."""
    pairs = dict.fromkeys(zip(given, wanted, strict=True))
    return tuple(f"{CONVERTED}{unit} to {other}" for unit, other in pairs if factor(unit, other) not in (None, 1.0))


def _spelled(unit: str) -> str:
    plain = unit.strip().replace("\N{MICRO SIGN}", "\N{GREEK SMALL LETTER MU}")
    return plain if plain in _KNOWN else _SPELLINGS.get(plain.lower(), plain)
