"""Learning curves of several runs or configurations in one figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from clops_sweep.experiment.metrics import words

from ...statistics import MIN_UNITS

MOST_RUNS = 100
"""Most runs per line: reading more curves takes too long."""


@dataclass(frozen=True)
class Line:
    """A run or the mean over several: the measure's mean over the tasks seen so far, by epoch.

    `sd` over runs is NaN below three. All arrays have shape (epochs,).
    """

    name: str
    epochs: npt.NDArray[np.int64]
    mean: npt.NDArray[np.float64]
    sd: npt.NDArray[np.float64]
    n: int


@dataclass(frozen=True)
class Overlay:
    """Lines of one measure. `without` are the names of those that recorded no curves."""

    measure: str
    lines: tuple[Line, ...]
    without: tuple[str, ...]

    @property
    def quantity(self) -> str:
        """The measure in words."""
        return f"{words(self.measure)}, mean over tasks seen so far"


def overlay(measure: str, curves: Sequence[tuple[str, pd.DataFrame]]) -> Overlay:
    """Return a line for each name.

    Args:
        measure: a column of the store's table `curves`.
        curves: rows of that table by name.
    """
    found = [(name, rows[rows[measure].notna()]) for name, rows in curves]
    lines = tuple(_line(name, rows, measure) for name, rows in found if len(rows))
    return Overlay(measure, lines, tuple(name for name, rows in found if rows.empty))


def describe_overlay(record: Overlay) -> str:
    """Describe the figure in words."""
    ends = "; ".join(f"{it.name} (n = {it.n}) ends at {it.mean[-1]:.3f}" for it in record.lines)
    return f"Learning curves: {record.quantity}. {ends}."


def _line(name: str, rows: pd.DataFrame, measure: str) -> Line:
    """Return the line: a task counts from its first training epoch on, or from the start if trained jointly."""
    trained = rows[rows["training_task"] == rows["task"]].groupby(["run_id", "task"])["epoch"].min()
    begins = pd.MultiIndex.from_frame(rows[["run_id", "task"]])
    seen = rows[rows["epoch"].to_numpy() >= trained.reindex(begins).fillna(0).to_numpy()]
    by_run = seen.groupby(["epoch", "run_id"])[measure].mean()
    by_epoch = by_run.groupby("epoch").agg(["mean", "std"])
    n = int(rows["run_id"].nunique())
    sd = by_epoch["std"].to_numpy(dtype=float) if n >= MIN_UNITS else np.full(len(by_epoch), np.nan)
    return Line(name, by_epoch.index.to_numpy(dtype=np.int64), by_epoch["mean"].to_numpy(dtype=float), sd, n)
