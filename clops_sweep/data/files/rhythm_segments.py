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
    changes = [
        (int(sample), note) for sample, symbol, note in zip(samples, symbols, notes, strict=True) if symbol == "+"
    ]
    ends = [*(begin for begin, _ in changes), length][1:]
    return [Segment(begin, end, note) for (begin, note), end in zip(changes, ends, strict=True) if begin < end]


def labelled_segments(
    samples: NDArray[np.int64], symbols: Sequence[str], notes: Sequence[str], length: int, used: Container[str]
) -> list[Segment]:
    """Return the segments of rhythm annotations if a used label is among them, or none among the other annotations.

    Otherwise, the segments between the other annotations. Their label is the note of a comment (symbol ``"``), and the
    symbol of any other annotation; successive annotations of one label are one segment.
    """
    rhythms = rhythm_segments(samples, symbols, notes, length)
    events: list[tuple[int, str]] = []
    for sample, symbol, note in zip(samples, symbols, notes, strict=True):
        label = note if symbol == '"' and note else symbol
        if symbol != "+" and (not events or events[-1][1] != label):
            events.append((int(sample), label))
    if any(each.rhythm in used for each in rhythms) or not any(label in used for _, label in events):
        return rhythms
    ends = [*(begin for begin, _ in events), length][1:]
    return [Segment(begin, end, label) for (begin, label), end in zip(events, ends, strict=True) if begin < end]
