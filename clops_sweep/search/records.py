"""Studies as plain data, for status, plan and the report. Does not need Optuna."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from clops_sweep.errors import DamagedStore
from clops_sweep.experiment.spaces.optuna_search import Direction
from clops_sweep.store.run_store import RunStore

STUDIES = "optuna.journal"
"""File of the studies beside the tables."""

TrialState = Literal["complete", "pruned", "failed", "running", "waiting"]
"""States of a trial. A running trial may also be an interrupted one, which the next launch continues."""


def journal_of(store: RunStore) -> bytes | None:
    """Return the content of the journal of a store, None if it does not exist.

    Raises:
        UnreadableFile: it is no regular file.
    """
    return store.once(STUDIES, lambda: _content(store))


def _content(store: RunStore) -> bytes | None:
    path = f"{store.files.root}/{STUDIES}"
    there = os.path.lexists(path) if store.files.local else store.files.exists(path)
    content: bytes | None = store.files.read(path).to_pybytes() if there else None
    return content


Edge = Literal["lowest", "highest"]
"""End of a grid or a range on which a value lies."""


@dataclass(frozen=True)
class TrialRecord:
    """One trial.

    Attributes:
        number: number of the trial in the study, from 0.
        state: state of the trial.
        labels: value of every parameter; named variants by their name.
        values: objectives of a complete trial, in order.
        intermediate: number of trained tasks to the average objective over them, at pruning decisions.
        run_ids: its runs in the store, in the order of the seeds; empty until known.
        error: error of a failed trial.
        edges: the numeric parameters with a value on the edge of what is tried (see `edges_of`).
    """

    number: int
    state: TrialState
    labels: Mapping[str, Any] = field(hash=False)
    values: tuple[float, ...] | None = None
    intermediate: Mapping[int, float] = field(hash=False, default_factory=dict)
    run_ids: tuple[str, ...] = ()
    error: str | None = None
    edges: Mapping[str, Edge] = field(hash=False, default_factory=dict)


@dataclass(frozen=True)
class StudyRecord:
    """A study: its objectives, its trials by number, and the numbers of its best ones (Optuna's `best_trials`).

    Failed trials that were retried under another number are left out. `is_phase` says whether its trials only choose a
    configuration, which another search space reports, and `reports_best` whether this one reports the very runs of the
    best trial, because tuning is on the reported data. `has_other_data` says whether it was made on another edition of
    the data than the prepared one, so that a launch cannot continue it.
    """

    name: str
    objectives: Mapping[str, Direction] = field(hash=False)
    trials: tuple[TrialRecord, ...]
    best_numbers: tuple[int, ...] = ()
    is_phase: bool = False
    reports_best: bool = False
    has_other_data: bool = False

    def __post_init__(self) -> None:
        for trial in self.of("complete"):
            if len(trial.values or ()) != len(self.objectives):
                raise DamagedStore(f"study {self.name!r}, trial {trial.number}: has no value for each objective")

    def of(self, *states: TrialState) -> list[TrialRecord]:
        """Return the trials in any of the given states."""
        return [trial for trial in self.trials if trial.state in states]

    @property
    def tied(self) -> bool:
        """Whether all of several complete trials have the same values, so that the best one is the first by chance."""
        complete = self.of("complete")
        return len(complete) > 1 and len({trial.values for trial in complete}) == 1

    @property
    def best(self) -> list[TrialRecord]:
        """The best trial (the first if several are equal); with several objectives, the Pareto front."""
        best = [trial for trial in self.trials if trial.number in self.best_numbers]
        return best[: 1 if len(self.objectives) == 1 else None]
