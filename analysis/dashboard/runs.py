"""The table of the runs of an experiment, in pages and as CSV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from clops_sweep.experiment.axis_names import axis_title
from clops_sweep.experiment.fields import REPLICATES, SPLIT_AXES

from ..collect import Experiment, label_text
from ..formats import as_csv
from ..selection import cell_name
from .overview import ended_at, statuses
from .units import split_names

PAGE = 50
"""Rows per page."""

_MOST_LABELS = 100
"""Most labels of a column to choose from."""


@dataclass(frozen=True)
class RunsTable:
    """A table of runs.

    Attributes:
        frame: a row per run, whose index is the position in the experiment's `runs`: `run_id`, `status`, the labels on
            the axes, in their order, `split_seed`, `split` with folds, `seed`, measured columns of finished runs, and
            `ended`.
        labels: names of its label columns.
        measured: names of its measured columns.
    """

    frame: pd.DataFrame
    labels: tuple[str, ...]
    measured: tuple[str, ...]

    def csv(self) -> str:
        """Return all rows as CSV, in full precision; missing values are empty."""
        return as_csv(self.frame.assign(ended=[it.isoformat() if it else "" for it in self.frame["ended"]]))

    @property
    def varied(self) -> list[str]:
        """The label columns with at least two values."""
        return [name for name in self.labels if len(self.frame[name].unique()) > 1]

    def only(self, keep: Mapping[str, str]) -> RunsTable:
        """Return the rows that have the given labels in some columns."""
        frame = self.frame
        for name, label in keep.items():
            frame = frame[frame[name].map(label_text) == label]
        return replace(self, frame=frame)

    def page(self, at: int) -> tuple[pd.DataFrame, int, int]:
        """Return a page of rows, its number from 1, and the number of pages; the last page if `at` is too high."""
        pages = max(1, -(-len(self.frame) // PAGE))
        at = min(max(at, 1), pages)
        return self.frame.iloc[(at - 1) * PAGE : at * PAGE], at, pages


Filter = tuple[str, str, list[tuple[str, str]]]
"""A column to filter by: its name, its title, and its labels with their texts."""


def filters(table: RunsTable) -> list[Filter]:
    """Return the columns that a reader can filter by; the first label of each, "all", filters nothing."""
    found: list[Filter] = []
    for name in table.varied:
        labels = dict.fromkeys(map(label_text, table.frame[name].dropna().tolist()))
        if len(labels) <= _MOST_LABELS:
            found.append((name, axis_title(name), [("", "all"), *((label, label) for label in labels)]))
    return found


def kept_labels(given: Mapping[str, str], table: RunsTable) -> dict[str, str]:
    """Return the labels to keep that an address names as `only-COLUMN=LABEL`."""
    return {name: given[f"only-{name}"] for name in table.labels if given.get(f"only-{name}")}


def runs_table(experiment: Experiment, running: frozenset[str], *, sort: str = "", status: str = "") -> RunsTable:
    """Return the table of the runs of an experiment.

    Args:
        experiment: the experiment.
        running: ids of the running runs.
        sort: the column to sort by, with a leading minus for descending order; by labels if unknown.
        status: show only runs of this status, if any has it.
    """
    runs = experiment.runs
    cells, finished = runs["cell"].to_numpy(dtype=int), runs["status"] == "finished"
    columns: dict[str, object] = {}
    for axis, labels in experiment.axes.items():
        texts = np.array([cell.label(axis) for cell in experiment.cells], dtype=object)
        columns[axis] = pd.Categorical(texts[cells], list(dict.fromkeys(map(label_text, labels))), ordered=True)
    replicate = [name for name in REPLICATES if name != "split" or runs["split"].notna().any()]
    columns |= {name: runs[name].to_numpy() for name in replicate}
    labels = tuple(columns)
    measured = tuple(name for name in experiment.measured if name not in columns)
    columns |= {name: runs[name].astype(float).where(finished).to_numpy() for name in measured}
    given = {"run_id": runs["run_id"].to_numpy(), "status": statuses(runs, running).to_numpy()}
    frame = pd.DataFrame(given | columns | {"ended": pd.to_datetime(ended_at(runs), unit="s", utc=True)})
    column = sort.removeprefix("-")
    by = [column] if column in frame else [name for name in labels if name in frame]
    if by == list(labels) and experiment.is_tuning:
        by = [*(name for name in SPLIT_AXES if name in frame), *by]  # a group for each patient split
    frame = frame.sort_values(by, ascending=not sort.startswith("-"), kind="stable", na_position="last")
    if status in set(frame["status"]):
        frame = frame[frame["status"] == status]
    return RunsTable(frame, labels, measured)


def run_names(experiment: Experiment, rows: pd.DataFrame) -> list[str]:
    """Return the names of rows of `runs`: configuration, patient split or fold if there are several, and seed."""
    split_of = split_names({split for split, _ in experiment.replicates})
    cells = [experiment.cells[cell] for cell in rows["cell"].tolist()]
    names = []
    for cell, (split, seed) in zip(cells, experiment.replicates_of(rows), strict=True):
        parts = [cell_name(cell), split_of[split] if len(split_of) > 1 else "", f"seed {seed}"]
        names.append(", ".join(part for part in parts if part))
    return names


def splits_of_rows(experiment: Experiment, rows: pd.DataFrame) -> list[str]:
    """Return the name of the patient split of rows of `runs`; empty if the experiment has one split."""
    split_of = split_names({split for split, _ in experiment.replicates})
    if len(split_of) < 2:
        return []
    return [split_of[split] for split, _ in experiment.replicates_of(rows)]
