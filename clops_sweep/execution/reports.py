"""What a worker reports of the locksteps of its job, and how else one may end. No torch, no Ray.

Driver, display and search `match` on these: a new case is an error of the type checker where it is not thought of.
"Job" means a part of one here (`Job.parts`): runs that are computed in lockstep.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Begun:
    """The worker has taken up the job, after others of the same trial."""


@dataclass(frozen=True)
class Running:
    """The job goes on: `task` and `epoch` of the task, both counted from 1, have just been finished."""

    task: int
    tasks: int
    epoch: int
    epochs: int


@dataclass(frozen=True)
class Resumed:
    """The job has a checkpoint: from there it goes on with `epoch` of `task`, both counted from 1."""

    task: int
    tasks: int
    epoch: int
    epochs: int


@dataclass(frozen=True)
class Retrying:
    """An exception has ended a step: the job goes on from its last checkpoint, or some of its runs start anew."""


@dataclass(frozen=True)
class Finished:
    """The job's runs are in the store.

    Attributes:
        values: of the first two headline metrics of their scenario, by column, the value of each run; nan where their
            strategy has none. Without a validation set they are those of the test set.
        seconds: what they took of the worker's time; None where it is not all of it, as after a resume.
    """

    values: Mapping[str, tuple[float, ...]]
    seconds: float | None = None


@dataclass(frozen=True)
class FoundFinished:
    """The job's runs were in the store already, or another sweep has put them there meanwhile (`elsewhere`)."""

    elsewhere: bool


@dataclass(frozen=True)
class Paused:
    """The job's runs have been trained on as many tasks as they were to be.

    Attributes:
        so_far: by run id, the average of every measure over these tasks on the validation split.
        finished: runs of the job that are in the store, since that was all there is to train.
    """

    so_far: Mapping[str, Mapping[str, float]]
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
    """The job's worker has died; whether it is tried once more is not decided yet.

    Attributes:
        error: what is known about it.
        timed_out: whether it was ended because an epoch took too long.
    """

    error: str
    timed_out: bool = False


Report = Begun | Running | Resumed | Retrying | Finished | FoundFinished | Paused | Failed | Unrecorded
"""What a worker reports. A job never ends with one of the first four."""


_LONGEST_ERROR = 20_000
_LONGEST_BEGINNING = 4_000


def bounded(error: str) -> str:
    """An error as it is recorded: of a very long one its beginning and its end."""
    if len(error) <= _LONGEST_ERROR:
        return error
    end = error[_LONGEST_BEGINNING - _LONGEST_ERROR :]
    left_out = len(error) - _LONGEST_ERROR
    return f"{error[:_LONGEST_BEGINNING]}\n  ... {left_out} characters are left out ...\n  {end}"


def ends(report: Report) -> bool:
    """Whether it is the last report of a job."""
    return not isinstance(report, Begun | Running | Resumed | Retrying)
