"""Labelled events of a recording: from annotations of its own or another file, or from a table such as BIDS events."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clops_sweep.data.declared.clocks import Start, moment, side, until_next
from clops_sweep.data.files.csv_table import table_lines, text_form, thousands_refused, with_thousands
from clops_sweep.data.files.folder import shorten
from clops_sweep.errors import UsageError, shown

_NO_DURATION = ("n/a", "")
"""Cells of a table for an event without a duration."""

Event = tuple[float, float, str]
"""Start and end in seconds, and the label. An event without a duration ends where it starts."""


@dataclass(frozen=True)
class Events:
    """Events with seconds since the start of the signal, and what was done to them.

    `has_own_clock` tells that they were timed by another clock than the signal, so that they may begin before it or end
    after it.
    """

    intervals: list[Event]
    notes: tuple[str, ...] = ()
    has_own_clock: bool = False

    def shifted(self, seconds: float, said: bool = False) -> Events:
        """Return the events later by some seconds; a note says so if `said`."""
        if not seconds:
            return self
        rows = [(start + seconds, end + seconds, label) for start, end, label in self.intervals]
        note = (
            f"its annotations start {abs(seconds):.10g} s {side(seconds)} the signal: their onsets are shifted by that"
        )
        return Events(rows, (*self.notes, note) if said else self.notes, has_own_clock=True)

    def placed(self, seconds: float, what: str, closes: bool) -> Events:
        """Return the events within a recording.

        Args:
            seconds: duration of the recording.
            what: the file of the events, for messages.
            closes: whether an event without a duration lasts until the next one, or the end of the recording.

        Raises:
            UsageError: no event lies within the recording.
        """
        rows = self.intervals
        if closes:
            ends = until_next([start for start, _, _ in rows], [end for _, end, _ in rows])
            rows = [(start, end, label) for (start, _, label), end in zip(rows, ends, strict=True)]
        last = seconds if self.has_own_clock else math.inf
        kept = list[Event]()
        for start, end, label in rows:
            begins_before_end = start < last
            ends_after_begin = end > 0 or (start == end == 0)
            if begins_before_end and ends_after_begin:
                kept.append((max(start, 0.0), seconds if end == math.inf else min(end, last), label))
        if rows and not kept:
            first = min(start for start, _, _ in rows)
            final = max(start for start, _, _ in rows)
            raise UsageError(
                f"{what}: none of its {len(rows)} annotations lies within the recording: they start from {first:,.10g} "
                f"to {final:,.10g} s where the recording has {seconds:,.10g} s; correct the start times of both"
            )
        left_out = len(rows) - len(kept)
        if not left_out:
            return replace(self, intervals=kept)
        note = f"{left_out} annotation{'s' if left_out > 1 else ''} outside the recording left out"
        return replace(self, intervals=kept, notes=(*self.notes, note))


def event_table(path: Path, column: str, start: Start | None, offset: float) -> Events:
    """Return the events of a table with the columns onset, duration and one of labels.

    Args:
        path: the table.
        column: the column with the labels.
        start: when the signal starts, for onsets that are dates.
        offset: seconds from the start of the signal to the moment from which onsets in seconds count.

    Raises:
        UsageError: the table is invalid, or its onsets are dates and the start of the signal is not known.
    """
    rows, commented = table_lines(path, "expected a table of events")
    if not rows:
        raise UsageError(f"{shorten(path)}: has no rows; expected a table of events")
    titles = rows[0][1]
    if {"onset", "duration", column}.issubset(commented) and len(commented) == len(titles):
        titles = commented
    else:
        del rows[0]
    titles = [title.strip() for title in titles]
    places = _places(path, titles, column)
    decimal = text_form(path).decimal
    if decimal == ",":
        for name, position in zip(("onset", "duration"), places, strict=False):
            cell = with_thousands([cells[position] for _, cells in rows if position < len(cells)])
            if cell:
                raise thousands_refused(f"{shorten(path)}: {name}", cell, "")
    events = list[Event]()
    dated = set[bool]()
    for line, cells in rows:
        where = f"{shorten(path)}: line {line}"
        if len(cells) != len(titles):
            raise UsageError(f"{where} has {len(cells)} cells; expected {len(titles)}")
        onset, length = (cells[position].strip() for position in places[:2])
        known = moment(onset)
        if known is None:
            begin = _number(where, "onset", onset, decimal, " of seconds, or a date such as 2020-01-31 22:00:00")
        else:
            begin = _since(where, onset, start)
        duration = 0.0 if length in _NO_DURATION else _number(where, "duration", length, decimal, " of seconds")
        if duration < 0:
            raise UsageError(f"{where}: duration {shown(length)} is negative")
        dated.add(known is not None)
        events.append((begin, begin + duration, cells[places[2]].strip()))
    if len(dated) > 1:
        raise UsageError(f"{shorten(path)}: some onsets are dates and others numbers; expected one kind")
    if True in dated:
        return Events(events, has_own_clock=True)
    return Events(events).shifted(offset)


def _places(path: Path, titles: Sequence[str], column: str) -> list[int]:
    """Return the positions of onset, duration and labels among the columns of a table."""
    for name in ("onset", "duration", column):
        if titles.count(name) != 1:
            remedy = "give event_column=..., the column with the labels" if name == column else "rename its column"
            number = "no column" if name not in titles else f"{titles.count(name)} columns"
            raise UsageError(
                f"{shorten(path)}: has {number} {shown(name)}; it has {shorten(', '.join(titles))}; {remedy}"
            )
    return [titles.index(name) for name in ("onset", "duration", column)]


def _number(where: str, what: str, text: str, decimal: str, of: str) -> float:
    try:
        number = float(text.replace(decimal, "."))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"{where}: {what} {shown(text)} is not a number{of}")
    return number


def _since(where: str, onset: str, start: Start | None) -> float:
    """Return the seconds from the start of a signal to a date."""
    begin = None if start is None else moment(start.date)
    known = moment(onset)
    assert known is not None
    if begin is None:
        raise UsageError(
            f"{where}: onset {shown(onset)} is a date, and the header of the signal has no start date; expected "
            "seconds since the start of the signal"
        )
    if known.zoned:
        raise UsageError(
            f"{where}: onset {shown(onset)} has a time zone, and the start of the signal has none; expected both alike"
        )
    return known.seconds - begin.seconds
