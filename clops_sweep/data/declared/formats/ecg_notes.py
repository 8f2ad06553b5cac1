"""Notes on files of electrocardiographs, about what ecgdatakit passes over without a warning."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

_DATE_OF_ISHNE, _TIME_OF_ISHNE = 138, 150
"""First byte of the date and of the start time in the header."""
_HEAD_OF_SCP, _HEAD_OF_SECTION = 6, 16
"""Bytes before the first section, and before the content of each section."""
_DATE_TAG, _TIME_TAG, _LAST_TAG = 25, 26, 255
_NUMBERED = re.compile(r"(.+)_[0-9]+")


def notes_on_leads(names: Sequence[str]) -> list[str]:
    """Return a note for each lead that a file gives once more, under the name that ecgdatakit gives it."""
    notes = []
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is not None and match[1] in names:
            notes.append(f"gives lead {match[1]} more than once: another one is {name}")
    return notes


def notes_on_scp(path: Path, start: datetime | None) -> list[str]:
    """Return notes on an SCP-ECG file: samples beyond the end of a lead, and an invalid date.

    Args:
        path: the file, which ecgdatakit has read.
        start: the start of the recording as read.
    """
    sections = _sections(path.read_bytes())
    notes = _samples_beyond(sections) if 2 not in sections else []  # section 2: samples are compressed
    tags = dict(_tags(sections.get(1, b"")))
    date, time = tags.get(_DATE_TAG, b""), tags.get(_TIME_TAG, b"")
    if start is None and len(date) >= 4 and len(time) >= 3:
        year, month, day = struct.unpack_from("<HBB", date)
        if year:
            hour, minute, second = time[:3]
            notes.append(_no_start(year, month, day, hour, minute, second))
    return notes


def notes_on_ishne(path: Path, start: datetime | None) -> list[str]:
    """Return a note if the header of an ISHNE file has an invalid date; `start` as in `notes_on_scp`."""
    with path.open("rb") as file:
        header = file.read(_TIME_OF_ISHNE + 6)
    day, month, year = struct.unpack_from("<3h", header, _DATE_OF_ISHNE)
    hour, minute, second = struct.unpack_from("<3h", header, _TIME_OF_ISHNE)
    if start is not None or max(day, month, year) <= 0:  # 0 or -9: not given
        return []
    return [_no_start(year, month, day, hour, minute, second)]


def no_start(stamp: str, start: datetime | None) -> list[str]:
    """Return a note if a file has a stamp of its begin, but it gives no start.

    Args:
        stamp: the stamp as written; empty without one.
        start: the start of the recording as read.
    """
    if start is not None or not stamp:
        return []
    return [f"its date {stamp} is not a valid date with a time of day, so the recording has no start"]


def _no_start(year: int, month: int, day: int, hour: int, minute: int, second: int) -> str:
    return no_start(f"{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}", None)[0]


def _sections(whole: bytes) -> dict[int, bytes]:
    """Return the content of each section of an SCP-ECG file, by its number."""
    sections = {}
    size = struct.unpack_from("<I", whole, _HEAD_OF_SCP + 4)[0]
    end = min(_HEAD_OF_SCP + size, len(whole)) - 9
    for offset in range(_HEAD_OF_SCP + _HEAD_OF_SECTION, end, 10):
        number, length, first = struct.unpack_from("<HII", whole, offset)
        if length and first:
            sections[number] = whole[first - 1 + _HEAD_OF_SECTION : first - 1 + length]
    return sections


def _tags(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the tags of section 1 with their values."""
    offset = 0
    while offset + 3 <= len(content) and content[offset] != _LAST_TAG:
        tag, length = struct.unpack_from("<BH", content, offset)
        yield tag, content[offset + 3 : offset + 3 + length]
        offset += 3 + length


def _samples_beyond(sections: dict[int, bytes]) -> list[str]:
    """Return a note if leads hold more samples than section 3 counts."""
    leads, rhythm = sections.get(3, b""), sections.get(6, b"")
    count = leads[0] if leads else 0
    if not count or len(leads) < 2 + 9 * count or len(rhythm) < 6 + 2 * count:
        return []
    sizes = struct.unpack_from(f"<{count}H", rhythm, 6)
    for number, size in enumerate(sizes):
        first, last = struct.unpack_from("<II", leads, 2 + 9 * number)
        counted, held = last - first + 1, size // 2
        if held > counted:
            return [
                f"holds {held:,} samples of lead {number + 1}, and its header counts {counted:,}: those beyond are "
                "left out"
            ]
    return []
