"""A study as plain data: what status, plan and the report show of it. Needs no Optuna."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from clops_sweep.errors import DamagedStore
from clops_sweep.experiment.spaces.optuna_search import Direction
from clops_sweep.store.run_store import RunStore

STUDIES = "optuna.db"
"""The file beside a store in a folder that its studies are kept in."""

TrialState = Literal["complete", "pruned", "failed", "running", "waiting"]
"""A trial that is running may also have been interrupted: the next launch goes on with it."""


def studies_file(store: RunStore) -> Path | None:
    """The file that the studies beside a store are kept in, if there is one."""
    folder = store.files.folder
    return folder / STUDIES if folder is not None and (folder / STUDIES).is_file() else None


@dataclass(frozen=True)
class TrialRecord:
    """One trial.

    Attributes:
        number: the study's number of it, from 0.
        state: how it stands.
        labels: its choice of every parameter; named variants by their name.
        values: of a complete trial, its objectives, in their order.
        intermediate: tasks trained to the average of the objective over them, where pruning has looked.
        run_ids: its runs in the store, in the order of the seeds; empty until they are known.
        error: what made it fail.
    """

    number: int
    state: TrialState
    labels: Mapping[str, Any] = field(hash=False)
    values: tuple[float, ...] | None = None
    intermediate: Mapping[int, float] = field(hash=False, default_factory=dict)
    run_ids: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class StudyRecord:
    """A study: its objectives and its trials by number.

    A trial that was taken up again under another number, because it had failed, is not among them.
    """

    name: str
    objectives: Mapping[str, Direction] = field(hash=False)
    trials: tuple[TrialRecord, ...]

    def __post_init__(self) -> None:
        for trial in self.of("complete"):
            if len(trial.values or ()) != len(self.objectives):
                raise DamagedStore(f"study {self.name!r}, trial {trial.number}: has no value for each objective")

    def of(self, *states: TrialState) -> list[TrialRecord]:
        """The trials in any of the given states."""
        return [trial for trial in self.trials if trial.state in states]

    @property
    def best(self) -> list[TrialRecord]:
        """The best trials: with one objective the first that is the best, with several those that none dominates."""
        complete = self.of("complete")
        if not complete:
            return []
        losses = np.array([trial.values for trial in complete], dtype=float)
        losses *= [1 if direction == "minimize" else -1 for direction in self.objectives.values()]
        if losses.shape[1] == 1:
            return [complete[int(losses.argmin())]]
        return [trial for trial, kept in zip(complete, not_dominated(losses), strict=True) if kept]


def not_dominated(losses: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which points no other point dominates: is nowhere worse than and somewhere better.

    Args:
        losses: shape (points, objectives), all to be minimised.

    Returns:
        Shape (points,). Of points that are equal, all or none.
    """
    no_worse = (losses[:, None, :] <= losses[None, :, :]).all(axis=2)
    better = (losses[:, None, :] < losses[None, :, :]).any(axis=2)
    dominated = np.asarray((no_worse & better).any(axis=0), dtype=np.bool_)
    return ~dominated
