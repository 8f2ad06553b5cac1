"""Reports of workers on their jobs. Imports neither torch nor Ray.

Driver, display and search `match` on these, so that the type checker finds unhandled cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clops_sweep.experiment.events import Place

if TYPE_CHECKING:
    from clops_sweep.store.rows import Tables


@dataclass(frozen=True)
class Begun:
    """The worker has started the job, after others of the same trial."""


@dataclass(frozen=True)
class Running:
    """The job has finished the epoch at `place`."""

    place: Place


@dataclass(frozen=True)
class Resumed:
    """The job resumes from a checkpoint, with the epoch at `place`."""

    place: Place


@dataclass(frozen=True)
class Retrying:
    """An exception ended a step: the job continues from its last checkpoint, or restarts."""


@dataclass(frozen=True)
class Finished:
    """The job's run is finished.

    Attributes:
        values: the first two headline metrics of the scenario by column; nan if the strategy has none. Without a
            validation set, those of the test set.
        seconds: total time of the worker; None if incomplete, as after a resume.
    """

    values: Mapping[str, float]
    seconds: float | None = None


@dataclass(frozen=True)
class FoundFinished:
    """The job's run was already in the store."""


@dataclass(frozen=True)
class Paused:
    """The job's run has been trained on the requested number of tasks.

    Attributes:
        so_far: the average of every measure over these tasks on the validation split.
    """

    so_far: Mapping[str, float]


@dataclass(frozen=True)
class Failed:
    """The job's run has failed for `reason`."""

    reason: str = field(default="", compare=False)


@dataclass(frozen=True)
class Unrecorded:
    """The job's results could not be written to the store: its run stays pending."""

    error: str


@dataclass(frozen=True)
class WorkerDied:
    """The job's worker has died; a retry is not decided yet.

    Attributes:
        error: description of the cause.
        timed_out: whether an epoch exceeded its time limit.
    """

    error: str
    timed_out: bool = False


Report = Begun | Running | Resumed | Retrying | Finished | FoundFinished | Paused | Failed | Unrecorded
"""Reports of a worker. The first four never end a job."""

Recorded = tuple[str, "Tables", str | None]
"""A run that has finished or failed, its rows, and the path of a checkpoint to delete once they are written."""


_LONGEST_ERROR = 20_000
_LONGEST_BEGINNING = 4_000


def bounded(error: str) -> str:
    """Return an error for recording; of a very long one, the beginning and the end."""
    if len(error) <= _LONGEST_ERROR:
        return error
    end = error[_LONGEST_BEGINNING - _LONGEST_ERROR :]
    left_out = len(error) - _LONGEST_ERROR
    return f"{error[:_LONGEST_BEGINNING]}\n  ... {left_out} characters are left out ...\n  {end}"


def ends(report: Report) -> bool:
    """Return whether a report is the last of its job."""
    return not isinstance(report, Begun | Running | Resumed | Retrying)
