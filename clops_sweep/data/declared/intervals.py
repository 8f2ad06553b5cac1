"""The labelled intervals of a recording."""

from __future__ import annotations

from dataclasses import dataclass

from clops_sweep.data.records import Stretch
from clops_sweep.errors import UsageError


@dataclass(frozen=True)
class Intervals:
    """The labelled intervals of one recording.

    `rows` are start, end and class index of each, and its place for messages, such as a line of a table. Starts and
    ends are in seconds since the start of the recording, or in samples.
    """

    rows: tuple[tuple[float, float, int, str], ...]
    in_samples: bool = False

    def stretches(self, rate: float, samples: int) -> list[Stretch]:
        """Return the intervals of a recording in samples, sorted.

        Raises:
            UsageError: an interval is empty, ends after the recording, or overlaps another one.
        """
        found, scale, unit = list[Stretch](), 1 if self.in_samples else rate, "samples" if self.in_samples else "s"
        for start, end, label, where in sorted(self.rows):
            said = f"{where}: the interval from {start:g} to {end:g} {unit}"
            if not 0 <= start <= end < float("inf"):
                raise UsageError(f"{said} has no duration; expected a start from 0 and an end after it")
            begin, stop = round(start * scale), round(end * scale)
            if begin >= samples or stop - 1 > samples:  # ends may be rounded up by one sample
                raise UsageError(f"{said} ends after the recording, which has {samples / scale:g} {unit}")
            if found and begin < found[-1].end:
                raise UsageError(f"{said} overlaps the one before, which ends at {found[-1].end / scale:g} {unit}")
            found.append(Stretch(begin, min(max(stop, begin + 1), samples), label))
        return found
