"""Test scores of configurations on each task at the end of training, and what they forget of it.

Tasks are groups of people or signals here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from clops_sweep.store.run_store import RunStore

from ..collect import Experiment
from ..formats import TextCell, TextTable, label_cell, mean_text
from ..metrics import metric_named, words
from ..selection import cell_name, data_of
from ..statistics import PairedDifference, Replicate, clipped, paired_difference

MOST_TASKS = 8
"""Most tasks that have a column each."""

MOST_ROWS = 20
"""Most configurations with a row."""

_OF_CLASSES = frozenset({"class_il", "class_il_union"})
"""Scenarios whose tasks have classes of their own: their scores are not those of groups of one problem."""


@dataclass(frozen=True)
class ScoresByTask:
    """The mean test score of each configuration on each task, after training on all tasks.

    Attributes:
        experiment: the experiment.
        of: what a task is: the domain, such as "ward", else "task".
        measure: the measure, a column of `r_matrix`.
        tasks: titles of the tasks, in the order of training.
        cells: the configurations.
        means: the means of each configuration, in the order of the tasks; n is 0 without a value.
        changes: the mean change of each configuration on each task, from right after the training on it to the end;
            n is 0 for a task that no run learns before another one.
    """

    experiment: Experiment
    of: str
    measure: str
    tasks: tuple[str, ...]
    cells: tuple[int, ...]
    means: tuple[tuple[PairedDifference, ...], ...]
    changes: tuple[tuple[PairedDifference, ...], ...]

    @property
    def forgets(self) -> tuple[int, ...]:
        """The positions of the tasks that can be forgotten: those with a change."""
        forgotten = set[int]()
        for changes in self.changes:
            forgotten.update(task for task, change in enumerate(changes) if change.n)
        return tuple(sorted(forgotten))

    @property
    def title_of_changes(self) -> str:
        """Title of the table of changes: "Forgetting by ward: change of test AUC"."""
        return f"Forgetting by {self.of}: change of test {words(self.measure)}"

    @property
    def title(self) -> str:
        """Title of the table: "Test AUC by ward"."""
        return f"Test {words(self.measure)} by {self.of}"

    @property
    def better(self) -> str:
        """Whether "higher" or "lower" values are better; empty if neither."""
        return metric_named(self.measure).better or ""

    def name(self, position: int) -> str:
        """Return the name of a configuration."""
        return cell_name(self.experiment.cells[self.cells[position]]) or self.experiment.name


def scores_by_task(
    experiment: Experiment, cells: Sequence[int], store: RunStore, titles: Mapping[str, str]
) -> ScoresByTask | None:
    """Return the test scores of configurations by task; None if tasks are classes, many, or differ between runs.

    The means and their intervals are over the units of the table of test scores (`..results.mean_of`).

    Args:
        experiment: the experiment.
        cells: its configurations to show.
        store: the store with their runs.
        titles: titles of the tasks by name, where they have others.
    """
    cells = list(cells)[:MOST_ROWS]
    scenarios = {data_of(experiment.cells[cell]) for cell in cells}
    if len(scenarios) != 1 or scenarios.pop()[1] in _OF_CLASSES:
        return None
    ids = [run for cell in cells for run in experiment.run_ids(cell)]
    matrix = store.read("r_matrix", ids) if ids else pd.DataFrame()
    if matrix.empty or experiment.measure not in matrix:
        return None
    of_test = matrix[matrix["split"] == "test"]
    last = of_test.groupby("run_id")["trained_on"].transform("max")
    at_end = of_test[of_test["trained_on"] == last]
    names: dict[str, list[int]] = {}
    for task, position in zip(at_end["task"], at_end["evaluated_on"], strict=True):
        names.setdefault(str(task), []).append(int(position))
    if not 1 < len(names) <= MOST_TASKS:
        return None
    tasks = sorted(names, key=lambda task: float(np.mean(names[task])))
    is_after = (of_test["trained_on"] == of_test["evaluated_on"]) & (of_test["trained_on"] < last)
    after = of_test[is_after]
    of_cells = [_means(experiment, cell, tasks, at_end) for cell in cells]
    changes = [_means(experiment, cell, tasks, at_end, after) for cell in cells]
    domains = {str(experiment.cells[cell].config.get("domain") or "task") for cell in cells}
    return ScoresByTask(
        experiment,
        domains.pop() if len(domains) == 1 else "task",
        experiment.measure,
        tuple(titles.get(task, task) for task in tasks),
        tuple(cells),
        tuple(of_cells),
        tuple(changes),
    )


def _means(
    experiment: Experiment, cell: int, tasks: Sequence[str], at_end: pd.DataFrame, after: pd.DataFrame | None = None
) -> tuple[PairedDifference, ...]:
    """Return the mean of a configuration on each task.

    Args:
        experiment: the experiment.
        cell: the configuration.
        tasks: names of the tasks.
        at_end: rows of `r_matrix` at the end of training.
        after: rows right after the training on their task, which are subtracted; None for the scores at the end.
    """
    measure = experiment.measure
    runs = experiment.runs_of(cell)
    replicate_of = dict(zip(runs["run_id"].tolist(), experiment.replicates_of(runs), strict=True))
    known = experiment.partitions(cell)
    low, high = metric_named(measure).limits
    limits = (low, high) if after is None else (low - high, high - low)
    means = []
    for task in tasks:
        values = _by_replicate(experiment, replicate_of, at_end[at_end["task"] == task])
        before = np.zeros_like(values)
        if after is not None:
            before = _by_replicate(experiment, replicate_of, after[after["task"] == task])
        mean = paired_difference(values, before, experiment.replicates, known, f"test_{measure}")
        means.append(clipped(mean, limits))
    return tuple(means)


def _by_replicate(
    experiment: Experiment, replicate_of: Mapping[str, Replicate], of_task: pd.DataFrame
) -> npt.NDArray[np.float64]:
    """Return the scores of runs on one task by replicate, NaN where missing."""
    columns = {replicate: column for column, replicate in enumerate(experiment.replicates)}
    values = np.full(len(columns), np.nan)
    for run, value in zip(of_task["run_id"], of_task[experiment.measure], strict=True):
        if run in replicate_of:
            values[columns[replicate_of[run]]] = value
    return values


def by_task_text(record: ScoresByTask, name: str, of_several: bool = False) -> TextTable:
    """Return the scores by task as a table.

    Args:
        record: the scores.
        name: name of the table.
        of_several: whether the page has other search spaces, so that the title names this one.
    """
    rows = []
    data = []
    for position, means in enumerate(record.means):
        cells = [TextCell(mean_text(mean), mean.mean) for mean in means]
        rows.append((label_cell(record.name(position)), *cells))
        for task, mean in zip(record.tasks, means, strict=True):
            of_task = record.experiment.name, record.name(position), task, record.measure
            data.append((*of_task, mean.mean, mean.low, mean.high, mean.n))
    every = [mean for means in record.means for mean in means]
    has_intervals = any(np.isfinite(mean.low) for mean in every)
    intervals = " [95 % interval, unadjusted]" if has_intervals else ""
    better = f"; {record.better} is better" if record.better else ""
    notes = (
        f"Mean at the end of training, on the test people of each {record.of}{intervals}{better}.",
        "Columns are in the order of training; units and intervals are those of the test scores above. Table r_matrix "
        f"has these scores of each run: split test, column {record.measure}.",
    )
    title = f"{record.title}, {record.experiment.name}" if of_several else record.title
    columns = ("search_space", "configuration", "task", "measure", "mean", "low", "high", "n")
    frame = pd.DataFrame(data, columns=list(columns), dtype=object)
    return TextTable(name, title, ("configuration", *record.tasks), tuple(rows), 1, notes=notes, data=frame)


def forgetting_text(record: ScoresByTask, name: str, of_several: bool = False) -> TextTable | None:
    """Return the changes by task as a table; None if no task can be forgotten.

    The arguments are those of `by_task_text`.
    """
    if not record.forgets:
        return None
    rows = []
    data = []
    for position, changes in enumerate(record.changes):
        cells = []
        for task in record.forgets:
            change = changes[task]
            cells.append(TextCell(signed_text(change), change.mean))
            of_task = record.experiment.name, record.name(position), record.tasks[task], record.measure
            data.append((*of_task, change.mean, change.low, change.high, change.n))
        rows.append((label_cell(record.name(position)), *cells))
    every = [changes[task] for changes in record.changes for task in record.forgets]
    intervals = " [95 % interval, unadjusted]" if any(np.isfinite(change.low) for change in every) else ""
    forgot = {"higher": "Below 0: forgotten.", "lower": "Above 0: forgotten."}.get(record.better, "")
    note = (
        f"Mean of the score at the end of training minus the score right after training on the {record.of}, on its "
        f"test people{intervals}. {forgot} The {record.of} that is learned last cannot be forgotten yet."
    )
    title = f"{record.title_of_changes}, {record.experiment.name}" if of_several else record.title_of_changes
    columns = ("search_space", "configuration", "task", "measure", "change", "low", "high", "n")
    frame = pd.DataFrame(data, columns=list(columns), dtype=object)
    header = ("configuration", *(record.tasks[task] for task in record.forgets))
    return TextTable(name, title, header, tuple(rows), 1, notes=(note,), data=frame)


def signed_text(change: PairedDifference) -> str:
    """Format a change as `mean_text` does a mean, with "+" for an increase."""
    return f"+{mean_text(change)}" if change.n and change.mean >= 0.0005 else mean_text(change)
