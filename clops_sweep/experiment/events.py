"""The events that observers get: the end of an epoch, a task or a run. Plain data; needs neither torch nor Ray."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from clops_sweep.experiment.config import RunConfig


@dataclass(frozen=True)
class Place:
    """Where a run is.

    Attributes:
        task: which task has been trained last, from 1.
        task_name: what it holds.
        tasks: how many there are; 1 for strategies that train on all at once.
        epoch: how many epochs of it have been trained.
        epochs: how many there are at most; early stopping may end a task before.
    """

    task: int
    task_name: str
    tasks: int
    epoch: int
    epochs: int

    @property
    def step(self) -> int:
        """Epochs since the run began; a task that stopped early counts as one with all its epochs."""
        return (self.task - 1) * self.epochs + self.epoch


@dataclass(frozen=True)
class EpochEnd:
    """An epoch has ended.

    Attributes:
        run_id: of the run.
        config: of the run.
        place: where it is.
        metrics: of the validation split: `loss` and every measure (`auc`, `accuracy`, ...), means over the tasks seen
            so far, and each of them of each of these tasks as `auc/NAME`. What is not defined is left out.
            Without a validation set, of the test set where `curves="test"` was asked for, else empty.
    """

    run_id: str
    config: RunConfig
    place: Place
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class TaskEnd:
    """A task has ended; it comes behind the `EpochEnd` of its last epoch.

    Attributes:
        run_id: of the run.
        config: of the run.
        place: where it is.
        metrics: those of the columns of `runs` (`auc`, `bwt`, `test_auc`, ...), of R as far as it is known: of the
            tasks seen so far. What is not defined, such as BWT after one task, is left out.
    """

    run_id: str
    config: RunConfig
    place: Place
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class RunEnd:
    """A run has ended and is in the store.

    Attributes:
        run_id: of the run.
        config: of the run.
        status: finished or failed.
        metrics: those of the columns of `runs`; none of a failed run.
        error: the traceback of a failed run.
    """

    run_id: str
    config: RunConfig
    status: Literal["finished", "failed"]
    metrics: Mapping[str, float]
    error: str | None = None


Event = EpochEnd | TaskEnd | RunEnd
"""What an observer is called with, one at a time."""


def number(event: Event) -> int:
    """Return the place of an event among those of its run; a failed run may still finish when its worker dies then."""
    match event:
        case EpochEnd():
            return 2 * event.place.step
        case TaskEnd():
            return 2 * event.place.step + 1
        case RunEnd():
            return 2**62 + (event.status == "finished")
