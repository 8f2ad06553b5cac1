"""The page of methods: the test scores of each, by data set and scenario."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from clops_sweep.errors import UsageError

from ..collect import Experiment, label_text
from ..formats import DASH, duration, plural
from ..metrics import metric_named
from ..results import mean_of
from ..selection import cell_name, cells_by_data, competing_cells, data_of, variants
from ..statistics import PairedDifference
from .snapshot import Snapshot

MOST_METRICS = 2
_UNITS = {"patient splits": "split", "folds": "fold", "seeds": "seed", "runs": "split"}


@dataclass(frozen=True)
class MethodRow:
    """A method: one variant of an experiment, by its configuration with the best mean on validation people.

    Configurations that lack runs do not compete with complete ones of their data set and scenario.

    Attributes:
        experiment: name of the experiment.
        name: name of the configuration.
        of: number of configurations of the variant that competed.
        scores: mean and interval of each metric, in the order of the table.
        n: number and kind of units, such as "5 splits".
        failed: number of failed runs of the variant.
        seconds: mean compute time of a finished run.
        query: the parameters of the page "Runs" that select the runs of the variant.
        sort: the mean of the first metric, higher is better; NaN without one.
    """

    experiment: str
    name: str
    of: int
    scores: tuple[str, ...]
    n: str
    failed: int
    seconds: str
    query: Mapping[str, str]
    sort: float


@dataclass(frozen=True)
class MethodTable:
    """The methods on one data set and scenario, best first.

    Attributes:
        title: data set and scenario.
        metrics: titles of the metrics.
        rows: the methods.
        on_one_split: whether the intervals of some rows are over the seeds of one patient split.
    """

    title: str
    metrics: tuple[str, ...]
    rows: tuple[MethodRow, ...]
    on_one_split: bool


def method_tables(snapshot: Snapshot) -> list[MethodTable]:
    """Return the methods of all experiments that report results, a table for each data set and scenario."""
    groups: dict[tuple[str, str], list[tuple[Experiment, list[int]]]] = {}
    for section in snapshot.sections.values():
        experiment = section.experiment
        if experiment.is_tuning or not experiment.counts("finished").any():
            continue
        for cells in cells_by_data(experiment):
            if any(experiment.run_ids(cell) for cell in cells):
                groups.setdefault(data_of(experiment.cells[cells[0]]), []).append((experiment, cells))
    return [_table(f"{dataset}, {scenario}", group) for (dataset, scenario), group in groups.items()]


def _table(title: str, group: list[tuple[Experiment, list[int]]]) -> MethodTable:
    """Return the table of the cells of some experiments, which are of one data set and scenario."""
    metrics = list(dict.fromkeys(name for experiment, _ in group for name in _test_metrics(experiment)))[:MOST_METRICS]
    rows = []
    kinds: set[str] = set()
    for experiment, of_data in group:
        competing = set(competing_cells(experiment, experiment.headline[0]))
        for of_variant in variants(experiment, experiment.number_axes).values():
            cells = [cell for cell in of_variant if cell in of_data]
            best = _best_on_validation(experiment, [cell for cell in cells if cell in competing] or cells)
            if best is None:
                continue
            means = [_mean(experiment, best, name) for name in metrics]
            kinds.update(mean.units.kind for mean in means if mean is not None and mean.units is not None)
            rows.append(_row(experiment, cells, best, dict(zip(metrics, means, strict=True))))
    rows.sort(key=lambda row: -row.sort if np.isfinite(row.sort) else np.inf)
    titles = tuple(metric_named(name).plain for name in metrics)
    return MethodTable(title, titles, tuple(rows), "seeds" in kinds)


def _test_metrics(experiment: Experiment) -> list[str]:
    measured = experiment.measured
    names = [f"test_{name}" for name in experiment.headline]
    return [name for name in names if name in measured]


def _best_on_validation(experiment: Experiment, cells: list[int]) -> int | None:
    """Return the cell with the best mean of the first headline metric; None without a finished run."""
    metric = experiment.headline[0]
    sign = -1 if metric_named(metric).better == "lower" else 1
    values = sign * experiment.by_split(metric)
    finished = [cell for cell in cells if np.isfinite(values[cell]).any()]
    return max(finished, key=lambda cell: float(np.nanmean(values[cell])), default=None)


def _mean(experiment: Experiment, cell: int, metric: str) -> PairedDifference | None:
    with suppress(UsageError):  # folds and random splits
        mean = mean_of(experiment, cell, metric)
        return mean if mean.n else None
    return None


def _row(
    experiment: Experiment, cells: list[int], best: int, means: Mapping[str, PairedDifference | None]
) -> MethodRow:
    scores = []
    first = None
    for name, mean in means.items():
        text = metric_named(name).text
        if mean is None:
            scores.append(DASH)
            continue
        first = first or (name, mean)
        ends = f" [{text(mean.low)}, {text(mean.high)}]" if np.isfinite(mean.low) else ""
        scores.append(f"{text(mean.mean)}{ends}")
    sort, n = np.nan, DASH
    if first is not None:
        name, mean = first
        sort = -mean.mean if metric_named(name).better == "lower" else mean.mean
        n = plural(mean.n, _UNITS[mean.units.kind]) if mean.units is not None else str(mean.n)
    runs = experiment.runs[experiment.runs["cell"].isin(cells)]
    finished = runs[runs["status"] == "finished"]
    cell = experiment.cells[best]
    axes = [axis for axis in experiment.axes if axis not in experiment.number_axes]
    query = {f"only-{axis}": label_text(cell.labels[axis]) for axis in axes if cell.labels.get(axis) is not None}
    return MethodRow(
        experiment=experiment.name,
        name=cell_name(cell) or cell.config.strategy,
        of=len(cells),
        scores=tuple(scores),
        n=n,
        failed=int((runs["status"] == "failed").sum()),
        seconds=duration(float(finished["seconds"].mean())) if len(finished) else DASH,
        query={"experiment": experiment.name, **query},
        sort=sort,
    )
