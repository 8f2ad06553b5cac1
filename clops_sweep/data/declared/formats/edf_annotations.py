"""Annotations of EDF+ and BDF+ files, each of them kept or refused.

edfio and MNE drop an annotation whose text has a line break, which EDF+ allows, and others that they cannot parse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from clops_sweep.data.declared.formats.edf_pieces import annotation_bytes
from clops_sweep.data.files.folder import shorten
from clops_sweep.errors import UsageError, shown

_NUMBER: Final = rb"(?:\d+\.?\d*|\.\d+)"
_LIST: Final = re.compile(
    rb"(?P<onset>[+-]?" + _NUMBER + rb")(?:\x15(?P<duration>" + _NUMBER + rb")?)?"
    rb"\x14(?P<texts>[^\x00]*)\x14(?:\x00|\Z)"
)
"""Time-stamped annotations list: onset, duration, and texts that have both in common."""
_BETWEEN_TEXTS: Final = "\x14"


class Annotation(NamedTuple):
    """An annotation: seconds since the start of the signal, seconds or None, and the text."""

    onset: float
    duration: float | None
    text: str


def annotations_of(path: Path, records: int) -> list[Annotation]:
    """Return the annotations of an EDF+ or BDF+ file in the order of time, without those that keep the time.

    Args:
        path: the file.
        records: number of records.

    Raises:
        UsageError: a record holds something else than annotations.
    """
    annotations = list[Annotation]()
    start: float | None = None
    for channel, of_records in enumerate(annotation_bytes(path, records)):
        for number, content in enumerate(of_records, 1):
            lists = list(_lists(path, number, content))
            if start is None and lists:
                start = lists[0][0].onset
            for number_of_list, texts in enumerate(lists):
                keeps_time = channel == 0 and number_of_list == 0 and texts[0].text == ""
                annotations += texts[1:] if keeps_time else texts
    shifted = [annotation._replace(onset=round(annotation.onset - (start or 0.0), 12)) for annotation in annotations]
    return sorted(shifted, key=lambda annotation: (annotation.onset, annotation.duration or 0.0, annotation.text))


def _lists(path: Path, record: int, content: bytes) -> Iterator[Sequence[Annotation]]:
    """Yield the annotations of each list in a record."""
    offset = 0
    while offset < len(content):
        if content[offset] == 0:
            offset += 1
            continue
        match = _LIST.match(content, offset)
        if match is None:
            rest = content[offset:].partition(b"\x00")[0]
            raise UsageError(
                f"{shorten(path)}: record {record} has {shown(rest.decode('latin-1'))} among its annotations; expected "
                "an onset, a duration and a text as EDF+ writes them: repair it, or give a table as annotations"
            )
        offset = match.end()
        try:
            texts = match["texts"].decode()
        except UnicodeDecodeError:
            raise UsageError(
                f"{shorten(path)}: record {record} has an annotation that is not UTF-8, "
                f"{shown(match['texts'].decode('latin-1'))}; convert it, or give a table as annotations"
            ) from None
        duration = None if match["duration"] is None else float(match["duration"])
        yield [Annotation(float(match["onset"]), duration, text) for text in texts.split(_BETWEEN_TEXTS)]
