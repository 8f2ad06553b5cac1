"""Output of runs: workers mark each line with their current run, so that `logs` can find it."""

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
"""Digits of the run's id in a mark."""

_MARKED: Final = re.compile(r"\[run ([0-9a-f]+)\] (.*)")
_EPOCH: Final = re.compile(r"task (\d+) of \d+ \((.*)\), epoch (\d+) of (\d+): (\w+) (.*)")
_OF_TASK: Final = re.compile(r"(-?[\d.]+) \((.*?)\)(?:, (?=-?\d)|$)")
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")

_under_way = ""


def print_for(run_id: str) -> None:
    """Mark further output of this process with a run; an empty id marks nothing."""
    global _under_way  # global, like standard output
    _under_way = run_id


class Marked:
    """A stream that marks each line with the run that is current when it begins."""

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
        return f"[run {_under_way[:_DIGITS]}] " if _under_way else ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def mark_output() -> None:
    """Mark the output of this process from now on."""
    sys.stdout, sys.stderr = cast(TextIO, Marked(sys.stdout)), cast(TextIO, Marked(sys.stderr))


def stacks_file(folder: Path, run_id: str) -> Path:
    """Return the file for the thread stacks of a worker that hung in an epoch of a run."""
    return folder / f"{run_id}.stacks"


def printed_by(run_id: str, log: Path) -> Iterator[str]:
    """Return the lines of a launch's log that a run printed.

    Args:
        run_id: its id, or an unambiguous prefix.
        log: the log file, to which Ray forwards the output of workers.
    """
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if run_id[:_DIGITS] not in line:
                continue
            marked = _MARKED.search(_COLOUR.sub("", line))
            if marked and (run_id.startswith(marked[1]) or marked[1].startswith(run_id)):
                yield marked[2]


def epoch_line(run: ContinualRun, progress: Progress) -> str:
    """Return a line for the log after an epoch: the headline measure of every task so far.

    Runs without a validation set have no values here, except with `curves="test"`.
    """
    measure = metric_named(headline(run.config.scenario)[0]).measure or "auc"
    prefix = f"{measure}/"
    of_tasks = {name.removeprefix(prefix): it for name, it in run.epoch_metrics().items() if name.startswith(prefix)}
    values = ", ".join(f"{value:.4f} ({task})" for task, value in of_tasks.items())
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
