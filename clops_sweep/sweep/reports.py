"""What a worker reports of its job, and what else may be known of how a job has ended. No torch, no Ray.

Driver, display and search `match` on these: a new case is an error of the type checker where it is not thought of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Running:
    """The job goes on: `task` and `epoch` of the task, both counted from 1, have just been finished."""

    task: int
    tasks: int
    epoch: int
    epochs: int


@dataclass(frozen=True)
class Retrying:
    """An exception has ended a step: the job goes on from its last checkpoint, or some of its runs start anew."""


@dataclass(frozen=True)
class Noted:
    """The job goes on, and there is something that the user is to know."""

    text: str


@dataclass(frozen=True)
class Finished:
    """The job's runs are in the store; means over them of average AUC and backward transfer (validation)."""

    auc: float
    bwt: float


@dataclass(frozen=True)
class FoundFinished:
    """The job's runs were in the store already, or another sweep has put them there meanwhile (`elsewhere`)."""

    elsewhere: bool


@dataclass(frozen=True)
class Paused:
    """The job's runs have been trained on as many tasks as they were to be.

    Attributes:
        auc_so_far: by run id, the average validation AUC over these tasks.
        finished: runs of the job that are in the store, since that was all there is to train.
    """

    auc_so_far: Mapping[str, float]
    finished: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failed:
    """Some of the job's runs are in the store as failed; the others are finished, or were paused."""

    run_ids: tuple[str, ...]


@dataclass(frozen=True)
class Unrecorded:
    """What the job came to could not be written to the store: its runs are pending still, and have not failed."""

    error: str


@dataclass(frozen=True)
class WorkerDied:
    """The job's worker has died; whether it is tried once more is not decided yet."""

    error: str


Report = Running | Retrying | Noted | Finished | FoundFinished | Paused | Failed | Unrecorded
"""What a worker reports. The last of a job is none of the first three."""


def ends(report: Report) -> bool:
    """Whether it is the last report of a job."""
    return not isinstance(report, Running | Retrying | Noted)
