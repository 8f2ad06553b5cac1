"""Start times of recordings and of the files with their annotations, and intervals moved from one to the other."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clops_sweep.errors import UsageError

DAY: Final = 86400.0
"""Seconds of a day."""

_MONTHS: Final = 12
_EPOCH: Final = datetime(1970, 1, 1)
_ROUNDING: Final = 6
"""Decimals of a difference of times: headers have microseconds."""


class Start(NamedTuple):
    """When a file starts: its date, None if the header has none, and the seconds since midnight of that day."""

    day: date | None
    seconds: float

    @property
    def date(self) -> datetime | None:
        """The date with the time of day; None without a date."""
        if self.day is None:
            return None
        return datetime.combine(self.day, time()) + timedelta(seconds=self.seconds)


class Moment(NamedTuple):
    """A date with a time of day in seconds since 1970, and whether it was given with a time zone."""

    seconds: float
    zoned: bool


def moment(value: Any) -> Moment | None:
    """Return a date, such as "2020-01-31 22:00:00.5", in seconds since 1970; None for anything else.

    A date with a time zone counts in UTC, one without a zone as it is.
    """
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, str):
        text = value.strip()
        if text.isdigit():  # a number of seconds
            return None
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    zoned = value.tzinfo is not None
    plain = value.astimezone(UTC).replace(tzinfo=None) if zoned else value
    return Moment((plain - _EPOCH) / timedelta(seconds=1), zoned)


def shift(signal: Start, other: Start, what: str) -> float:
    """Return the seconds from the start of a signal to that of the file with its annotations.

    If a header has no date, the files start less than half a day apart.

    Raises:
        UsageError: they start more than a day apart, or one has neither a date nor a time; the message begins with
            `what`, the file with the annotations.
    """
    difference = other.seconds - signal.seconds
    if signal.day is not None and other.day is not None:
        difference += (other.day - signal.day).days * DAY
    else:
        difference -= DAY * round(difference / DAY)
        unset = [start for start in (signal, other) if start.day is None and start.seconds == 0]
        if difference and unset:
            which = "its" if other in unset else "the signal's"
            raise UsageError(
                f"{what}: {which} header has neither a date nor a time of day, so the onsets have no known start; "
                "give annotations_offset, the seconds from the start of the signal to that of this file, such as 0"
            )
    difference = round(difference, _ROUNDING)
    if abs(difference) > DAY:
        raise UsageError(
            f"{what}: its header starts {abs(difference) / DAY:,.2f} days {side(difference)} the signal; expected less "
            "than a day: correct one of the headers, or give annotations_offset, the seconds from the start of the "
            "signal to that of this file"
        )
    return difference


def side(difference: float) -> str:
    """Return whether something starts before or after another."""
    return "before" if difference < 0 else "after"


def until_next(starts: Sequence[float], ends: Sequence[float]) -> list[float]:
    """Return the ends of intervals: of those without a duration, the start of the next such interval; else the own.

    The last of them lasts until the end of the recording, which is infinity here.
    """
    points = sorted({start for start, end in zip(starts, ends, strict=True) if start == end})
    nexts = [*points[1:], math.inf] if points else []
    following = dict(zip(points, nexts, strict=True))
    closed = []
    for start, end in zip(starts, ends, strict=True):
        closed.append(following[start] if start == end else end)
    return closed


def two_ways_to_read(date_format: str, dates: NDArray[np.datetime64]) -> list[str]:
    """Return a note on dates that all stay dates if day and month change places, with how they are read.

    Args:
        date_format: the format by which they were read, such as "%d.%m.%Y".
        dates: the dates [n].
    """
    if not all(sign in date_format for sign in ("%d", "%m")) or not len(dates):
        return []
    days = [day.item() for day in dates.astype("datetime64[s]")]
    apart = [day for day in days if day.day != day.month]
    if not apart or any(day.day > _MONTHS for day in days):
        return []
    swapped = re.sub("%[dm]", lambda sign: {"%d": "%m", "%m": "%d"}[sign[0]], date_format)
    one = apart[0]
    return [
        f"dates: all {len(days):,} would be dates of {swapped!r}, too; by date_format={date_format!r}, "
        f"{one.strftime(date_format)!r} is {one.day} {one:%B %Y}: check it"
    ]
