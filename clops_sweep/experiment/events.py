"""Events for observers: the end of an epoch, a task or a run. Imports neither torch nor Ray."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from clops_sweep.experiment.config import RunConfig


@dataclass(frozen=True)
class Place:
    """The progress of a run.

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


@dataclass(frozen=True)
class _Progress:
    run_id: str
    config: RunConfig
    place: Place
    metrics: Mapping[str, float]


class EpochEnd(_Progress):
    """An epoch has ended.

    Attributes:
        run_id: id of the run.
        config: config of the run.
        place: progress of the run.
        metrics: metrics of the validation split: `loss` and every measure (`auc`, `accuracy`, ...), as means over the
            tasks seen so far, and for each of these tasks as `auc/NAME`. Undefined metrics are left out. Without a
            validation set: metrics of the test set with `curves="test"`, else empty.
    """


class TaskEnd(_Progress):
    """A task has ended; follows the `EpochEnd` of its last epoch.

    Attributes:
        run_id: id of the run.
        config: config of the run.
        place: progress of the run.
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
            return 2 * event.place.step
        case TaskEnd():
            return 2 * event.place.step + 1
        case RunEnd():
            return 2**62 + (event.status == "finished")
