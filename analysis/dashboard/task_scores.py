"""The scores of one run by task, and its R matrix."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pandas as pd

from clops_sweep.errors import UsageError

from ..figures.r_matrices import RMatrix, r_matrix
from ..formats import number
from ..metrics import words

_SPLITS = ("test", "validation")
_DARKEST = 0.45
"""Opacity of the colour behind the highest value of a matrix, which keeps its text legible."""


@dataclass(frozen=True)
class TaskScore:
    """A task with its score right after its training, at the end of the run, and the change; as texts."""

    task: str
    after_training: str
    at_end: str
    change: str


@dataclass(frozen=True)
class Shaded:
    """A value of R as text, with the opacity of the colour behind it."""

    text: str
    opacity: str


@dataclass(frozen=True)
class TaskScores:
    """Scores of a run on one split.

    Attributes:
        split: "test" or "validation".
        measure: the measure in words.
        scores: the tasks in the order of the matrix.
        evaluated: the tasks of the columns of R.
        matrix: the rows of R: the task that was trained last, and the scores on all tasks.
    """

    split: str
    measure: str
    scores: tuple[TaskScore, ...]
    evaluated: tuple[str, ...]
    matrix: tuple[tuple[str, tuple[Shaded, ...]], ...]


def task_scores(rows: pd.DataFrame, measure: str) -> list[TaskScores]:
    """Return the scores of a run on test people, then on validation people; a split without rows is left out.

    Args:
        rows: rows of the table `r_matrix` of one run.
        measure: a measure, such as "auc".
    """
    if rows.empty or measure not in rows:
        return []
    tables = []
    for split in _SPLITS:
        with suppress(UsageError):  # no rows of the split
            tables.append(_of_split(r_matrix(rows, "", measure, split), split, measure))
    return tables


def _of_split(matrix: RMatrix, split: str, measure: str) -> TaskScores:
    scores = []
    for column, task in enumerate(matrix.evaluated):
        end = float(matrix.mean[-1, column])
        after = np.nan
        if task in matrix.trained:
            after = float(matrix.mean[matrix.trained.index(task), column])
        scores.append(TaskScore(task, number(after), number(end), _signed(end - after)))
    known = matrix.mean[np.isfinite(matrix.mean)]
    lowest, highest = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    lines = []
    for task, values in zip(matrix.trained, matrix.mean.tolist(), strict=True):
        lines.append((task, tuple(_shaded(values, lowest, highest))))
    return TaskScores(split, words(measure), tuple(scores), matrix.evaluated, tuple(lines))


def _shaded(values: Sequence[float], lowest: float, highest: float) -> list[Shaded]:
    """Return the values of a row of R; the highest of the matrix has the darkest colour."""
    shaded = []
    for value in values:
        share = (value - lowest) / (highest - lowest) if highest > lowest and np.isfinite(value) else 0.0
        shaded.append(Shaded(number(value), f"{_DARKEST * share:.2f}"))
    return shaded


def _signed(difference: float) -> str:
    """Return a difference with its sign; a dash if it is unknown."""
    sign = "+" if difference >= 0.0005 else ""
    return sign + number(difference) if np.isfinite(difference) else number(np.nan)
