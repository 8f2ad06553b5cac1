"""Whether methods have learned their tasks: a comparison with one that was trained too little says nothing of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from clops_sweep.experiment.metrics import METRICS, short_name, without_split
from clops_sweep.store.run_store import RunStore

from ..formats import number
from ..selection import data_of
from .best import Best
from .moved import DECISIONS, decisions_moved, first_of

_CHANCE = {"auc": 0.5, "auc_seen": 0.5}
"""What a measure is without any learning; 0 for others: the right class among all classes is seldom a guess."""

_LITTLE = 0.5
"""A task counts as not learned below this share of what the best configuration learns of it."""

_LEAST = 0.1
"""What the best configuration must learn of a task, above chance."""

_RISE_OF_HALF, _RISE_OF_QUARTER = 0.05, 0.02
"""Rises in the last half and the last quarter of the epochs of a task from which it is named."""

_MOST = 0.9
"""Score after the last epoch up to which a rise is named: above, there is little left to gain."""

_MOST_RUNS = 2_000
_MOST_NAMED = 3


@dataclass(frozen=True)
class _Learned:
    """What a configuration learns of one task.

    Attributes:
        cell: the configuration.
        configuration: its name.
        task: the task.
        score: the measure on the task directly after training on it, a mean over runs.
        rise: how much the measure rose in the last half of the epochs of the task; nan with a single epoch.
        late_rise: how much of this in the last quarter, rounded down to at least one epoch.
        end: the measure after the last epoch, on validation people as the rises are.
    """

    cell: int
    configuration: str
    task: str
    score: float
    rise: float
    late_rise: float
    end: float


def training_in_doubt(best: Sequence[Best], store: RunStore) -> list[str]:
    """Return sentences on configurations that have not learned a task, and on tasks at whose end scores still rise.

    The first ones are those of `decisions_moved`, on decisions that moved although the ranking was kept.

    A task is not learned if, directly after training on it, a configuration has less than half of what the best one
    has, above chance. Named are rises, in the mean over runs, of 0.05 and more in the last half of the epochs of a
    task, if 0.02 and more of it are in the last quarter and the last score is 0.9 or less. Half and quarter are
    rounded down to at least one epoch, and a rise is that of a fitted line (see `_rises`).

    Args:
        best: the configurations that are compared.
        store: the store with their runs.
    """
    sentences = []
    for compared in _by_data(best):
        sentences += _sentences(compared, store)
    return sentences


def training_in_doubt_of(cell: int, best: Sequence[Best], store: RunStore) -> list[str]:
    """Return the sentences of `training_in_doubt` on one configuration of an experiment.

    Args:
        cell: the configuration; it may be none of those that are compared.
        best: the configurations of the experiment that are compared.
        store: the store with their runs.
    """
    rows = list(best)
    if rows and all(row.cell != cell for row in rows):
        rows.append(replace(rows[0], cell=cell))
    for compared in _by_data(rows):
        if any(row.cell == cell for row in compared):
            return _sentences(compared, store, cell)
    return []


def _by_data(best: Sequence[Best]) -> list[list[Best]]:
    """Return the configurations of each experiment, data set and scenario."""
    groups: dict[tuple[int, object], list[Best]] = {}
    for row in best:
        groups.setdefault((id(row.experiment), data_of(row.experiment.cells[row.cell])), []).append(row)
    return list(groups.values())


def _sentences(compared: Sequence[Best], store: RunStore, only: int | None = None) -> list[str]:
    """Return the sentences on configurations of one experiment, data set and scenario, or only on one of them."""
    metric = compared[0].columns.results[0]
    known = METRICS.get(without_split(metric))
    measure = known.measure if known is not None else None
    runs = sum(len(row.experiment.run_ids(row.cell)) for row in compared)
    if measure is None or runs > _MOST_RUNS:
        return []
    split = "test" if metric.startswith("test_") or compared[0].experiment.on_test else "validation"
    learned = []
    matrices = []
    columns = list(dict.fromkeys(("run_id", "split", "trained_on", "evaluated_on", "task", measure, DECISIONS)))
    for row in compared:
        matrix = store.read("r_matrix", row.experiment.run_ids(row.cell), columns)
        of_split = matrix[matrix["split"] == split]
        learned += _learned(row, measure, of_split, store)
        if only in (None, row.cell):
            matrices.append((row.name, of_split))
    name = short_name(measure)
    of = learned if only is None else [entry for entry in learned if entry.cell == only]
    moved = decisions_moved(matrices, measure, split)
    return [*moved, *_not_learned(of, learned, measure, f"{split} {name}"), *_rising(of, name)]


def _learned(row: Best, measure: str, matrix: pd.DataFrame, store: RunStore) -> list[_Learned]:
    """Return what a configuration learns of each task.

    Args:
        row: the configuration.
        measure: the measure.
        matrix: rows of the table `r_matrix` of its runs, of one split.
        store: the store, for the curves of its runs.
    """
    run_ids = row.experiment.run_ids(row.cell)
    is_learned = matrix["trained_on"] == matrix["evaluated_on"]
    scores = matrix[is_learned].groupby("task", sort=False)[measure].mean()
    rises = late_rises = ends = pd.Series(dtype=float)
    if not row.experiment.cells[row.cell].config.early_stopping:  # with it, curves end with the best epoch
        curves = store.read("curves", run_ids, ["run_id", "epoch", "training_task", "task", measure])
        own = curves[curves["training_task"] == curves["task"]].sort_values("epoch")
        rises = _rises(own, measure, parts=2)
        late_rises = _rises(own, measure, parts=4)
        ends = own.groupby(["run_id", "task"])[measure].last().groupby("task").mean()
    learned = []
    for task, score in scores.items():
        of_curve = [float(values.get(task, math.nan)) for values in (rises, late_rises, ends)]
        learned.append(_Learned(row.cell, row.name, str(task), float(score), *of_curve))
    return learned


def _rises(own: pd.DataFrame, measure: str, parts: int) -> pd.Series[float]:
    """Return how much a measure rose in the last part of the epochs of each task, a mean over runs.

    A rise is that of the straight line with the least squared distance from the scores, which vary from epoch to epoch.

    Args:
        own: a row for each epoch of a run's training on a task, with the measure on this task, in order.
        measure: the measure.
        parts: number of equal parts of the epochs; a part has at least one epoch, after the one where it begins.
    """
    rises = own.groupby(["run_id", "task"])[measure].agg(_rise, parts=parts)
    means: pd.Series[float] = rises.groupby("task").mean()
    return means


def _rise(scores: pd.Series[float], parts: int) -> float:
    """Return the rise of the fitted line over the last part of some scores; nan for a single one."""
    epochs = max(1, len(scores) // parts)
    if len(scores) <= epochs:
        return math.nan
    slope, _ = np.polyfit(np.arange(epochs + 1), scores.to_numpy()[-1 - epochs :], 1)
    return float(slope * epochs)


def _not_learned(of: Sequence[_Learned], learned: Sequence[_Learned], measure: str, named: str) -> list[str]:
    """Return a sentence on the tasks that configurations have not learned; none if all are.

    Args:
        of: what the configurations learn that are named.
        learned: what all configurations learn, of which the best one counts.
        measure: the measure.
        named: its name in the sentence.
    """
    chance = _CHANCE.get(measure, 0.0)
    best: dict[str, _Learned] = {}
    for entry in learned:
        if entry.task not in best or entry.score > best[entry.task].score:
            best[entry.task] = entry
    parts = []
    for entry in of:
        most = best[entry.task]
        if most.score - chance > _LEAST and entry.score - chance < _LITTLE * (most.score - chance):
            parts.append(
                f"{entry.configuration} has {named} {number(entry.score)} on {entry.task} directly after training on "
                f"it, where {most.configuration} has {number(most.score)}"
            )
    if not parts:
        return []
    return [
        f"Not learned: {first_of(parts)}. Scores, forgetting and differences of such a method say "
        "little: train longer (epochs_per_task), or tune its learning rate."
    ]


def _rising(learned: Sequence[_Learned], name: str) -> list[str]:
    """Return a sentence on the tasks at whose end scores still rise; none without any."""
    rising = []
    for entry in learned:
        if entry.rise >= _RISE_OF_HALF and entry.late_rise >= _RISE_OF_QUARTER and entry.end <= _MOST:
            rising.append(entry)
    rising.sort(key=lambda entry: -entry.rise)
    if not rising:
        return []
    parts = [f"{entry.configuration} on {entry.task} by {number(entry.rise)}" for entry in rising[:_MOST_NAMED]]
    more = f" and {len(rising) - _MOST_NAMED} more" if len(rising) > _MOST_NAMED else ""
    return [
        f"In the last half of the epochs of a task, validation {name} still rises: {', '.join(parts)}{more}. With "
        "more epochs_per_task, scores and differences may be others."
    ]
