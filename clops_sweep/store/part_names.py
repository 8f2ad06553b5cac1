"""The names of parts: what a file of a table holds, as its name tells."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Status = Literal["finished", "failed"]

COMPACT = "compact-"
"""What the name of a part of many runs begins with."""

_NAME = re.compile(rf"(finished|failed)-([0-9a-f]+)\.parquet|({COMPACT})(\d+)-[0-9a-f]+\.parquet")


@dataclass(frozen=True)
class Part:
    """A file of a table, as its name tells: one run, finished or failed, or many finished runs put together.

    Attributes:
        name: of the file.
        status: of the run; compacted runs are finished.
        run_id: of the run; None for many.
        runs: how many there are.
    """

    name: str
    status: Status
    run_id: str | None
    runs: int

    @property
    def rank(self) -> tuple[int, str]:
        """Whose copy of a run counts, lowest first: larger parts before smaller ones, then by name.

        A part is deleted only when all its runs have been seen in a part that ranks lower. So of any run, the copy that
        ranks lowest stays, whichever processes compact the store.
        """
        return -self.runs, self.name


def single(status: Status, run_id: str) -> Part:
    """The part of one run.

    Raises:
        ValueError: the id is not one, so that no name leaves the folder of its table.
    """
    part = parsed(f"{status}-{run_id}.parquet")
    if part is None or part.run_id != run_id:
        raise ValueError(f"run id {run_id!r}: expected hexadecimal digits")
    return part


def compacted(run_ids: Iterable[str]) -> Part:
    """The part of many runs, named after them: the same runs always make the same file."""
    ids = sorted(run_ids)
    digest = hashlib.sha256(",".join(ids).encode()).hexdigest()[:16]
    return Part(f"{COMPACT}{len(ids)}-{digest}.parquet", "finished", None, len(ids))


def parsed(name: str) -> Part | None:
    """A file name as a part; None for a file that is not the store's."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    if match[3]:
        return Part(name, "finished", None, int(match[4]))
    return Part(name, "failed" if match[1] == "failed" else "finished", match[2], 1)


@dataclass(frozen=True)
class Listing:
    """The parts of a table at one moment.

    Attributes:
        singles: of one run each, by name, so that failures come first.
        compacts: of many, lowest rank first.
    """

    singles: tuple[Part, ...]
    compacts: tuple[Part, ...]

    @property
    def finished(self) -> tuple[Part, ...]:
        """The parts of one finished run each."""
        return tuple(part for part in self.singles if part.status == "finished")
