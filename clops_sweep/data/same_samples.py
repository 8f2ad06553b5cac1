"""Detect recordings that exist twice under two names, which could put one person into two splits."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.folder import shorten
from clops_sweep.data.overlaps import KEPT, LENGTH, sketches
from clops_sweep.data.records import Frames, Source

OF_REPEATED_RECORDS: Final = "records with the samples"
"""Begin of the note on records that preparation leaves out under --on-error skip, and otherwise keeps."""

OF_LEAKS: Final = (
    OF_REPEATED_RECORDS,
    "frames with the samples",
    "moments with the samples",
    "frames with the shape",
    "moments with the shape",
    "frames with a piece",
    "moments with a piece",
    "people with names",
    "domains of",
)
"""Begins of the notes on declared data that every launch shows: one person may be in two splits, or one domain two."""

_MOST_NAMED = 10
_PARTS_OF_SHAPE: Final = 32
"""Means by which the shape of a channel is compared."""
_FEWEST_TURNS: Final = 10
"""Rises that become falls, or falls that become rises, of a moment below which unequal signals may have one shape."""
_FEWEST_OVERLAPS: Final = 2
"""Fewest frames of people with a piece of one of another person that are noted."""
_GRID: Final = 0.1
"""Grid of the means, in standard deviations of them: rounding moves few of them to the next point."""
SHARE_OF_SHAPES: Final = 0.5
"""Share of a person's frames that must have the shapes of another's: calibration pulses of a device are fewer."""


def leaks_of(notes: Sequence[str]) -> list[str]:
    """Return those of a manifest's notes that say that one person, or one domain, may be there under two names."""
    return [note for note in notes if note.startswith(OF_LEAKS)]


def samples_digest(samples: NDArray[Any]) -> bytes:
    """Return a digest of samples: 16 bytes of BLAKE2b."""
    return blake2b(np.ascontiguousarray(samples).data, digest_size=16).digest()


def shape_digests(stored: NDArray[Any], together: int) -> list[bytes]:
    """Return a digest of the shape of each moment, equal for signals that differ in scale, offset or rounding.

    The shape of a channel is its means over 32 parts, standardized and rounded; that of a flat channel is zeros. The
    digest is empty where samples are missing, and for ramps, steps and slow waves, which many people share.

    Args:
        stored: frames [m, samples].
        together: channels that are one moment.
    """
    samples = stored.shape[1]
    parts = min(_PARTS_OF_SHAPE, samples)
    starts = np.arange(parts) * samples // parts
    means = np.add.reduceat(stored, starts, axis=1, dtype=np.float64) / np.diff(starts, append=samples)
    means -= means.mean(1, keepdims=True)
    spread = means.std(1, keepdims=True)
    shapes = np.where(spread > 0, means / np.where(spread > 0, spread, 1), 0)  # zeros for missing samples, too
    rounded = np.rint(shapes / _GRID).astype(np.int16)
    steps = np.sign(np.diff(rounded, axis=1))
    turns = (steps[:, 1:] * steps[:, :-1] < 0).sum(1)
    moments = rounded.reshape(-1, together * parts)
    is_telling = turns.reshape(-1, together).sum(1) >= _FEWEST_TURNS
    is_whole = np.isfinite(means).reshape(len(moments), -1).all(1)
    digests = []
    for moment, is_known in zip(moments, is_telling & is_whole, strict=True):
        digests.append(blake2b(moment.data, digest_size=8).digest() if is_known else b"")
    return digests


class SeenFrames:
    """Digests of the frames written so far, to find those of different people that are equal, overlap or look alike.

    Args:
        together: channels that are one moment, whose samples must all be equal; 1 if each frame is on its own.
    """

    def __init__(self, together: int) -> None:
        self._together = together
        self._digests: list[bytes] = []
        self._shapes: list[bytes] = []
        self._sketches: list[NDArray[np.bytes_]] = []
        self._sketched: list[NDArray[np.int64]] = []
        """The moments of the sketches."""

    def add(self, stored: NDArray[Any], leads: NDArray[np.int16]) -> None:
        """Add frames [m, samples], all channels of a moment together.

        Args:
            stored: the frames.
            leads: the channel of each frame, [m]. Overlaps are looked for in the first one.
        """
        of_first = np.flatnonzero(leads == 0)
        self._sketches.append(sketches(stored[of_first]))
        self._sketched.append(len(self._digests) + of_first // self._together)
        for moment in stored.reshape(len(stored) // self._together, -1):
            self._digests.append(blake2b(np.ascontiguousarray(moment).data, digest_size=8).digest())
        self._shapes += shape_digests(stored, self._together)

    def note(self, patients: NDArray[np.int32], names: Sequence[str]) -> list[str]:
        """Return a sentence about frames with the samples of a frame of another person, if there are any.

        Args:
            patients: the person of each frame [n], as a position in `names`.
            names: the people.
        """
        people = patients[:: self._together]
        moments = "moments" if self._together > 1 else "frames"
        notes = []
        digests = np.array(self._digests, "S8")
        equal = _shared(digests, people)
        if len(equal):
            count = len(equal) - len(np.unique(digests[equal]))
            first, second = _two_people(digests, people, equal, names)
            notes.append(
                f"{moments} with the samples of one of another person: {count:,}, such as {first} and {second}: parts "
                "of a recording may be there twice, and in two splits; leave them out, or give both one patient"
            )
        notes += self._note_on_overlaps(people, equal, names)
        shapes = np.array(self._shapes, "S8")
        shapes[equal] = b""
        alike = _shared(shapes, people)
        frames_of = np.bincount(people)
        alike_of = np.bincount(people[alike], minlength=len(frames_of))
        alike = alike[alike_of[people[alike]] >= SHARE_OF_SHAPES * frames_of[people[alike]]]
        if len(alike):
            first, second = _two_people(shapes, people, _shared(shapes, people), names)
            notes.append(
                f"{moments} with the shape of one of another person, in another scale, offset or rounding: "
                f"{len(alike):,}, such as {first} and {second}: a recording may be there twice, and in two splits; "
                "leave it out, or give both one patient"
            )
        return notes

    def _note_on_overlaps(self, people: NDArray[np.int32], equal: NDArray[np.int64], names: Sequence[str]) -> list[str]:
        """Return a sentence about moments with some samples in a row of one of another person; equal ones do not count.

        Args:
            people: the person of each moment.
            equal: the moments that are equal to one of another person.
            names: the people.
        """
        moments = np.repeat(np.concatenate(self._sketched), KEPT)
        digests = np.concatenate(self._sketches).ravel()
        digests[np.isin(moments, equal)] = b""
        rows = _shared(digests, people[moments])
        count = len(np.unique(moments[rows]))
        if count < _FEWEST_OVERLAPS:
            return []
        what = "moments" if self._together > 1 else "frames"
        first, second = _two_people(digests, people[moments], rows, names)
        return [
            f"{what} with a piece of one of another person, at least {LENGTH} samples in a row: {count:,} or more, "
            f"such as {first} and {second}: they may be cut from one recording, and be in two splits; give both one "
            "patient"
        ]


def _two_people(
    digests: NDArray[np.bytes_], people: NDArray[np.int32], rows: NDArray[np.int64], names: Sequence[str]
) -> tuple[str, str]:
    """Return the names of two people of whom the first of some rows with shared digests tells."""
    of_first = rows[digests[rows] == digests[rows[0]]]
    first, second = np.unique(people[of_first])[:2].tolist()
    return shorten(names[first]), shorten(names[second])


def _shared(digests: NDArray[np.bytes_], people: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the rows whose digest is that of a row of another person, in the order of digests and people.

    Empty digests do not count.
    """
    _, numbers = np.unique(digests, return_inverse=True)
    order = np.lexsort((people, numbers))
    same = np.diff(numbers[order]) == 0
    of_two = np.flatnonzero(same & (np.diff(people[order]) != 0) & (digests[order[1:]] != b""))
    shared = np.unique(numbers[order[of_two]])
    return order[np.isin(numbers[order], shared)]


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
        self._kept.append(f"{shorten(this.record)} repeats {shorten(first.record)}")
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
            f"{OF_REPEATED_RECORDS} of an earlier record: {len(self._kept):,} ({named}){_of_others(self._of_others)}; "
            "leave them out with data prepare --on-error skip"
        ]


def _of_others(count: int) -> str:
    """Return how many of some repeated records another patient has, in a clause."""
    if not count:
        return "; each is of the same patient as the earlier one"
    return f"; {count:,} of them {'is' if count == 1 else 'are'} of another patient than the earlier one"


def _described(source: Source, name: str, patient: str) -> _First:
    file = source.signal_file
    place = f"recording {shorten(name)!r}" if not source.files else shorten(file or name)
    return _First(name, place, file, getattr(source, "member", ""), str(patient))
