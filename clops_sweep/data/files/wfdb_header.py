"""A strict reader of WFDB headers: a gain of nan or a rate of -250 Hz is refused, never replaced by a default.

The format is header(5) of the WFDB manual. The wfdb package instead replaces invalid values by defaults, refuses dates
such as 05-May-2020, and takes milliseconds per header.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from clops_sweep.data.files.folder import shorten
from clops_sweep.errors import UsageError

DEFAULT_GAIN: Final = 200.0
"""Steps per unit of a signal whose header gives no gain, or 0 (header(5))."""
_GAINS: Final = (1.0, 1e6)
"""Steps per mV: below, a heart beat spans only a few steps; above, it exceeds 16 bits."""
_LARGEST_BASELINE: Final = 2**24
"""Largest magnitude of a baseline; beyond it, float32 rounds neighbouring stored values to the same number."""
DEFAULT_RATE: Final = 250.0
"""Sampling rate of a header without one, in Hz."""

_REMEDY: Final = "correct the header, or download the record again"
BITS: Final = {"8": 64, "80": 8, "508": 8, "310": 10, "311": 10, "212": 12, "24": 24, "524": 24, "32": 32}
"""Bits of the lowest sample, which means a missing one, by format; 16 in the others. 8 has no missing samples."""
WIDE: Final = ("8", "24", "32", "524")
"""Formats whose samples may not fit into 16 bits; 8 holds differences."""

_RATE: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(/.*)?")
_WHOLE: Final = re.compile(r"-?[0-9]{1,15}")
_COUNT: Final = re.compile(r"[0-9]{1,15}")
_NAME: Final = re.compile(r"[-A-Za-z0-9_]+")
_FILE: Final = re.compile(r"[-A-Za-z0-9_][-A-Za-z0-9_.]*|~")
"""A file beside the header; ~ in the layout of a record of several segments."""
_FORMAT: Final = re.compile(
    r"(?P<form>[0-9]{1,4})(?:x(?P<per>[0-9]{1,4}))?(?P<skew>:[0-9]+)?(?:\+(?P<offset>[0-9]{1,12}))?"
)
_GAIN: Final = re.compile(
    r"(?P<gain>[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?)(?:\((?P<baseline>[^()/]*)\))?(?:/(?P<unit>\S+))?"
)


class SignalLine(NamedTuple):
    """A signal as described by a header.

    `file` holds its samples in a format, `per_frame` at a time, beginning after `offset` bytes; with `skewed`, the
    first samples of the signals were not taken at one moment. (stored - baseline) / gain is in `unit`.
    """

    file: str
    form: str
    per_frame: int
    skewed: bool
    offset: int
    gain: float
    baseline: int
    unit: str
    checksum: int | None
    name: str
    calibrated: bool
    has_unit: bool


@dataclass(frozen=True)
class HeaderLines:
    """A header: sampling rate in Hz and samples per signal (0 if not given), signals, and comments without the #."""

    rate: float
    samples: int
    signals: tuple[SignalLine, ...]
    comments: tuple[str, ...]
    undated: str
    """The header's text without time and date, which the wfdb package may refuse; {samples} stands for their number."""


class HeaderSummary(NamedTuple):
    """What a header refers to: its signal files and number of signals, or the segments of a multi-segment record.

    `segments` have a name and a number of samples; `promised` says how many there are, with how many samples. `narrow`
    says whether all signals are of one rate and 16 bits.
    """

    files: tuple[str, ...]
    signals: int | None
    segments: tuple[tuple[str, str], ...]
    narrow: bool
    promised: tuple[str, str] = ("", "")


def summarize(text: str) -> HeaderSummary:
    """Return what a header refers to, without validating it; `signals` is None if it cannot be parsed."""
    (record, *lines) = [line for line in text.splitlines() if line.strip() and not line.startswith("#")] or [""]
    name, count, _, length = [*record.split()[:4], "", "", "", ""][:4]
    signals = int(count) if _COUNT.fullmatch(count) else None
    fields = [[*line.split()[:2], ""][:2] for line in lines]
    if "/" in name:
        promised = (name.partition("/")[2], length)
        return HeaderSummary((), signals, tuple((segment, samples) for segment, samples in fields), False, promised)
    narrow = True
    for _, form in fields:
        match = _FORMAT.fullmatch(form)
        if match is not None and (int(match["per"] or 1) != 1 or match["form"] in WIDE):
            narrow = False
    return HeaderSummary(tuple(dict.fromkeys(file for file, _ in fields)), signals, (), narrow)


def header_lines(path: Path, text: str, any_unit: bool) -> HeaderLines:
    """Parse the header with this path and text.

    Signals are in mV and calibrated. With `any_unit`, they may have any unit and any gain, where none or 0
    means 200 steps per unit, and the number of samples may be missing.

    Raises:
        UsageError: a name or number is invalid (the message has line and field), or the record has no samples.
    """
    if not _NAME.fullmatch(path.stem):
        raise UsageError(
            f"{shorten(path)}: the record's name has other characters than A to Z, digits, _ and -; rename it"
        )
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    without_comments = [(number, line) for number, line in lines if not line.startswith("#")]
    (number, record), *signals = without_comments or [(1, "")]
    name, count, rate, samples = [*record.split()[:4], "", "", "", ""][:4]
    if not name:
        raise UsageError(f"{shorten(path)}: the header promises no samples; download the record again")
    if "/" in name:
        _refuse(path, number, f"record name {name[:40]!r} announces several segments, expected a single one")
    if not _COUNT.fullmatch(count) or int(count) not in (0, len(signals)):
        _refuse(
            path, number, f"number of signals {count[:40]!r}, expected {len(signals)} as there are lines of signals"
        )
    match = _RATE.fullmatch(rate)
    if rate and (match is None or not 0 < float(match[1]) < float("inf")):
        _refuse(path, number, f"sampling rate {rate[:40]!r}, expected a positive number such as 500")
    if samples and not _COUNT.fullmatch(samples):
        _refuse(path, number, f"number of samples {samples[:40]!r}, expected a whole number such as 5000")
    if not int(count) or not (any_unit or int(samples or 0)):
        raise UsageError(f"{shorten(path)}: the header promises no samples; download the record again")
    return HeaderLines(
        0.0 if match is None else float(match[1]),
        int(samples or 0),
        tuple(_signal(path, number, line.split(None, 8), any_unit) for number, line in signals),
        tuple(line.strip(" \t#") for _, line in lines if line.startswith("#")),
        "\n".join([f"{name} {count} {rate or DEFAULT_RATE} {{samples}}", *(line for _, line in signals), ""]),
    )


def _signal(path: Path, number: int, fields: Sequence[str], any_unit: bool) -> SignalLine:
    given = [*fields, ""][:2]
    file, form, gain, *rest = [*given, str(DEFAULT_GAIN) if any_unit else ""] if len(fields) < 3 else fields
    if not _FILE.fullmatch(file):
        what = f"signal file {file[:40]!r}, expected a name of the letters A to Z, digits, _ and - such as 100.dat"
        _refuse(path, number, what)
    packed = _FORMAT.fullmatch(form)
    if packed is None:
        _refuse(path, number, f"format {form[:40]!r}, expected a number such as 16 or 212")
    match = _GAIN.fullmatch(gain)
    if any_unit and (match is None or not abs(float(match["gain"])) < float("inf")):
        _refuse(path, number, f"gain {gain[:40]!r}, expected a number such as 1000(0)/mV")
    if match is None or not (any_unit or _GAINS[0] <= float(match["gain"]) <= _GAINS[1]):
        least, most = (f"{bound:,.0f}" for bound in _GAINS)
        _refuse(path, number, f"gain {gain[:40]!r}, expected {least} to {most} steps per mV such as 1000(0)/mV")
    if not any_unit and match["unit"] not in (None, "mV"):
        _refuse(path, number, f"unit {match['unit'][:40]!r}, expected mV as in 1000(0)/mV")
    numbers = ("ADC resolution", "ADC zero", "initial value", "checksum", "block size")
    for what, value in zip(numbers, rest, strict=False):
        if not _WHOLE.fullmatch(value):
            _refuse(path, number, f"{what} {value[:40]!r}, expected a whole number")
    zero = _level(path, number, "ADC zero", rest[1] if len(rest) > 1 else "0")
    return SignalLine(
        file,
        packed["form"],
        int(packed["per"] or 1),
        packed["skew"] is not None,
        int(packed["offset"] or 0),
        float(match["gain"]) or DEFAULT_GAIN,
        zero if match["baseline"] is None else _level(path, number, "baseline", match["baseline"]),
        match["unit"] or "mV",
        int(rest[3]) if len(rest) > 3 else None,
        rest[5] if len(rest) > 5 else "",
        len(fields) > 2 and float(match["gain"]) != 0,
        match["unit"] is not None,
    )


def _level(path: Path, number: int, what: str, value: str) -> int:
    if not (_WHOLE.fullmatch(value) and abs(int(value)) <= _LARGEST_BASELINE):
        most = f"{_LARGEST_BASELINE:,}"
        _refuse(path, number, f"{what} {value[:40]!r}, expected a whole number from -{most} to {most}")
    return int(value)


def _refuse(path: Path, number: int, what: str) -> NoReturn:
    raise UsageError(f"{shorten(path)}: line {number}: {what}; {_REMEDY}")
