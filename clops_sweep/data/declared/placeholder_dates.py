"""Dates that programs write where the date is unknown, such as 1 January 1900."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.records import Index
from clops_sweep.errors import listed, several

_FIRST_YEAR: Final = 1900
"""Recordings of the body's signals on paper are not older."""

_PLACEHOLDERS: Final = np.array(
    ["1899-12-30", "1899-12-31", "1900-01-01", "1904-01-01", "1970-01-01", "2999-12-31", "9999-12-31"], "datetime64[D]"
)
"""The first days of calendars of programs, and last days that stand for never."""

_APART: Final = np.timedelta64(365, "D")
"""Least distance of a placeholder from all other dates."""


def placeholder_dates(index: Index) -> list[str]:
    """Return a note on each day that is probably a placeholder, or impossible, with its recordings.

    Such a day is in a year before 1900 or after the present one; or it is at least a year away from all other days, and
    either a known placeholder, or shared by several people and further away than the others are from each other. Days
    of most recordings are left out: dates that are shifted on purpose, for example.
    """
    if index.times is None:
        return []
    records, first = np.unique(index.records, return_index=True)
    days = index.times[first].astype("datetime64[D]")
    people = index.patients[first]
    notes = []
    for day in np.unique(days[~np.isnat(days)]):
        is_day = days == day
        if 2 * is_day.sum() >= len(days) or not (why := _doubt(day, days, len(np.unique(people[is_day])))):
            continue
        names = [index.record_names[record] for record in records[is_day].tolist()]
        many = len(np.unique(people[is_day]))
        of = "1 person" if many == 1 else f"{many:,} people"
        have = "has" if len(names) == 1 else "have"
        notes.append(
            f"dates: {several(len(names), 'recording')} of {of} {have} {day}, {why}: "
            f"{listed(names)}; the order of a person's recordings and the tasks of time_il follow it; correct it in "
            "the table"
        )
    return notes


def _doubt(day: np.datetime64, days: NDArray[np.datetime64], people: int) -> str:
    """Return why a day is probably no date of a recording; empty if it may be one."""
    others = days[(days != day) & ~np.isnat(days)]
    year, this_year = int(str(day.astype("datetime64[Y]"))), datetime.now(UTC).year
    usual = _FIRST_YEAR <= _year_of(others) <= this_year
    if usual and not _FIRST_YEAR <= year <= this_year:
        return f"which is {'before' if year < _FIRST_YEAR else 'after'} all possible dates"
    apart = np.abs(others - day).min()
    if apart < _APART:
        return ""
    if day in _PLACEHOLDERS:
        return "which programs write for an unknown date"
    others = others[~np.isin(others, _PLACEHOLDERS)]
    is_far = len(others) > 0 and apart > others.max() - others.min()
    return "far from all other dates, as a placeholder is" if people > 1 and is_far else ""


def _year_of(days: NDArray[np.datetime64]) -> int:
    """Return the year of the middle one of some days."""
    middle = np.sort(days)[len(days) // 2]
    return int(str(middle.astype("datetime64[Y]")))
