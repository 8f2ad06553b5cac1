"""Output of runs: workers mark each line with their current runs, so that `logs` can find it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

from clops_sweep.experiment.metrics import metric_named
from clops_sweep.experiment.plugins.registry import headline

if TYPE_CHECKING:
    from clops_sweep.learning.run import ContinualRun, Progress

_DIGITS: Final = 12
"""Digits of each run's id in a mark; in lockstep there may be forty runs."""

_MARKED: Final = re.compile(r"\[runs? ([0-9a-f ]+)\] (.*)")
_EPOCH: Final = re.compile(r"task (\d+) of \d+ \((.*)\), epoch (\d+) of (\d+): (\w+) (.*)")
_OF_TASK: Final = re.compile(r"(-?[\d.]+) \((.*?)\)(?:, (?=-?\d)|$)")
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


def epoch_line(run: ContinualRun, progress: Progress) -> str:
    """Return a line for the log after an epoch: the headline measure of every task so far, as a mean over a lockstep.

    Runs without a validation set have no values here, except with `curves="test"`.
    """
    measure = metric_named(headline(run.configs[0].scenario)[0]).measure or "auc"
    of_runs = run.epoch_metrics()
    names = [name for name in of_runs[0] if name.startswith(f"{measure}/")]
    means = [sum(it.get(name, float("nan")) for it in of_runs) / len(of_runs) for name in names]
    of_tasks = zip(means, (name.partition("/")[2] for name in names), strict=True)
    values = ", ".join(f"{mean:.4f} ({name})" for mean, name in of_tasks if mean == mean)
    at = f"task {progress.task} of {progress.tasks} ({run.task_names[progress.task - 1]})"
    return f"{at}, epoch {progress.epoch} of {progress.epochs}: {measure} {values}"


def curves_in(lines: Iterable[str]) -> tuple[str, list[dict[str, Any]]]:
    """Return the measure of `epoch_line`s among lines, and rows as in the table `curves`: the last of each epoch."""
    measure, rows = "auc", {}
    for line in lines:
        if found := _EPOCH.fullmatch(line):
            task, trained, epoch, epochs, measure, values = found.groups()
            for value, name in _OF_TASK.findall(values):
                at = (int(task) - 1) * int(epochs) + int(epoch)
                row = {"epoch": at, "training_task": trained, "task": name, measure: float(value)}
                rows[at, name] = row
    return measure, list(rows.values())
