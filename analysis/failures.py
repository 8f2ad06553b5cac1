"""Reasons of failed runs, for the dashboard and the report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

import pandas as pd

from clops_sweep.store.rows import reason_of

from .formats import plural

_MOST_REASONS = 3
_OPENING, _BEHIND = 'File "', '", line '
"""What a line of a traceback has before the path, and between it and the number of the line."""


@dataclass(frozen=True)
class Failure:
    """Runs that failed for the same reason, with the full error of the latest one."""

    reason: str
    error: str
    run_ids: tuple[str, ...]

    @property
    def place(self) -> str:
        """File and line of custom code that raised the error, "mine.py:27"; empty if only libraries are involved."""
        own = ""
        for line in self.error.splitlines():
            opening, path_to_line = line.strip()[: len(_OPENING)], line.strip()[len(_OPENING) :]
            path, behind, rest = path_to_line.partition(_BEHIND)
            if opening == _OPENING and behind and not _is_of_library(path):
                own = f"{PurePath(path).name}:{rest.partition(',')[0]}"
        return own

    @property
    def in_words(self) -> str:
        """How many runs failed, why, and where."""
        where = f" ({self.place})" if self.place else ""
        return f"{_times(len(self.run_ids))} {self.reason.rstrip('.')}{where}"


def _is_of_library(path: str) -> bool:
    """Return whether a file belongs to Python, to an installed package or to this one."""
    folders = PurePath(path).parts[:-1]
    is_of_python = any(folder.startswith("python3.") for folder in folders)
    return is_of_python or path.startswith("<") or not {"site-packages", "clops_sweep"}.isdisjoint(folders)


def failures(runs: pd.DataFrame) -> list[Failure]:
    """Group failed runs by reason, the most frequent first.

    Args:
        runs: rows with column `status` and, for failed runs, `run_id`, `reason`, `error` and, if known, `started_at`.
    """
    failed = runs[runs["status"] == "failed"]
    if failed.empty:
        return []
    if "started_at" in failed:
        failed = failed.sort_values("started_at", ascending=False, kind="stable", na_position="last")
    reasons = failed.apply(reason_of, axis="columns")
    by_reason = []
    for reason, rows in failed.groupby(reasons, sort=False):
        by_reason.append(Failure(str(reason), str(rows["error"].iloc[0] or ""), tuple(map(str, rows["run_id"]))))
    return sorted(by_reason, key=lambda failure: -len(failure.run_ids))


def failure_notices(runs: pd.DataFrame) -> Iterator[str]:
    """Return sentences on how many runs failed and why; none without failures."""
    failed = failures(runs)
    if not failed:
        return
    listed = [failure.in_words for failure in failed[:_MOST_REASONS]]
    others = len(failed) - len(listed)
    if others:
        listed.append(f"the rest for {plural(others, 'other reason')}")
    yield f"{plural(sum(len(failure.run_ids) for failure in failed), 'run')} failed: {'; '.join(listed).rstrip('.')}."


def _times(count: int) -> str:
    return "once" if count == 1 else plural(count, "time")
