"""Output of runs: workers mark each line with their current runs, so that `logs` can find it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TextIO, cast

_DIGITS: Final = 12
"""Digits of each run's id in a mark; in lockstep there may be forty runs."""

_MARKED: Final = re.compile(r"\[runs? ([0-9a-f ]+)\] (.*)")
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")

_under_way: tuple[str, ...] = ()


def print_for(run_ids: tuple[str, ...]) -> None:
    """Mark further output of this process with these runs."""
    global _under_way  # global, like standard output
    _under_way = run_ids


class Marked:
    """A stream that marks each line with the runs that are current when it begins."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._at_start = True

    def write(self, text: str) -> int:
        """Write a text, in whole lines or parts."""
        for line in text.splitlines(keepends=True):
            self._stream.write(self._mark() + line if self._at_start else line)
            self._at_start = line.endswith("\n")
        return len(text)

    def close(self) -> None:
        """Do nothing: a run's code may close the stream that it sees, and the worker's output stays open."""

    def _mark(self) -> str:
        if not _under_way:
            return ""
        return f"[run{'s' * (len(_under_way) > 1)} {' '.join(run_id[:_DIGITS] for run_id in _under_way)}] "

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def mark_output() -> None:
    """Mark the output of this process from now on."""
    sys.stdout, sys.stderr = cast(TextIO, Marked(sys.stdout)), cast(TextIO, Marked(sys.stderr))


def stacks_file(folder: Path, run_id: str) -> Path:
    """Return the file for the thread stacks of a worker that hung in an epoch of a run."""
    return folder / f"{run_id}.stacks"


def printed_by(run_id: str, log: Path) -> Iterator[str]:
    """Return the lines of a launch's log that a run printed, alone or in lockstep.

    Args:
        run_id: its id, or an unambiguous prefix.
        log: the log file, to which Ray forwards the output of workers.
    """
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if run_id[:_DIGITS] not in line:
                continue
            marked = _MARKED.search(_COLOUR.sub("", line))
            if marked and any(run_id.startswith(it) or it.startswith(run_id) for it in marked[1].split()):
                yield marked[2]
