"""Interrupted EDF+ and BDF+ files: the times of their records, and signals with missing samples between the pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.folder import shorten
from clops_sweep.data.files.regular_files import open_regular
from clops_sweep.errors import UsageError

_ENDS_ONSET: Final = b"\x14"
"""The byte that ends the onset of an annotation."""
INTERRUPTED: Final = "is interrupted: its pieces are at their times, with missing samples between them"
"""The note on a file of several pieces."""
_MOST_SAMPLES: Final = 2**29
"""Most samples of a recording with its gaps."""


@dataclass(frozen=True)
class Piece:
    """Records `first` to `last` (excluded) without interruption; `start` is in seconds since the first record."""

    first: int
    last: int
    start: float


def pieces_of(path: Path, count: int, duration: float, fastest: float) -> list[Piece]:
    """Return the pieces of an interrupted file.

    A record that begins within half a sample of the end of the one before goes on with its piece.

    Args:
        path: the file.
        count: number of records.
        duration: seconds of a record.
        fastest: the highest sampling rate in Hz of the signals in use.

    Raises:
        UsageError: a record has no time, or begins before the one before ends.
    """
    onsets = _onsets(path, count)
    tolerance = 0.5 / fastest
    begins = [0]
    for record in range(1, count):
        expected = onsets[begins[-1]] + (record - begins[-1]) * duration
        late = onsets[record] - expected
        if late < -2 * tolerance:
            raise UsageError(
                f"{shorten(path)}: record {record + 1} starts at {onsets[record]:.10g} s, before the one before ends "
                f"at {expected:.10g} s; expected records in the order of time"
            )
        if abs(late) > tolerance:
            begins.append(record)
    ends = [*begins[1:], count]
    return [Piece(first, last, onsets[first] - onsets[0]) for first, last in zip(begins, ends, strict=True)]


def incomplete_bytes(path: Path) -> int:
    """Return the number of bytes after the last complete record, as of a recorder that stopped within one."""
    with open_regular(path) as file:
        fixed = file.read(256)
        signals = int(fixed[252:256])
        lengths = file.read(256 * signals)[216 * signals : 224 * signals]
    samples = sum(int(lengths[8 * signal : 8 * signal + 8]) for signal in range(signals))
    width = 3 if fixed[:1] == b"\xff" else 2
    return (path.stat().st_size - int(fixed[184:192])) % (width * samples)


def fraction_of_start(path: Path) -> float:
    """Return the seconds from the start in the header, which has whole seconds, to the first sample."""
    with open_regular(path) as file:
        kind = file.read(256)[192:196]
    return _onsets(path, 1)[0] if kind in (b"EDF+", b"BDF+") else 0.0


def _onsets(path: Path, count: int) -> list[float]:
    """Return the start of each record in seconds, from the first annotation of its first channel of annotations."""
    onsets = []
    for record, content in enumerate(next(annotation_bytes(path, count)), 1):
        onset, _, _ = content.partition(_ENDS_ONSET)
        try:
            onsets.append(float(onset))
        except ValueError:
            raise UsageError(f"{shorten(path)}: record {record} has no time; expected one in each record") from None
    return onsets


def annotation_bytes(path: Path, count: int) -> Iterator[list[bytes]]:
    """Yield for each channel of annotations what each record holds of it.

    Args:
        path: the file.
        count: number of records.
    """
    with open_regular(path) as file:
        fixed = file.read(256)
        is_bdf = fixed[:1] == b"\xff"
        signals = int(fixed[252:256])
        fields = file.read(256 * signals)
        lengths = fields[216 * signals : 224 * signals]
        width = 3 if is_bdf else 2
        sizes = [width * int(lengths[8 * signal : 8 * signal + 8]) for signal in range(signals)]
        header = int(fixed[184:192])
        for signal in range(signals):
            label = fields[16 * signal : 16 * signal + 16].strip()
            if label != (b"BDF Annotations" if is_bdf else b"EDF Annotations"):
                continue
            contents = []
            for record in range(count):
                file.seek(header + record * sum(sizes) + sum(sizes[:signal]))
                contents.append(file.read(sizes[signal]))
            yield contents


def laid_out(
    path: Path, signals: Sequence[NDArray[Any]], rates: Sequence[float], duration: float, pieces: Sequence[Piece]
) -> list[NDArray[np.float64]]:
    """Return signals at their times, with NaN between pieces.

    Args:
        path: the file.
        signals: samples of each channel, piece after piece.
        rates: sampling rate of each channel in Hz.
        duration: seconds of a record.
        pieces: the pieces.

    Raises:
        UsageError: the gaps are so long that the recording does not fit into memory.
    """
    end = pieces[-1].start + (pieces[-1].last - pieces[-1].first) * duration
    if end * sum(rates) > _MOST_SAMPLES:
        recorded = pieces[-1].last * duration
        raise UsageError(
            f"{shorten(path)}: has {recorded:,.10g} s of samples within {end:,.10g} s, too long with its gaps; write "
            "its pieces as EDF files"
        )
    wholes = []
    for samples, rate in zip(signals, rates, strict=True):
        per_record = round(rate * duration)
        places = [0]
        for before, piece in pairwise(pieces):
            stop = places[-1] + (before.last - before.first) * per_record
            places.append(max(stop, round(piece.start * rate)))
        length = places[-1] + (pieces[-1].last - pieces[-1].first) * per_record
        whole = np.full(length, np.nan)
        for piece, begin in zip(pieces, places, strict=True):
            part = samples[piece.first * per_record : piece.last * per_record]
            whole[begin : begin + len(part)] = part
        wholes.append(whole)
    return wholes
