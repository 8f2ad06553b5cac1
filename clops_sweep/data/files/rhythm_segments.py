"""Segments of one rhythm, from the rhythm annotations of a WFDB file."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

AAMI = {
    **dict.fromkeys("NLRej", "N"),
    **dict.fromkeys("AaJS", "S"),
    **dict.fromkeys("VE", "V"),
    "F": "F",
    **dict.fromkeys("/fQ", "Q"),
}
"""The class of each annotation of a beat, after ANSI/AAMI EC57: normal, supraventricular, ventricular, fusion, unknown.
"""


@dataclass(frozen=True)
class Segment:
    """A segment of one rhythm: samples begin..end (end excluded), and the rhythm's annotation."""

    begin: int
    end: int
    rhythm: str


def rhythm_segments(
    samples: NDArray[np.int64], symbols: Sequence[str], notes: Sequence[str], length: int
) -> list[Segment]:
    """Return the segments between rhythm annotations: a rhythm lasts until the next one or the end of the record."""
    found = zip(samples, symbols, notes, strict=True)
    return _between([(sample, note) for sample, symbol, note in found if symbol == "+"], length)


def _between(changes: Sequence[tuple[np.int64, str]], length: int) -> list[Segment]:
    """Return the segments from each change to the next one, or to the end of the record."""
    ends = [*(int(begin) for begin, _ in changes), length][1:]
    return [Segment(int(begin), end, label) for (begin, label), end in zip(changes, ends, strict=True) if begin < end]


def labelled_segments(
    samples: NDArray[np.int64], symbols: Sequence[str], notes: Sequence[str], length: int, used: Container[str]
) -> list[Segment]:
    """Return the segments of rhythm annotations if a used label is among them, or none among the other annotations.

    Otherwise, the segments between the other annotations. Their label is the note of a comment (symbol ``"``), and the
    symbol of any other annotation; successive annotations of one label are one segment.
    """
    rhythms = rhythm_segments(samples, symbols, notes, length)
    found = zip(samples, symbols, notes, strict=True)
    others = [(at, note if symbol == '"' and note else symbol) for at, symbol, note in found if symbol != "+"]
    events = [next(equal) for _, equal in groupby(others, lambda other: other[1])]
    if any(each.rhythm in used for each in rhythms) or not any(label in used for _, label in events):
        return rhythms
    return _between(events, length)
