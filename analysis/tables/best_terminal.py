"""The best configurations of a launch for a terminal, ranked as in the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clops_sweep.experiment.metrics import short_name
from clops_sweep.planning.state import State

from ..collect import Experiment, collect
from ..formats import DASH, number, plural
from ..selection import cell_name, data_of
from .best import RANKED_APART, best_cells, metrics_of_best, tied_in_words, unranked_in_words
from .terminal_table import TerminalTable

MOST_ROWS = 5
"""Most configurations per search space."""


_RANGE = "lowest to highest"
"""Heading of the range of the first metric over the runs."""


@dataclass(frozen=True)
class BestConfiguration:
    """A configuration with its scores.

    Attributes:
        name: its name in the search space.
        runs: number of finished runs.
        splits: number of patient splits of these runs.
        means: mean of each metric over the patient splits or, with one split, over the seeds.
        low: lowest value of the first metric among the runs.
        high: highest value.
        run_id: the run whose first metric is closest to the mean.
    """

    name: str
    runs: int
    splits: int
    means: dict[str, float]
    low: float
    high: float
    run_id: str


@dataclass(frozen=True)
class BestOfSpace:
    """The best configurations of a search space.

    Attributes:
        space: name of the search space.
        is_reported: whether they were chosen by tuning.
        on_test: whether the ranking metric is of test people, because the data have no validation set.
        of: number of configurations with finished runs.
        rows: the best ones, the best of all first.
        tied: names of the configurations that share the best mean; none if the best one is alone.
        ranked_apart: whether configurations are ranked within each of several data sets or scenarios.
        unranked: a sentence about configurations without some of their runs; empty if all have theirs.
    """

    space: str
    is_reported: bool
    on_test: bool
    of: int
    rows: tuple[BestConfiguration, ...]
    tied: tuple[str, ...]
    unranked: str = ""
    ranked_apart: bool = False


def best_of_state(state: State) -> list[BestOfSpace]:
    """Return the best configurations of each search space with finished runs; searches are left out.

    Raises:
        UsageError: folds and random splits are mixed in one search space.
    """
    reported = [space.name for tuned in state.tuned if (space := tuned.reported) is not None]
    grids = [space for space in state.spaces if space.search is None]
    experiments = collect(grids, state.resolved.store.read("runs")) if grids else []
    tables = []
    for experiment in experiments:
        cells, tied = best_cells(experiment)
        if cells:
            rows = tuple(_row(experiment, cell) for cell in cells[:MOST_ROWS])
            of = sum(bool(experiment.run_ids(cell)) for cell in range(len(experiment.cells)))
            is_reported = experiment.name in reported
            unranked = unranked_in_words(experiment)
            apart = len({data_of(experiment.cells[cell]) for cell in cells}) > 1
            tables.append(
                BestOfSpace(experiment.name, is_reported, experiment.on_test, of, rows, tied, unranked, apart)
            )
    return sorted(tables, key=lambda table: not table.is_reported)


def _row(experiment: Experiment, cell: int) -> BestConfiguration:
    metrics = metrics_of_best(experiment)
    if not experiment.on_test:
        metrics = [metrics[0], f"test_{metrics[0]}", *metrics[1:]]
    means = {}
    for metric in metrics:
        by_split = experiment.by_split(metric)[cell]
        means[metric] = float(np.nanmean(by_split)) if np.isfinite(by_split).any() else np.nan
    values = experiment.by_replicate(metrics[0])[cell]
    closest = experiment.replicates[int(np.nanargmin(np.abs(values - means[metrics[0]])))]
    runs = experiment.runs_of(cell)
    replicates = Experiment.replicates_of(runs)
    run_id = str(runs["run_id"].iloc[replicates.index(closest)])
    splits = len({split for split, _ in replicates})
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return BestConfiguration(cell_name(experiment.cells[cell]), len(runs), splits, means, low, high, run_id)


def terminal_table(best: BestOfSpace, digits: int) -> TerminalTable:
    """Return the best configurations as texts.

    Args:
        best: the best configurations.
        digits: length of the run ids.
    """
    first, *others = best.rows[0].means
    measure = first.removeprefix("test_")
    whose = "test" if best.on_test else "validation"
    columns = {first: whose, _RANGE: _RANGE}
    for metric in others:
        columns[metric] = "test" if metric.startswith("test_") else short_name(metric, measure)
    if best.is_reported:  # what tuning did not see comes first
        columns = dict(sorted(columns.items(), key=lambda column: not column[0].startswith("test_")))
    header = ["configuration", *columns.values(), "runs", "run_id"]
    rows = []
    for row in best.rows:
        of_splits = f" on {plural(row.splits, 'split')}" if row.splits > 1 else ""
        scores = {metric: number(mean) for metric, mean in row.means.items()}
        scores[_RANGE] = f"{number(row.low)} to {number(row.high)}" if row.runs > 1 else DASH
        texts = [row.name or best.space, *(scores[column] for column in columns), f"{row.runs}{of_splits}"]
        rows.append((*texts, row.run_id[:digits]))
    which = f"reported runs of {best.space!r}" if best.is_reported else _which(best)
    title = f"{which}: mean {short_name(measure)}; run_id: the run closest to the mean"
    notes = [tied_in_words(best.tied, best.of)] if best.tied else []
    if best.unranked:
        notes.append(best.unranked)
    if best.ranked_apart:
        notes.append(RANKED_APART)
    return TerminalTable(title, tuple(header), tuple(rows), tuple(header[1:-1]), tuple(notes))


def _which(best: BestOfSpace) -> str:
    if best.of == 1:
        return f"the configuration of {best.space!r}"
    if len(best.rows) == best.of:
        return f"configurations of {best.space!r}, best first"
    if len(best.rows) < MOST_ROWS:  # the report shows one of those that differ in numbers alone
        return f"best of each variant of {best.space!r}, of {best.of:,} configurations"
    return f"best {len(best.rows)} of {best.of:,} configurations of {best.space!r}"


def best_as_data(tables: Sequence[BestOfSpace]) -> list[dict[str, object]]:
    """Return the best configurations as data for JSON."""
    return [
        {
            "space": table.space,
            "is_reported": table.is_reported,
            "on_test": table.on_test,
            "configurations": table.of,
            "best": list(map(vars, table.rows)),
            "tied": list(table.tied),
            "unranked": table.unranked,
        }
        for table in tables
    ]
