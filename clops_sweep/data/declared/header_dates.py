"""Dates of recordings from the headers of their files, unless these are anonymized."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.one_by_one import Recording, begin_of
from clops_sweep.data.records import Index
from clops_sweep.errors import UsageError, listed

HEADER: Final = "header"
"""Value of `time` for the start of each recording, as its file has it."""


def header_date(recording: Recording, first: Recording) -> NDArray[np.datetime64]:
    """Return the start of a recording, datetime64[s] [1]; NaT if its header has no date.

    Args:
        recording: the recording.
        first: the first recording of the data set.

    Raises:
        UsageError: it has a date of its own, or a time zone where the first one has none, or the reverse.
    """
    if recording.time is not None:
        raise UsageError(f"time: recordings have dates of their own; leave out time={HEADER!r}")
    begin, other = begin_of(recording), begin_of(first)
    if begin is None:
        return np.array(["NaT"], "datetime64[s]")
    if other is not None and other.zoned != begin.zoned:
        raise UsageError("time: some headers have a time zone and others none; give the dates in a table")
    return checks.moments("time", [np.datetime64(round(begin.seconds), "s")], 1)


def with_header_dates(index: Index) -> tuple[Index, str]:
    """Return frames with the dates of headers, or without any, and a sentence on them.

    If a header has no date, or if all have one day, as anonymized headers do, no recording has a date.
    """
    assert index.times is not None
    _, first = np.unique(index.records, return_index=True)
    dates = index.times[first]
    count = f"{len(dates):,}"
    lacking = np.flatnonzero(np.isnat(dates))
    if len(lacking):
        names = [index.record_names[record] for record in index.records[first[lacking]].tolist()]
        return replace(index, times=None), (
            f"dates: {len(lacking):,} of {count} headers have none, or an anonymized one, so no recording has a date: "
            f"{listed(names)}; give all dates in a table"
        )
    days = np.unique(dates.astype("datetime64[D]"))
    if len(days) == 1 < len(dates):
        return replace(index, times=None), (
            f"dates: all {count} headers have {days[0]}, as anonymized ones do, so no recording has a date; give the "
            "dates in a table"
        )
    return index, f"the dates of recordings are those of their headers, from {days[0]} to {days[-1]}"
