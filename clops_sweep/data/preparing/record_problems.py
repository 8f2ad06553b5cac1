"""Records that cannot be prepared: each ends the preparation, or is left out and listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from clops_sweep.data.files.folder import shorten
from clops_sweep.data.records import OnError, Source
from clops_sweep.errors import UsageError


@dataclass
class Problems:
    """Records that could not be read: the first one ends everything (`stop`), or they are collected (`skip`)."""

    on_error: OnError
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def note(self, record: str, reason: str) -> None:
        """One more of them.

        Raises:
            UsageError: under `stop`.
        """
        if self.on_error == "stop":
            raise UsageError(f"{reason}; or leave such records out with data prepare --on-error skip")
        self.skipped.append((record, reason))


def with_names(sources: Sequence[Source], problems: Problems) -> list[Source]:
    """The sources whose names can be written down."""
    named = []
    for source in sources:
        if source.record.isprintable():
            named.append(source)
        else:
            reason = f"{source.place}: the record's name holds characters that cannot be printed; rename it"
            problems.note(shorten(source.record), reason)
    return named


def without_duplicates(sources: Sequence[Source], problems: Problems) -> list[Source]:
    """The sources, of each record the first."""
    first: dict[str, Source] = {}
    for source in sources:
        if (other := first.setdefault(source.record, source)) is not source:
            problems.note(source.record, _is_there_twice(other, source))
    return list(first.values())


def _is_there_twice(first: Source, second: Source) -> str:
    record = shorten(second.record)
    if second.tables:
        return f"{shorten(second.tables[0])}: record {record!r} is listed twice; keep one of the rows"
    places = " and ".join(shorten(twin.files[0]) for twin in (first, second) if twin.files)
    return f"record {record!r} is there twice ({places}); keep one of them"
