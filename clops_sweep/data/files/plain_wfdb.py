"""WFDB headers and signal files as nearly all are, read without the wfdb package, which takes milliseconds for each.

What is not of this plain form (several files, skew, several samples a frame, other formats, fields left out) is read by
that package; what is, comes out as from it, value for value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_RECORD: Final = re.compile(
    r"[-\w]+[ \t]+(?P<signals>[0-9]{1,4})[ \t]+(?P<rate>[0-9]{1,9})(\.0*)?[ \t]+(?P<samples>[0-9]{1,12})"
    r"(?P<date>[ \t]+\S.*)?",
    re.ASCII,
)
_DATE: Final = re.compile(r"\d:\d|[-/]\w+[-/]\d")
_SIGNAL: Final = re.compile(
    r"(?P<file>[-\w]+\.\w+)[ \t]+(?P<format>[0-9]+)(?:\+(?P<offset>[0-9]{1,12}))?"
    r"[ \t]+(?P<gain>[0-9]+(?:\.[0-9]*)?)(?:\((?P<baseline>-?[0-9]+)\))?(?:/(?P<unit>[\w^\-?%/]+))?"
    r"[ \t]+[0-9]+[ \t]+(?P<zero>-?[0-9]+)[ \t]+-?[0-9]+[ \t]+(?P<checksum>-?[0-9]+)[ \t]+[0-9]+"
    r"[ \t]+(?P<name>\S[^\t]*)",
    re.ASCII,
)


@dataclass(frozen=True)
class PlainRecord:
    """What a header says, under the names that the wfdb package gives it."""

    fs: float
    sig_len: int
    file_name: Sequence[str]
    sig_name: Sequence[str]
    units: Sequence[str]
    adc_gain: Sequence[float]
    baseline: Sequence[int]
    comments: Sequence[str]
    fmt: Sequence[str]
    byte_offset: Sequence[int | None]
    checksum: Sequence[int]

    @property
    def n_sig(self) -> int:
        """How many signals."""
        return len(self.sig_name)

    @property
    def skew(self) -> list[None]:
        """None of any signal."""
        return [None] * self.n_sig

    @property
    def samps_per_frame(self) -> list[int]:
        """One of every signal."""
        return [1] * self.n_sig


def plain_record(text: str) -> PlainRecord | None:
    """A header's fields, from its text; None where it is not of the plain form. Time and date are not looked at."""
    if not text.isascii():
        return None
    lines = [line for each in text.splitlines() if (line := each.strip())]
    comments = [line.strip(" \t#") for line in lines if line.startswith("#")]
    record, *signals = [line for line in lines if not line.startswith("#")] or [""]
    head = _RECORD.fullmatch(record)
    if head is None or (head["date"] and not _DATE.search(head["date"])) or int(head["signals"]) != len(signals):
        return None
    found = [match for line in signals if (match := _SIGNAL.fullmatch(line))]
    if not found or len(found) != len(signals):
        return None
    return PlainRecord(
        float(head["rate"]),
        int(head["samples"]),
        [each["file"] for each in found],
        [each["name"] for each in found],
        [each["unit"] or "mV" for each in found],
        [float(each["gain"]) for each in found],
        [int(each["baseline"] or each["zero"]) for each in found],
        comments,
        [each["format"] for each in found],
        [None if each["offset"] is None else int(each["offset"]) for each in found],
        [int(each["checksum"]) for each in found],
    )


@dataclass(frozen=True)
class Packing:
    """How the signals of a record lie in the one file that has all of them, in turn: format, and bytes before them."""

    form: str
    offset: int

    @classmethod
    def of(cls, record: Any) -> Packing | None:
        """That of a plain record in format 16 or 212; None of any other."""
        if not isinstance(record, PlainRecord) or record.fmt[0] not in ("16", "212"):
            return None
        alike = (set(each) for each in (record.file_name, record.fmt, record.byte_offset))
        return cls(record.fmt[0], record.byte_offset[0] or 0) if all(len(each) == 1 for each in alike) else None

    def samples(self, file: Path, samples: int, signals: int) -> NDArray[np.int16]:
        """The stored samples [samples, signals]."""
        count = samples * signals
        if self.form == "16":
            found: NDArray[np.int16] = np.fromfile(file, "<i2", count, offset=self.offset).astype(np.int16, copy=False)
            return found.reshape(samples, signals)
        # Two samples of 12 bits in three bytes: the low eight of the first, the high four of both, those of the second.
        packed = np.fromfile(file, np.uint8, -(-count * 3 // 2), offset=self.offset)
        first, high, second = np.append(packed, np.zeros(-len(packed) % 3, np.uint8)).reshape(-1, 3).T.astype(np.int16)
        pairs = np.stack([first | (high << 8), second | (high << 4 & 0xF00)], axis=1).reshape(-1)[:count]
        return ((pairs << 4) >> 4).reshape(samples, signals)  # the sign is the twelfth bit
