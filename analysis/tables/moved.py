"""Whether decisions on earlier tasks moved although a ranking was kept: an AUC alone does not show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd

from clops_sweep.experiment.metrics import short_name

from ..formats import number

RANKINGS: Final = ("auc", "auc_seen")
"""Measures of how scores rank people, whatever the threshold of decisions."""

DECISIONS: Final = "accuracy"
_MOVED: Final = 0.1
"""A loss of accuracy on earlier tasks from which decisions moved, and of the ranking below which it was kept."""
_MOST_NAMED: Final = 3


def first_of(parts: Sequence[str]) -> str:
    """Return the first three phrases of a sentence, and the number of the others."""
    more = f"; and {len(parts) - _MOST_NAMED} more" if len(parts) > _MOST_NAMED else ""
    return f"{'; '.join(parts[:_MOST_NAMED])}{more}"


def decisions_moved(matrices: Sequence[tuple[str, pd.DataFrame]], measure: str, split: str) -> list[str]:
    """Return a sentence on configurations that keep a ranking on earlier tasks and lose accuracy; none without any.

    Scores directly after training on a task are compared with those after the last task, in the mean over earlier tasks
    and runs, as in BWT. Decisions moved if accuracy falls by 0.1 or more, and the ranking by less.

    Args:
        matrices: the names of configurations, and rows of the table `r_matrix` of their runs, of one split.
        measure: the measure that leads; no other than `RANKINGS` has a sentence.
        split: "test" or "validation".
    """
    if measure not in RANKINGS:
        return []
    name = short_name(measure)
    parts = []
    for configuration, matrix in matrices:
        before, after = _on_earlier_tasks(matrix, [measure, DECISIONS])
        lost = before - after
        if lost[DECISIONS] >= _MOVED and lost[measure] < _MOVED:
            accuracies = f"{split} accuracy {number(before[DECISIONS])} to {number(after[DECISIONS])}"
            rankings = f"{name} {number(before[measure])} to {number(after[measure])}"
            parts.append(f"{configuration}: {accuracies} on earlier tasks, {rankings}")
    if not parts:
        return []
    return [
        f"Ranking kept, decisions moved: {first_of(parts)}. {name} compares ranks and no "
        "decisions: see accuracy and an update report before such a model is used."
    ]


def _on_earlier_tasks(matrix: pd.DataFrame, measures: list[str]) -> tuple[pd.Series[float], pd.Series[float]]:
    """Return measures on all tasks but the last one of each run, directly after each and after the last one: means."""
    last = matrix.groupby("run_id")["trained_on"].transform("max")
    is_earlier = matrix["evaluated_on"] < last
    before = matrix[is_earlier & (matrix["trained_on"] == matrix["evaluated_on"])]
    after = matrix[is_earlier & (matrix["trained_on"] == last)]
    return _mean_over_runs(before, measures), _mean_over_runs(after, measures)


def _mean_over_runs(rows: pd.DataFrame, measures: list[str]) -> pd.Series[float]:
    means: pd.Series[float] = rows.groupby("run_id")[measures].mean().mean()
    return means
