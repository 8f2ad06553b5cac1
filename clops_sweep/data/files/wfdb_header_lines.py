"""The lines of a WFDB header, looked at strictly: the wfdb package takes defaults for what it cannot read.

header(5) of the WFDB manual says what a header holds. A gain of nan would otherwise be the default of 200, and a rate
of -250 Hz the default of 250.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

from clops_sweep.data.files.folder import shorten
from clops_sweep.errors import UsageError

GAINS: Final = (1.0, 1e6)
"""Steps per mV: with fewer, all of a heart beat is a step or two, and with more it does not fit into 16 bits."""
LARGEST_BASELINE: Final = 2**24
"""Beyond it, float32 does not tell neighbouring stored values apart."""

_AS_PUBLISHED: Final = "use the record as its publisher ships it"
_RATE: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(/.*)?")
_WHOLE: Final = re.compile(r"-?[0-9]{1,15}")
_COUNT: Final = re.compile(r"[0-9]{1,15}")
_NAME: Final = re.compile(r"[-A-Za-z0-9_]+")
_FILE: Final = re.compile(r"[-A-Za-z0-9_]+\.[A-Za-z0-9_]+")
_GAIN: Final = re.compile(
    r"(?P<gain>-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?)(?:\((?P<baseline>[^()/]*)\))?(?:/(?P<unit>\S+))?"
)


def check_header_lines(path: Path, text: str, any_unit: bool = False) -> None:
    """Raises UsageError, with line and field, where names and numbers of a header are not such as a publisher writes.

    A gain of 0, or none, says that the signal is not calibrated. header(5) suggests 200 for it; frames in mV cannot be
    made of a guess, and it is refused. With `any_unit` signals need not be in mV, and may have any gain above 0.
    """
    if "::" in str(path):
        raise UsageError(f"{shorten(path)}: '::' in a path is an address to the wfdb package; use a folder without it")
    if not _NAME.fullmatch(path.stem):
        raise UsageError(
            f"{shorten(path)}: the record's name has more than the letters A to Z, digits, _ and -; {_AS_PUBLISHED}"
        )
    lines = [
        (number, line.strip())
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.strip().startswith("#")
    ]
    if not lines:
        return  # the wfdb package says that this is no header
    (number, record), *signals = lines
    _check_record_line(path, number, record.split(), len(signals))
    for number, line in signals:
        _check_signal_line(path, number, line.split(None, 8), any_unit)


def _check_record_line(path: Path, number: int, fields: Sequence[str], signals: int) -> None:
    if "/" in fields[0]:
        _refuse(path, number, f"record name {fields[0][:40]!r} announces several segments, expected a single one")
    count, rate, samples = [*fields[1:4], "", "", ""][:3]
    if not _COUNT.fullmatch(count) or int(count) not in (0, signals):
        _refuse(path, number, f"number of signals {count[:40]!r}, expected {signals} as there are lines of signals")
    match = _RATE.fullmatch(rate)
    if rate and (match is None or not 0 < float(match[1]) < float("inf")):
        _refuse(path, number, f"sampling rate {rate[:40]!r}, expected a positive number such as 500")
    if samples and not _COUNT.fullmatch(samples):
        _refuse(path, number, f"number of samples {samples[:40]!r}, expected a whole number such as 5000")


def _check_signal_line(path: Path, number: int, fields: Sequence[str], any_unit: bool) -> None:
    file, _, gain, *rest = [*fields, "", "", ""] if len(fields) < 3 else fields
    if not _FILE.fullmatch(file):
        what = f"signal file {file[:40]!r}, expected a name of the letters A to Z, digits, _ and - such as 100.dat"
        _refuse(path, number, what)
    match = _GAIN.fullmatch(gain)
    if any_unit and (match is None or not 0 < float(match["gain"]) < float("inf")):
        _refuse(path, number, f"gain {gain[:40]!r}, expected a number above 0 such as 1000(0)/mV")
    if match is None or not (any_unit or GAINS[0] <= float(match["gain"]) <= GAINS[1]):
        least, most = (f"{bound:,.0f}" for bound in GAINS)
        _refuse(path, number, f"gain {gain[:40]!r}, expected {least} to {most} steps per mV such as 1000(0)/mV")
    if not any_unit and match["unit"] not in (None, "mV"):
        _refuse(path, number, f"unit {match['unit'][:40]!r}, expected mV as in 1000(0)/mV")
    _check_level(path, number, "baseline", match["baseline"])
    for what, value in zip(
        ("ADC resolution", "ADC zero", "initial value", "checksum", "block size"), rest, strict=False
    ):
        if not _WHOLE.fullmatch(value):
            _refuse(path, number, f"{what} {value[:40]!r}, expected a whole number")
    _check_level(path, number, "ADC zero", rest[1] if len(rest) > 1 else None)


def _check_level(path: Path, number: int, what: str, value: str | None) -> None:
    if value is not None and not (_WHOLE.fullmatch(value) and abs(int(value)) <= LARGEST_BASELINE):
        most = f"{LARGEST_BASELINE:,}"
        _refuse(path, number, f"{what} {value[:40]!r}, expected a whole number from -{most} to {most}")


def _refuse(path: Path, number: int, what: str) -> NoReturn:
    raise UsageError(f"{shorten(path)}: line {number}: {what}; {_AS_PUBLISHED}")
