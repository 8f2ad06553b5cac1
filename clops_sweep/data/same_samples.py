"""Detect recordings that exist twice under two names, which could put one person into two splits."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.folder import shorten
from clops_sweep.data.records import Frames, Source

_MOST_NAMED = 10


def samples_digest(samples: NDArray[Any]) -> bytes:
    """Return a digest of samples: 16 bytes of BLAKE2b."""
    return blake2b(np.ascontiguousarray(samples).data, digest_size=16).digest()


class SeenSamples:
    """The recordings read so far, by their samples, and those kept although an earlier one has the same samples."""

    def __init__(self) -> None:
        self._first: dict[bytes, tuple[Source, str]] = {}
        self._kept: list[str] = []
        self._of_others = 0

    def problem(self, source: Source, frames: Frames, tolerant: bool) -> str | None:
        """Return a sentence if an earlier record has the same samples, or None. Without a digest, always None.

        With `tolerant`, also None if the two records have a file each: the record is kept and mentioned in `note`.
        """
        if frames.recording is None:
            return None
        of = str(frames.windows.patient)
        first, patient = self._first.setdefault(frames.recording, (source, of))
        if first is source:
            return None
        here, there = (shorten(record.signal_file or record.record) for record in (source, first))
        if first.signal_file is not None and first.signal_file == source.signal_file:
            names = f"{shorten(first.record)!r} and {shorten(source.record)!r}"
            return f"{here}: is the signal file of two records, {names}; keep one of them"
        if not tolerant or getattr(source, "member", "") != getattr(first, "member", ""):
            return f"{here}: holds the same samples as {there}; keep one of the two records"
        self._kept.append(f"{shorten(source.record)} those of {shorten(first.record)}")
        self._of_others += of != patient
        return None

    def note(self) -> list[str]:
        """Return a sentence about such kept records, if any."""
        if not self._kept:
            return []
        named = ", ".join([*self._kept[:_MOST_NAMED], *(["..."] if len(self._kept) > _MOST_NAMED else [])])
        return [
            f"records with the samples of an earlier one: {len(self._kept):,} ({named}), of which under another "
            f"patient: {self._of_others:,}; leave them out with data prepare --on-error skip"
        ]
