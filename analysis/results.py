"""Tables of results: mean and standard deviation over replicates, with the paper's values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
import numpy.typing as npt
import pandas as pd

from clops_sweep.experiment.metrics import without_split

from .collect import Cell, Experiment
from .metrics import metric_named
from .published import Departure, PublishedValue, departures, published_values
from .statistics import (
    Estimate,
    PairedDifference,
    Partitions,
    Replicate,
    Units,
    clipped,
    estimate,
    estimates,
    ordered,
    paired_difference,
    paired_differences,
    partitions,
    units_of,
)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Reference:
    """A cell of another search space to compare with, such as fine-tuning."""

    name: str
    experiment: Experiment
    cell: int


@dataclass(frozen=True)
class Row:
    """One configuration. `estimates` and `published` are by metric; `asked`, `finished` and `failed` count runs.

    `departures` are the settings in which it differs from the published configuration, if there is one.
    """

    labels: tuple[str, ...]
    estimates: Mapping[str, Estimate] = field(hash=False)
    published: Mapping[str, PublishedValue] = field(hash=False)
    departures: tuple[Departure, ...]
    asked: int
    finished: int
    failed: int
    run_ids: tuple[str, ...]
    is_reference: bool
    best_in: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The labels of the row as one text."""
        return ", ".join(label for label in self.labels if label)

    def difference(self, metric: str) -> float:
        """Return our mean minus the published one; NaN if either is missing."""
        if metric not in self.published:
            return np.nan
        return self.estimates[metric].mean - self.published[metric].mean


@dataclass(frozen=True)
class ResultTable:
    """All configurations of an experiment, then the references.

    `metrics` are shown; `tested` are those of test people and `validated` those of validation people, where the table
    has both.
    `Row.best_in` names the metrics in which a row is clearly the best of its data set and scenario: the intervals of
    its paired differences to all other rows exclude zero.
    """

    name: str
    label_names: tuple[str, ...]
    rows: tuple[Row, ...]
    metrics: tuple[str, ...]
    tested: tuple[str, ...] = ()
    validated: tuple[str, ...] = ()

    @property
    def published(self) -> ResultTable:
        """The configurations that the paper also reports."""
        return replace(self, rows=tuple(row for row in self.rows if row.published))


def result_table(experiment: Experiment, references: Sequence[Reference] = ()) -> ResultTable:
    """Return the table of an experiment: a row per configuration, then a row per reference."""
    label_names = tuple(experiment.axes) or ("configuration",)
    sources = [(experiment, cell) for cell in range(len(experiment.cells))]
    names = [_labels(experiment, cell, label_names) for cell in experiment.cells]
    no_labels = ("",) * (len(label_names) - 1)
    for reference in references:
        sources.append((reference.experiment, reference.cell))
        names.append((reference.name, *no_labels))
    tested, validated = _tested(experiment), _validated(experiment)
    metrics = dict.fromkeys((*experiment.headline, *tested, *validated))
    drafts = _rows(sources, names, len(experiment.cells), tuple(metrics))
    best: dict[int, set[str]] = {}
    for metric in experiment.headline:
        sign = {"higher": 1, "lower": -1, None: np.nan}[metric_named(metric).better]
        for places in _by_data(sources):
            values, replicates, known = aligned([sources[place] for place in places], metric)
            for winner in clear_winners(sign * values, replicates, known, metric):
                best.setdefault(places[winner], set()).add(metric)
    rows = [replace(row, best_in=frozenset(best.get(position, ()))) for position, row in enumerate(drafts)]
    if validated:
        tested = tuple(metric for metric in experiment.headline if metric_named(metric).split == "test")
    return ResultTable(experiment.name, label_names, tuple(rows), experiment.headline, tested, validated)


def _by_data(sources: Sequence[tuple[Experiment, int]]) -> list[list[int]]:
    """Group the indices of cells by data set and scenario: scores on others cannot be compared."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place, (experiment, cell) in enumerate(sources):
        config = experiment.cells[cell].config
        groups.setdefault((config.dataset, config.scenario), []).append(place)
    return list(groups.values())


def _tested(experiment: Experiment) -> tuple[str, ...]:
    """Return the columns with the headline metrics of test people, where the metrics are of validation people."""
    if experiment.on_test:
        return ()
    runs = experiment.runs
    of_validation = [metric for metric in experiment.headline if metric_named(metric).split == "validation"]
    columns = [f"test_{metric}" for metric in of_validation]
    return tuple(column for column in columns if column in runs and runs[column].notna().any())


def _validated(experiment: Experiment) -> tuple[str, ...]:
    """Return the columns with the headline metrics of validation people, where the metrics are of test people."""
    of_test = [metric for metric in experiment.headline if metric_named(metric).split == "test"]
    columns = [without_split(metric) for metric in of_test]
    runs = experiment.runs
    return tuple(column for column in columns if column in runs and runs[column].notna().any())


def mean_of(experiment: Experiment, cell: int, metric: str) -> PairedDifference:
    """Return the mean of a configuration's metric over units, with its corrected 95 % interval (`paired_difference`).

    The interval ends at the limits of the metric, such as 0 and 1.

    Raises:
        UsageError: folds and random splits are mixed.
    """
    values, replicates = experiment.by_replicate(metric)[cell], experiment.replicates
    mean = paired_difference(values, np.zeros_like(values), replicates, experiment.partitions(cell), metric)
    return clipped(mean, metric_named(metric).limits)


def over_units(runs: pd.DataFrame, column: str) -> tuple[Estimate, Units | None]:
    """Return mean and standard deviation of a column over the units of all intervals, and these units.

    Units are patient splits, each the mean over its seeds; with one split, they are its seeds (`units_of`).

    Args:
        runs: rows of `runs` of one configuration.
        column: the column; runs without a finite value are left out.

    Returns:
        The estimate, and the units; None without a value.
    """
    measured = runs[np.isfinite(runs[column].to_numpy(dtype=float))]
    if measured.empty:
        return estimate([]), None
    units = units_of(Experiment.replicates_of(measured), partitions(measured), column)
    values = measured[column].to_numpy(dtype=float)
    return estimate([values[list(members)].mean() for members in units.members]), units


def aligned(sources: Sequence[tuple[Experiment, int]], metric: str) -> tuple[Floats, list[Replicate], Partitions]:
    """Align the values of cells of several experiments by replicate.

    Returns:
        An array (sources, replicates), NaN without a run; the replicates; and the partitions of the first source.
    """
    experiments = _experiments_of(sources)
    of_all = chain.from_iterable(experiment.replicates for experiment in experiments.values())
    replicates = ordered(of_all)
    column_of = {replicate: column for column, replicate in enumerate(replicates)}
    columns: dict[int, list[int]] = {}
    of_cells: dict[int, Floats] = {}
    for key, experiment in experiments.items():
        columns[key] = [column_of[replicate] for replicate in experiment.replicates]
        of_cells[key] = experiment.by_replicate(metric)
    values = np.full((len(sources), len(replicates)), np.nan)
    for row, (experiment, cell) in enumerate(sources):
        key = id(experiment)
        values[row, columns[key]] = of_cells[key][cell]
    first, first_cell = sources[0]
    return values, replicates, first.partitions(first_cell)


def _experiments_of(sources: Sequence[tuple[Experiment, int]]) -> dict[int, Experiment]:
    """Return the experiments of cells by their identity, each once."""
    return {id(experiment): experiment for experiment, _ in sources}


def clear_winners(
    values: Floats, replicates: Sequence[Replicate], known: Partitions, measure: str = "auc"
) -> tuple[int, ...]:
    """Return the row of highest mean, if the interval of its paired difference to every other row excludes zero.

    Rows with equal values, such as acquisition functions when everything is replayed, win together. A row with too few
    common replicates prevents a clear winner; a row without values does not compete.
    """
    competing = np.flatnonzero(np.isfinite(values).sum(axis=1) > 0)
    if competing.size < 2:
        return ()
    means = np.array([np.nanmean(values[row]) for row in competing])
    order = competing[np.argsort(-means, kind="stable")]
    best = values[order[0]]
    equal = [int(row) for row in order if np.array_equal(values[row], best, equal_nan=True)]
    others = [row for row in order if row not in equal]
    if not others:
        return ()
    repeated = np.broadcast_to(best, (len(others), best.size))
    differences = paired_differences(repeated, values[others], replicates, known, measure)
    clear = all(difference.low > 0 for difference in differences)  # a mean over fewer runs may be higher, yet be below
    return tuple(equal) if clear else ()


def _labels(experiment: Experiment, cell: Cell, label_names: tuple[str, ...]) -> tuple[str, ...]:
    if not experiment.axes:
        return (experiment.name,)
    return tuple(cell.label(axis) for axis in label_names)


def _rows(
    sources: Sequence[tuple[Experiment, int]], names: Sequence[tuple[str, ...]], own: int, metrics: Sequence[str]
) -> list[Row]:
    asked, finished, failed = {}, {}, {}
    of_cells: dict[tuple[int, str], Sequence[Estimate]] = {}
    for key, experiment in _experiments_of(sources).items():
        asked[key] = experiment.counts()
        finished[key] = experiment.counts("finished")
        failed[key] = experiment.counts("failed")
        for metric in metrics:
            of_cells[key, metric] = estimates(experiment.by_split(metric))
    rows = []
    for position, (experiment, cell) in enumerate(sources):
        key = id(experiment)
        config = experiment.cells[cell].asked
        published = {metric: value for metric, value in published_values(config).items() if metric in metrics}
        rows.append(
            Row(
                names[position],
                {metric: of_cells[key, metric][cell] for metric in metrics},
                published,
                departures(config) if published else (),
                asked=int(asked[key][cell]),
                finished=int(finished[key][cell]),
                failed=int(failed[key][cell]),
                run_ids=experiment.run_ids(cell),
                is_reference=position >= own,
            )
        )
    return rows
