"""Records that cannot be prepared: each ends the preparation, or is left out and listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from clops_sweep.data.files.folder import shorten
from clops_sweep.data.records import OnError, Source
from clops_sweep.errors import UsageError


@dataclass
class Problems:
    """Records that could not be read: the first one ends everything (`stop`), or they are collected (`skip`).

    Attributes:
        on_error: which of both.
        tolerant: whether records with the samples of an earlier one are kept where the publisher ships such.
        skipped: each of them, with the first reason.
        every: all that is wrong, one sentence each.
    """

    on_error: OnError
    tolerant: bool
    skipped: list[tuple[str, str]] = field(default_factory=list)
    every: list[str] = field(default_factory=list)

    def note(self, record: str, reason: str, *more: str) -> None:
        """One more of them.

        Raises:
            UsageError: under `stop`.
        """
        if self.on_error == "stop":
            raise UsageError(f"{reason}; or leave such records out with data prepare --on-error skip")
        self.skipped.append((record, reason))
        self.every += [reason, *more]


def named_once(sources: Sequence[Source], problems: Problems) -> list[Source]:
    """The sources whose names can be written down, of each record the first."""
    first: dict[str, Source] = {}
    for source in sources:
        if not source.record.isprintable():
            reason = f"{source.place}: the record's name holds characters that cannot be printed; rename it"
            problems.note(shorten(source.record), reason)
        elif (other := first.setdefault(source.record, source)) is not source:
            problems.note(source.record, _is_there_twice(other, source))
    return list(first.values())


def _is_there_twice(first: Source, second: Source) -> str:
    record = shorten(second.record)
    if second.tables:
        return f"{shorten(second.tables[0])}: record {record!r} is listed twice; keep one of the rows"
    places = " and ".join(shorten(twin.files[0]) for twin in (first, second) if twin.files)
    return f"record {record!r} is there twice ({places}); keep one of them"
