"""Conversion between spellings and prefixes of the units of physiological signals."""

from __future__ import annotations

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


def known(unit: str) -> bool:
    """Return whether a unit can be converted."""
    return _spelled(unit) in _KNOWN


def factor(given: str, wanted: str) -> float | None:
    """Return the factor from one unit to another, 1 for equal names; None if they cannot be converted."""
    one, other = (_spelled(unit) for unit in (given, wanted))
    if one == other:
        return 1.0
    if one not in _KNOWN or other not in _KNOWN or _KNOWN[one][0] != _KNOWN[other][0]:
        return None
    return _KNOWN[one][1] / _KNOWN[other][1]


def _spelled(unit: str) -> str:
    plain = unit.strip().replace("\N{MICRO SIGN}", "\N{GREEK SMALL LETTER MU}")
    return plain if plain in _KNOWN else _SPELLINGS.get(plain.lower(), plain)
