"""Segments of one rhythm, from the rhythm annotations of a WFDB file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
    samples: NDArray[np.int64], symbols: Sequence[str], notes: Sequence[str], length: int
) -> list[Segment]:
    """Return the segments between rhythm annotations or, in a file without any, between all annotations.

    The label of the latter is the note of a comment (symbol ``"``), and the symbol of any other annotation.
    """
    if "+" in symbols:
        return rhythm_segments(samples, symbols, notes, length)
    labels = [note if symbol == '"' and note else symbol for symbol, note in zip(symbols, notes, strict=True)]
    return rhythm_segments(samples, ["+"] * len(labels), labels, length)
