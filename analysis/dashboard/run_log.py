"""Output of a run in launches from this machine, as `clops-sweep logs` finds it."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass

from clops_sweep.execution.run_log import printed_by, stacks_file
from clops_sweep.store.run_store import RunStore

MOST_LINES = 500
"""Most lines shown of a run, from the end."""

_MOST_BYTES = 64 * 2**20
"""Most logs that are searched, newest first."""


@dataclass(frozen=True)
class RunLog:
    """Lines of a run. `whole` is False if older lines are left out. `stacks` are the stacks of a worker that hung."""

    lines: tuple[str, ...]
    whole: bool
    stacks: str


def run_log(store: RunStore, run: str) -> RunLog:
    """Return the last lines that a run printed; none if `run` is not a run id."""
    if not re.fullmatch(r"[0-9a-f]{12,64}", run):
        return RunLog((), True, "")
    folder = store.log_folder / "logs"
    logs = sorted((it for it in folder.glob("*.log") if it.is_file()), reverse=True)
    found: list[str] = []
    searched = 0
    for log in logs:
        with suppress(OSError):
            searched += log.stat().st_size
            if searched > _MOST_BYTES and log is not logs[0]:
                break
            found = [*printed_by(run, log), *found]
        if len(found) > MOST_LINES:
            break
    stacks = ""
    if (file := stacks_file(folder, run)).is_file():
        with suppress(OSError):
            stacks = file.read_text(errors="replace")
    whole = len(found) <= MOST_LINES and searched <= _MOST_BYTES
    return RunLog(tuple(found[-MOST_LINES:]), whole, stacks)
