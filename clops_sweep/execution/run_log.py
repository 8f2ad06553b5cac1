"""Output of runs: workers mark each line with their current run, so that `logs` can find it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TextIO, cast

from clops_sweep.experiment.events import Progress
from clops_sweep.experiment.metrics import metric_named
from clops_sweep.experiment.plugins.registry import headline
from clops_sweep.store.run_logs import EpochScores, mark

if TYPE_CHECKING:
    from clops_sweep.learning.run import ContinualRun

_current_run = ""


def print_for(run_id: str) -> None:
    """Mark further output of this process with a run; an empty id marks nothing."""
    global _current_run  # global, like standard output
    _current_run = run_id


class Marked:
    """A stream that marks each line with the run that is current when it begins."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._at_start = True

    def write(self, text: str) -> int:
        """Write a text, in whole lines or parts.

        Raises:
            TypeError: it is no text; `click.echo` tells text streams from binary ones by this.
        """
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        for line in text.splitlines(keepends=True):
            self._stream.write(mark(_current_run) + line if self._at_start else line)
            self._at_start = line.endswith("\n")
        return len(text)

    def close(self) -> None:
        """Do nothing: a run's code may close the stream that it sees, and the worker's output stays open."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def mark_output() -> None:
    """Mark the output of this process from now on."""
    sys.stdout = cast(TextIO, Marked(sys.stdout))
    sys.stderr = cast(TextIO, Marked(sys.stderr))


def scores_after(run: ContinualRun, progress: Progress) -> EpochScores:
    """Return the headline measure of every task so far after an epoch.

    Runs without a validation set have no values here, except with `curves="test"`.
    """
    measure = metric_named(headline(run.config.scenario)[0]).measure or "auc"
    prefix = f"{measure}/"
    values = {}
    for name, value in run.epoch_metrics().items():
        if name.startswith(prefix):
            values[name.removeprefix(prefix)] = value
    return EpochScores(progress, measure, values)


def epoch_line(scores: EpochScores, split: str) -> str:
    """Return a line for the log after an epoch.

    Args:
        scores: the scores.
        split: the split that they are on, such as "validation".
    """
    progress = scores.progress
    values = ", ".join(f"{value:.4f} ({task})" for task, value in scores.values.items())
    task = f"task {progress.task} of {progress.tasks} ({progress.task_name})"
    scored = f": {split} {scores.measure} {values}" if values else ""
    return f"{task}, epoch {progress.epoch} of {progress.epochs}{scored}"
