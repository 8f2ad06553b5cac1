"""Segments of one rhythm, from the rhythm annotations of a WFDB file."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

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
    changes = []
    for sample, symbol, note in zip(samples, symbols, notes, strict=True):
        if symbol == "+":
            changes.append((int(sample), note))
    return _between(changes, length)


def _between(changes: Sequence[tuple[int, str]], length: int) -> list[Segment]:
    """Return the segments from each change to the next one, or to the end of the record."""
    begins = [begin for begin, _ in changes]
    ends = [*begins[1:], length] if changes else []
    segments = []
    for (begin, label), end in zip(changes, ends, strict=True):
        if begin < end:
            segments.append(Segment(begin, end, label))
    return segments


def labelled_segments(
    samples: NDArray[np.int64], symbols: Sequence[str], notes: Sequence[str], length: int, used: Container[str]
) -> list[Segment]:
    """Return the segments of rhythm annotations if a used label is among them, or none among the other annotations.

    Otherwise, the segments between the other annotations. Their label is the note of a comment (symbol ``"``), and the
    symbol of any other annotation; successive annotations of one label are one segment.
    """
    rhythms = rhythm_segments(samples, symbols, notes, length)
    changes: list[tuple[int, str]] = []
    for sample, symbol, note in zip(samples, symbols, notes, strict=True):
        if symbol == "+":
            continue
        label = note if symbol == '"' and note else symbol
        if not changes or label != changes[-1][1]:
            changes.append((int(sample), label))
    rhythm_is_used = any(segment.rhythm in used for segment in rhythms)
    label_is_used = any(label in used for _, label in changes)
    if rhythm_is_used or not label_is_used:
        return rhythms
    return _between(changes, length)
