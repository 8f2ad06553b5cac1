"""Reports on jobs: what a worker sends, and what the driver makes of it. Imports neither torch nor Ray.

Driver, display and search `match` on these, so that the type checker finds unhandled cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clops_sweep.experiment.events import Event, Progress

if TYPE_CHECKING:
    from clops_sweep.store.rows import Tables
    from clops_sweep.store.run_logs import EpochScores


@dataclass(frozen=True)
class Begun:
    """The worker has started the job, after others of the same trial."""


@dataclass(frozen=True)
class Running:
    """The job's run has made progress.

    Attributes:
        progress: the epochs that it has finished.
        resumed: whether it has just been restored from a checkpoint.
    """

    progress: Progress
    resumed: bool = False


@dataclass(frozen=True)
class Scored:
    """The job's run has been evaluated after an epoch; sent at most once a second."""

    scores: EpochScores


@dataclass(frozen=True)
class Observed:
    """Observers should be called with these events of the job's run; sent only with observers."""

    events: Sequence[Event]


@dataclass(frozen=True)
class Computed:
    """The job's run has been computed.

    Attributes:
        tables: its rows.
        checkpoint: path of a checkpoint to delete once the rows are written; None without one.
        values: the first two headline metrics of the scenario by column; nan if the strategy has none. Without a
            validation set, those of the test set.
        seconds: total time of the worker; None if incomplete, as after a resume.
    """

    tables: Tables
    checkpoint: str | None
    values: Mapping[str, float]
    seconds: float | None


@dataclass(frozen=True)
class Paused:
    """The job's run has been trained on the requested number of tasks.

    Attributes:
        so_far: the average of every measure over these tasks on the validation split.
        share: share of the run's epochs that have been trained, as in `Progress.share`.
    """

    so_far: Mapping[str, float]
    share: float


@dataclass(frozen=True)
class AttemptFailed:
    """An attempt to compute the job's run has failed: an exception, or the death of the worker.

    Attributes:
        error: a traceback, or a description of how the worker died.
        reason: the same on one line.
        is_final: whether another attempt would fail in the same way.
        facts: what the worker knows of host and time, as columns of `runs`.
    """

    error: str
    reason: str
    is_final: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Unrecorded:
    """The job's results could not be written to the store: its run stays pending."""

    error: str


RunReport = Running | Scored | Observed | Computed | Paused | AttemptFailed | Unrecorded
"""Reports of a worker about the run of a job. The first three never end the job."""

WorkerReport = Begun | RunReport
"""Reports of a worker, in one stream."""


@dataclass(frozen=True)
class Retrying:
    """An attempt has failed: the job waits for another one, from its last checkpoint if there is one."""


@dataclass(frozen=True)
class Finished:
    """The job's run is finished, and its rows have been added to the store.

    Attributes:
        values: as in `Computed`.
        seconds: as in `Computed`.
    """

    values: Mapping[str, float]
    seconds: float | None = None


@dataclass(frozen=True)
class FoundFinished:
    """The job's run was already in the store."""


@dataclass(frozen=True)
class Failed:
    """The job's run has failed for `reason`, and its row has been added to the store."""

    reason: str = field(default="", compare=False)


Report = Running | Retrying | Finished | FoundFinished | Paused | Failed | Unrecorded
"""Reports of the driver to display, feeds and the file of runs under way. The first two never end a job."""


_LONGEST_ERROR = 20_000
_LONGEST_BEGINNING = 4_000


def bounded(error: str) -> str:
    """Return an error for recording; of a very long one, the beginning and the end."""
    if len(error) <= _LONGEST_ERROR:
        return error
    end = error[_LONGEST_BEGINNING - _LONGEST_ERROR :]
    left_out = len(error) - _LONGEST_ERROR
    return f"{error[:_LONGEST_BEGINNING]}\n  ... {left_out} characters are left out ...\n  {end}"


def ends_attempt(report: WorkerReport) -> bool:
    """Return whether a worker's report is its last one about a job."""
    return not isinstance(report, Begun | Running | Scored | Observed)


def ends(report: Report) -> bool:
    """Return whether a report is the last one about a job."""
    return not isinstance(report, Running | Retrying)
