"""Records that cannot be prepared: each stops the preparation, or is left out and listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from clops_sweep.data.files.folder import shorten
from clops_sweep.data.records import OnError, Source
from clops_sweep.errors import UsageError, either


@dataclass
class Problems:
    """Collects records that could not be read (`skip`), or raises at the first one (`stop`).

    Attributes:
        on_error: `stop` or `skip`.
        tolerant: whether to keep records with the samples of an earlier one in data sets known to have duplicates.
        skipped: each such record with its first reason.
        every: all that is wrong, one sentence each.
    """

    on_error: OnError
    tolerant: bool
    skipped: list[tuple[str, str]] = field(default_factory=list)
    every: list[str] = field(default_factory=list)

    def note(self, record: str, reason: str, *more: str) -> None:
        """Add a record with the reasons.

        Raises:
            UsageError: under `stop`.
        """
        if self.on_error == "stop":
            call = "prepare(..., on_error='skip')"
            raise UsageError(
                f"{reason}; or leave such records out with " + either("data prepare --on-error skip", call)
            )
        self.skipped.append((record, reason))
        self.every += [reason, *more]


def named_once(sources: Sequence[Source], problems: Problems) -> list[Source]:
    """Return the sources with printable names; of duplicate records, the first."""
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
