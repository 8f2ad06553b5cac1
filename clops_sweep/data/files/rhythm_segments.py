"""Stretches of one rhythm, from the rhythm notes of a WFDB annotation file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Segment:
    """A stretch of one rhythm: samples begin..end (end excluded), and the rhythm's note."""

    begin: int
    end: int
    rhythm: str


def rhythm_segments(
    samples: NDArray[np.int64], symbols: Sequence[str], notes: Sequence[str], length: int
) -> list[Segment]:
    """Stretches between rhythm notes: a rhythm lasts until the next note, the last one until the record ends."""
    changes = [
        (int(sample), note) for sample, symbol, note in zip(samples, symbols, notes, strict=True) if symbol == "+"
    ]
    ends = [*(begin for begin, _ in changes), length][1:]
    return [Segment(begin, end, note) for (begin, note), end in zip(changes, ends, strict=True) if begin < end]
