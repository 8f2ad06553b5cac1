"""Names of parts: the name of a file tells which runs it contains."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Status = Literal["finished", "failed"]

COMPACT = "compact-"
"""Prefix of the names of compacted parts."""

_NAME = re.compile(rf"(finished|failed)-([0-9a-f]+)\.parquet|({COMPACT})(\d+)-[0-9a-f]+\.parquet")


@dataclass(frozen=True)
class Part:
    """A file of a table: one run, finished or failed, or many finished runs (compacted).

    Attributes:
        name: name of the file.
        status: status of the run; compacted runs are finished.
        run_id: id of the run; None for a compacted part.
        runs: number of runs.
    """

    name: str
    status: Status
    run_id: str | None
    runs: int

    @property
    def rank(self) -> tuple[int, str]:
        """Precedence among copies of a run, lowest first: larger parts before smaller ones, then by name.

        A part is deleted only when all its runs were seen in parts of lower rank. So the copy of lowest rank stays,
        whichever processes compact the store.
        """
        return -self.runs, self.name


def single(status: Status, run_id: str) -> Part:
    """Return the part of one run.

    Raises:
        ValueError: the id is invalid; so no name leads out of the folder of its table.
    """
    part = parsed(f"{status}-{run_id}.parquet")
    if part is None or part.run_id != run_id:
        raise ValueError(f"run id {run_id!r}: expected hexadecimal digits")
    return part


def compacted(run_ids: Iterable[str]) -> Part:
    """Return the part of many runs, whose name depends on their ids alone."""
    ids = sorted(run_ids)
    digest = hashlib.sha256(",".join(ids).encode()).hexdigest()[:16]
    return Part(f"{COMPACT}{len(ids)}-{digest}.parquet", "finished", None, len(ids))


def parsed(name: str) -> Part | None:
    """Return the part that a file name stands for; None for other files."""
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
        singles: parts of one run, by name, so that failures come first.
        compacts: parts of many runs, lowest rank first.
    """

    singles: tuple[Part, ...]
    compacts: tuple[Part, ...]

    @property
    def finished(self) -> tuple[Part, ...]:
        """Parts of one finished run each."""
        return tuple(part for part in self.singles if part.status == "finished")
