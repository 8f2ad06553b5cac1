"""Output of a run in launches from this machine, as `clops-sweep logs` finds it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from clops_sweep.store.run_logs import EpochScores, epoch_scores, log_folder, printed_by, stacks_file
from clops_sweep.store.run_store import RunStore

MOST_LINES = 500
"""Most lines shown of a run, from the end."""

_MOST_BYTES = 64 * 2**20
"""Most logs that are searched, newest first."""

_HEXADECIMAL = frozenset("0123456789abcdef")


@dataclass(frozen=True)
class RunLog:
    """The log of a run.

    Attributes:
        lines: lines that the run printed.
        whole: whether no older lines are left out.
        stacks: the thread stacks of a worker that hung.
        scores: scores after epochs; logs of earlier versions have none.
        is_here: whether this machine has logs of the store.
    """

    lines: tuple[str, ...] = ()
    whole: bool = True
    stacks: str = ""
    scores: tuple[EpochScores, ...] = ()
    is_here: bool = False


def run_log(store: RunStore, run: str) -> RunLog:
    """Return the last lines that a run printed; none if `run` is not a run id."""
    if not (12 <= len(run) <= 64 and _HEXADECIMAL.issuperset(run)):
        return RunLog()
    folder = log_folder(store)
    logs = sorted((path for path in folder.glob("*.log") if path.is_file()), reverse=True)
    printed: list[str] = []
    searched = 0
    for log in logs:
        with suppress(OSError):
            searched += log.stat().st_size
            if searched > _MOST_BYTES and log is not logs[0]:
                break
            printed = [*printed_by(run, log), *printed]
        if len(printed) > MOST_LINES:
            break
    stacks = ""
    if (file := stacks_file(folder, run)).is_file():
        with suppress(OSError):
            stacks = file.read_text(errors="replace")
    whole = len(printed) <= MOST_LINES and searched <= _MOST_BYTES
    return RunLog(tuple(printed[-MOST_LINES:]), whole, stacks, tuple(epoch_scores(run, folder)), bool(logs))
