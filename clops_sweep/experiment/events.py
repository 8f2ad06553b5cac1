"""Events for observers: the end of an epoch, a task or a run. Imports neither torch nor Ray."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from clops_sweep.experiment.config import RunConfig


@dataclass(frozen=True)
class Progress:
    """The progress of a run: its task, and the epochs of it that have ended.

    Attributes:
        task: number of the task trained last, from 1.
        task_name: name of the task.
        tasks: number of tasks; 1 for strategies that train on all at once.
        epoch: number of epochs of the task trained so far.
        epochs: maximum number of epochs of a task; early stopping may end a task before.
    """

    task: int
    task_name: str
    tasks: int
    epoch: int
    epochs: int

    @property
    def step(self) -> int:
        """Epochs since the start of the run; a task that stopped early counts with all its epochs."""
        return (self.task - 1) * self.epochs + self.epoch

    @property
    def share(self) -> float:
        """Share of the run's epochs that have ended, in [0, 1]."""
        return min(max(self.step / (self.tasks * self.epochs), 0.0), 1.0)

    @classmethod
    def of(cls, content: Mapping[str, object]) -> Progress | None:
        """Return the progress in a JSON object, which may have other keys; None if it is invalid."""
        values: dict[str, Any] = {field.name: content.get(field.name) for field in fields(cls)}
        for name, value in values.items():
            if name == "task_name":
                is_valid = isinstance(value, str)
            else:
                is_valid = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            if not is_valid:
                return None
        progress = cls(**values)
        return progress if progress.tasks and progress.epochs else None


@dataclass(frozen=True)
class _DuringRun:
    run_id: str
    config: RunConfig
    progress: Progress
    metrics: Mapping[str, float]


class EpochEnd(_DuringRun):
    """An epoch has ended.

    Attributes:
        run_id: id of the run.
        config: config of the run.
        progress: progress of the run.
        metrics: metrics of the validation split: `loss` and every measure (`auc`, `accuracy`, ...), as means over the
            tasks seen so far, and for each of these tasks as `auc/NAME`. Undefined metrics are left out. Without a
            validation set: metrics of the test set with `curves="test"`, else empty.
    """


class TaskEnd(_DuringRun):
    """A task has ended; follows the `EpochEnd` of its last epoch.

    Attributes:
        run_id: id of the run.
        config: config of the run.
        progress: progress of the run.
        metrics: metrics as in the columns of `runs` (`auc`, `bwt`, `test_auc`, ...), over the tasks seen so far.
            Undefined metrics, such as BWT after one task, are left out.
    """


@dataclass(frozen=True)
class RunEnd:
    """A run has ended and is in the store.

    Attributes:
        run_id: id of the run.
        config: config of the run.
        status: finished or failed.
        metrics: metrics as in the columns of `runs`; empty for a failed run.
        error: traceback of a failed run.
    """

    run_id: str
    config: RunConfig
    status: Literal["finished", "failed"]
    metrics: Mapping[str, float]
    error: str | None = None


Event = EpochEnd | TaskEnd | RunEnd
"""An event, the argument of an observer."""


def number(event: Event) -> int:
    """Return a number that orders the events of a run; a failed run may still finish in a retry."""
    match event:
        case EpochEnd():
            return 2 * event.progress.step
        case TaskEnd():
            return 2 * event.progress.step + 1
        case RunEnd():
            return 2**62 + (event.status == "finished")
