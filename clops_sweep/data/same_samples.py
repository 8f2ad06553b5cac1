"""Detect recordings that exist twice under two names, which could put one person into two splits."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.folder import shorten
from clops_sweep.data.records import Frames, Source

OF_LEAKS: Final = (
    "records with the samples",
    "frames with the samples",
    "moments with the samples",
    "people with names",
    "domains of",
)
"""Begins of the notes on declared data that every launch shows: one person may be in two splits, or one domain two."""

_MOST_NAMED = 10


def samples_digest(samples: NDArray[Any]) -> bytes:
    """Return a digest of samples: 16 bytes of BLAKE2b."""
    return blake2b(np.ascontiguousarray(samples).data, digest_size=16).digest()


class SeenFrames:
    """Digests of the frames written so far, to find equal ones of different people.

    Args:
        together: channels that are one moment, whose samples must all be equal; 1 if each frame is on its own.
    """

    def __init__(self, together: int) -> None:
        self._together = together
        self._digests: list[bytes] = []

    def add(self, stored: NDArray[Any]) -> None:
        """Add frames [m, samples], all channels of a moment together."""
        for moment in stored.reshape(len(stored) // self._together, -1):
            self._digests.append(blake2b(np.ascontiguousarray(moment).data, digest_size=8).digest())

    def note(self, patients: NDArray[np.int32], names: Sequence[str]) -> list[str]:
        """Return a sentence about frames with the samples of a frame of another person, if there are any.

        Args:
            patients: the person of each frame [n], as a position in `names`.
            names: the people.
        """
        people = patients[:: self._together]
        _, numbers = np.unique(np.array(self._digests, "S8"), return_inverse=True)
        order = np.lexsort((people, numbers))
        same = np.diff(numbers[order]) == 0
        places = np.flatnonzero(same & (np.diff(people[order]) != 0))
        if not len(places):
            return []
        shared = np.unique(numbers[order[places]])
        count = int(np.isin(numbers, shared).sum()) - len(shared)
        first, second = (shorten(names[code]) for code in people[order[places[0] : places[0] + 2]].tolist())
        moments = "moments" if self._together > 1 else "frames"
        return [
            f"{moments} with the samples of one of another person: {count:,}, such as {first} and {second}: parts of a "
            "recording may be there twice, and in two splits; leave them out, or give both one patient"
        ]


class _First(NamedTuple):
    """The first recording with some samples, without them.

    Attributes:
        record: its name.
        place: its file, or its name, for messages.
        signal_file: the file with its samples, if it has one of its own.
        member: its part of a combined data set.
        patient: its person.
    """

    record: str
    place: str
    signal_file: Path | None
    member: str
    patient: str


class SeenSamples:
    """The recordings read so far, by their samples, and those kept although an earlier one has the same samples."""

    def __init__(self) -> None:
        self._first: dict[bytes, _First] = {}
        self._kept: list[str] = []
        self._of_others = 0

    def repeats(self, frames: Frames) -> bool:
        """Return whether one of several recordings has the samples of another, or of an earlier one."""
        digests = frames.recordings
        return len(set(digests)) < len(digests) or not self._first.keys().isdisjoint(digests)

    def problem(self, source: Source, frames: Frames, tolerant: bool) -> str | None:
        """Return a sentence if an earlier record has the same samples, or None. Without a digest, always None.

        With `tolerant`, also None if the two records have a file each: the record is kept and mentioned in `note`.
        """
        listed = frames.windows.patient
        patients = [listed] * len(source.names) if isinstance(listed, str) else listed
        if len(source.names) > 1:  # none of them repeats another
            for name, digest, patient in zip(source.names, frames.recordings, patients, strict=True):
                self._first[digest] = _described(source, name, patient)
            return None
        for digest in frames.recordings:
            this = _described(source, source.record, patients[0])
            first = self._first.setdefault(digest, this)
            if first is not this:
                return self._repeated(this, first, tolerant)
        return None

    def _repeated(self, this: _First, first: _First, tolerant: bool) -> str | None:
        if first.signal_file is not None and first.signal_file == this.signal_file:
            names = f"{shorten(first.record)!r} and {shorten(this.record)!r}"
            return f"{this.place}: is the signal file of two records, {names}; keep one of them"
        if not tolerant or this.member != first.member:
            return f"{this.place}: holds the same samples as {first.place}; keep one of the two records"
        self._kept.append(f"{shorten(this.record)} those of {shorten(first.record)}")
        self._of_others += this.patient != first.patient
        return None

    @property
    def of_others(self) -> int:
        """Number of kept records that have the samples of a record of another person."""
        return self._of_others

    def note(self) -> list[str]:
        """Return a sentence about such kept records, if any."""
        if not self._kept:
            return []
        named = ", ".join([*self._kept[:_MOST_NAMED], *(["..."] if len(self._kept) > _MOST_NAMED else [])])
        return [
            f"records with the samples of an earlier one: {len(self._kept):,} ({named}), of which under another "
            f"patient: {self._of_others:,}; leave them out with data prepare --on-error skip"
        ]


def _described(source: Source, name: str, patient: str) -> _First:
    file = source.signal_file
    place = f"recording {shorten(name)!r}" if not source.files else shorten(file or name)
    return _First(name, place, file, getattr(source, "member", ""), str(patient))
