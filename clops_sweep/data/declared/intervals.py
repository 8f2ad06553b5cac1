"""The labelled intervals of a recording."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from clops_sweep.data.declared.clocks import DAY
from clops_sweep.data.records import Stretch
from clops_sweep.data.windowing import Rule
from clops_sweep.errors import UsageError


class Interval(NamedTuple):
    """Start and end of a labelled interval, the index of its class, and where it is given, such as a line of a table.

    Both are in seconds since the start of the recording, in samples, or in seconds since 1970. An end of infinity is
    the end of the recording. An interval without a duration ends where it starts.
    """

    start: float
    end: float
    label: int
    where: str


@dataclass(frozen=True)
class Intervals:
    """The labelled intervals of one recording.

    Attributes:
        rows: the intervals.
        in_samples: whether starts and ends are in samples.
        dated: whether they are in seconds since 1970.
        begin: the start of the recording in seconds since 1970, if known.
        zoned: whether dates were given with a time zone.
    """

    rows: tuple[Interval, ...]
    in_samples: bool = False
    dated: bool = False
    begin: float | None = None
    zoned: bool = False

    def stretches(self, rate: float, samples: int) -> tuple[list[Stretch], list[str]]:
        """Return the intervals of a recording in samples, sorted, and notes on those that are outside.

        Raises:
            UsageError: an interval is empty, ends after the recording, or overlaps another one; or those that are dates
                are all outside the recording, or a day or more apart from it.
        """
        rows, notes = self._since_begin(samples / rate) if self.dated else (list(self.rows), [])
        stretches = list[Stretch]()
        scale = 1 if self.in_samples else rate
        unit = "samples" if self.in_samples else "s"
        for start, end, label, where in sorted(rows):
            said = f"{where}: the interval from {start:g} to {end:g} {unit}"
            if start < 0:
                raise UsageError(f"{said} starts before the recording; expected a start from 0")
            if not (start <= end and start < math.inf):
                raise UsageError(f"{said} has no duration; expected a start from 0 and an end after it")
            begin = round(start * scale)
            stop = samples if end == math.inf else round(end * scale)
            if begin >= samples or stop - 1 > samples:  # ends may be rounded up by one sample
                raise UsageError(
                    f"{said} ends after the recording, which has {samples / scale:g} {unit}"
                    + self._if_samples(rate, samples)
                )
            if stretches and begin < stretches[-1].end:
                raise UsageError(f"{said} overlaps the one before, which ends at {stretches[-1].end / scale:g} {unit}")
            stretches.append(Stretch(begin, min(max(stop, begin + 1), samples), label))
        return stretches, notes

    def _if_samples(self, rate: float, samples: int) -> str:
        """Return the remedy for numbers that fit into the recording only as samples."""
        last = max(row.start if row.end == math.inf else row.end for row in self.rows)
        if self.in_samples or self.dated or rate <= 1 or last > samples:
            return ""
        return f'; if these are samples, divide them by {rate:g}, or give interval_unit="samples" with a table'

    def _since_begin(self, seconds: float) -> tuple[list[Interval], list[str]]:
        """Return the parts of dated intervals within a recording, in seconds since its start, and notes."""
        if not self.rows:
            return [], []
        first = self.rows[0]
        if self.begin is None:
            raise UsageError(
                f"{first.where}: start is a date, and the start of the recording is not known; give time, the column "
                "with it, or seconds"
            )
        kept = list[Interval]()
        for row in self.rows:
            start, end = row.start - self.begin, row.end - self.begin
            if start > end:
                raise UsageError(f"{row.where}: the interval ends {start - end:g} s before its start")
            if start < seconds and (end > 0 or start == end == 0):
                kept.append(Interval(max(start, 0.0), min(end, seconds), row.label, row.where))
        if not kept:
            away = min(row.start for row in self.rows) - self.begin
            said = f"{abs(away) / DAY:,.2f} days" if abs(away) > DAY else f"{abs(away):,.10g} s"
            raise UsageError(
                f"{first.where}: no interval lies within the recording of {seconds:,.10g} s: the first one starts "
                f"{said} {'before' if away < 0 else 'after'} its start; correct the dates of both"
            )
        outside = len(self.rows) - len(kept)
        plural = "s" if outside > 1 else ""
        return kept, [f"{outside} labelled interval{plural} outside the recording left out"] if outside else []


def require_durations(rule: Rule, given: Iterable[Intervals | None]) -> None:
    """Refuse intervals without a duration if frames lie within intervals, or belong to the one that fills most of them.

    Raises:
        UsageError: some have none.
    """
    if rule not in ("within", "majority"):
        return
    rows = [row for intervals in given if intervals is not None for row in intervals.rows]
    points = [row for row in rows if row.start == row.end]
    if points:
        how_many = f"{len(points)} of {len(rows)} labelled intervals have" if len(rows) > 1 else "its interval has"
        raise UsageError(
            f"{points[0].where}: {how_many} no duration; give their ends, until_next=True if each lasts until the next "
            'one, or window_around="beat" for a frame around each'
        )
