"""The best configurations of a launch for a terminal: the rows, scores and headings of the report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clops_sweep.planning.state import State

from ..collect import Experiment
from ..editions import replaced_in_words
from ..formats import DASH, mean_text, number
from ..leading import columns_in_words, heading
from ..metrics import metric_named
from .best import (
    RANKED_APART,
    Best,
    Failing,
    best_of_page,
    failing_configurations,
    means_in_words,
    ranks_in_words,
    stored_columns_of,
    tied_in_words,
)
from .learned import training_in_doubt
from .scores import leading_experiments, reported_names
from .terminal_table import TerminalTable


@dataclass(frozen=True)
class BestOfSpace:
    """The best configurations of a search space.

    Attributes:
        experiment: the search space with its runs, judged by the scores that lead.
        is_reported: whether tuning chose its configurations.
        rows: the best configurations, the best of all first.
        failing: configurations of which every run failed.
        in_doubt: the sentences of `training_in_doubt` on its configurations.
    """

    experiment: Experiment
    is_reported: bool
    rows: tuple[Best, ...]
    failing: tuple[Failing, ...] = ()
    in_doubt: tuple[str, ...] = ()

    @property
    def space(self) -> str:
        """Name of the search space."""
        return self.experiment.name

    @property
    def of(self) -> int:
        """Number of configurations with finished runs."""
        cells = range(len(self.experiment.cells))
        return sum(bool(self.experiment.run_ids(cell)) for cell in cells)


def best_of_state(state: State) -> list[BestOfSpace]:
    """Return the best configurations of each search space with finished runs, but not those of tuning.

    Raises:
        UsageError: folds and random splits are mixed in one search space.
    """
    reported = reported_names(state)
    experiments = leading_experiments(state, with_all_metrics=False)
    best = best_of_page(experiments, compares=False)
    tables = []
    for experiment in experiments:
        rows = tuple(configuration for configuration in best if configuration.experiment is experiment)
        if rows:
            failing = tuple(failing_configurations(experiment))
            in_doubt = tuple(training_in_doubt(rows, state.resolved.store))
            tables.append(BestOfSpace(experiment, experiment.name in reported, rows, failing, in_doubt))
    return tables


def state_in_doubt(state: State) -> list[str]:
    """Return the sentences of `training_in_doubt` on the search spaces of a state, as a launch prints them.

    Raises:
        UsageError: folds and random splits are mixed in one search space.
    """
    sentences: list[str] = []
    for of_space in best_of_state(state):
        sentences += of_space.in_doubt
    return sentences


def in_order_of_validation(rows: Sequence[Best]) -> list[Best]:
    """Return configurations of one experiment by their scores of validation people, the best first.

    A command that is proposed is about the first one: test people choose no model. Without scores of validation people,
    the order is that of the search space. Data sets and scenarios stay apart, in their order.
    """
    of_data = list(dict.fromkeys(row.data for row in rows))

    def place(row: Best) -> tuple[int, float, int]:
        score = _validation_score(row)
        return (of_data.index(row.data), math.inf if score is None else -score, row.cell)

    return sorted(rows, key=place)


def proposed_in_words(row: Best, of: Sequence[Best]) -> str:
    """Return why a configuration is the one that a command is proposed for; empty without another.

    Args:
        row: the configuration.
        of: those of its experiment.
    """
    rivals = [other for other in of if other.data == row.data and other is not row]
    if not rivals:
        return ""
    column = _validation_column(row)
    if column is None or _validation_score(row) is None:
        return f"{row.name} comes first in the search space; test scores do not choose the proposed run"
    score = f"{heading(column, [row.experiment])} ({number(row.means[column].mean)})"
    on_data = f" on {row.data}" if row.data else ""
    is_tied = any(number(other.means[column].mean) == number(row.means[column].mean) for other in rivals)
    has = "comes first of those with" if is_tied else "has"
    return f"{row.name} {has} the best {score}{on_data}; test scores do not choose the proposed run"


def _validation_column(row: Best) -> str | None:
    """Return the column with the first metric of validation people; None without one."""
    column = row.columns.ranks.removeprefix("test_")
    return None if row.experiment.on_test or column not in row.means else column


def _validation_score(row: Best) -> float | None:
    """Return the mean of `_validation_column`, higher is better; None without a value."""
    column = _validation_column(row)
    if column is None or not row.means[column].n:
        return None
    mean = row.means[column].mean
    return -mean if metric_named(column).better == "lower" else mean


def run_near_mean(best: Best) -> str:
    """Return the id of the run whose first metric is closest to the mean of its configuration."""
    experiment, metric = best.experiment, best.columns.ranks
    distances = np.abs(experiment.by_replicate(metric)[best.cell] - best.means[metric].mean)
    closest = experiment.replicates[int(np.nanargmin(distances))]
    runs = experiment.runs_of(best.cell)
    replicates = Experiment.replicates_of(runs)
    return str(runs["run_id"].iloc[replicates.index(closest)])


def terminal_table(best: BestOfSpace, digits: int) -> TerminalTable:
    """Return the best configurations as texts.

    Args:
        best: the best configurations.
        digits: length of the run ids.
    """
    columns = best.rows[0].columns
    headings = [heading(metric, [best.experiment]) for metric in columns.shown]
    header = ("configuration", "n", *headings, "run_id")
    rows = []
    for row in best.rows:
        scores = []
        for metric in columns.shown:
            mean = row.means[metric]
            has_interval = metric in columns.results
            scores.append(mean_text(mean) if has_interval else number(mean.mean))
        rows.append((row.name, row.n, *scores, run_near_mean(row)[:digits]))
    for failed in best.failing:
        rows.append((failed.name, failed.in_words, *[DASH] * len(headings), DASH))
    notes = []
    for row in best.rows:
        if row.tied:
            notes.append(tied_in_words(row.tied, row.of))
        if row.more:
            notes.append(f"{row.more:,} more configurations are in the report")
        if row.unranked:
            notes.append(row.unranked)
    if any(row.data for row in best.rows):
        notes.append(RANKED_APART)
    if replaced := replaced_in_words(best.experiment.replaced):
        notes.append(replaced)
    notes += best.in_doubt
    return TerminalTable(_title(best), header, tuple(rows), tuple(headings), tuple(notes))


def notes_on_all(tables: Sequence[BestOfSpace]) -> list[str]:
    """Return the notes on the tables of a launch: what ranks, and what stands behind the means."""
    rows = [row for table in tables for row in table.rows]
    ranked = ranks_in_words(rows)
    means = f"{means_in_words(rows)}; run_id: the run closest to the mean"
    columns = columns_in_words(stored_columns_of(rows))
    return [ranked, means, columns] if ranked else [means, columns]


def _title(best: BestOfSpace) -> str:
    if best.is_reported:
        return f"reported runs of {best.space!r}"
    if best.of == 1 and not best.failing:
        return f"the configuration of {best.space!r}"
    if len(best.rows) == best.of:
        return f"configurations of {best.space!r}, best first"
    return f"best of each variant of {best.space!r}, of {best.of:,} configurations"


def best_as_data(tables: Sequence[BestOfSpace]) -> list[dict[str, object]]:
    """Return the best configurations as data for JSON."""
    listed = []
    for table in tables:
        first = table.rows[0]
        listed.append(
            {
                "space": table.space,
                "is_reported": table.is_reported,
                "on_test": table.experiment.on_test,
                "ranked_by": first.columns.ranks,
                "configurations": table.of,
                "best": [_as_data(row) for row in table.rows],
                "tied": list(first.tied),
                "unranked": first.unranked,
                "in_doubt": list(table.in_doubt),
            }
        )
    return listed


def _as_data(best: Best) -> dict[str, object]:
    """Return a configuration with the mean, interval and number of units of each metric.

    `low` and `high` are the lowest and highest value of the metric that ranks among the runs.
    """
    experiment = best.experiment
    values = experiment.by_replicate(best.columns.ranks)[best.cell]
    replicates = Experiment.replicates_of(experiment.runs_of(best.cell))
    intervals = {}
    for metric, mean in best.means.items():
        intervals[metric] = [mean.low, mean.high] if np.isfinite(mean.low) else None
    return {
        "name": best.name,
        "runs": len(replicates),
        "splits": len({split for split, _ in replicates}),
        "means": {metric: mean.mean if mean.n else None for metric, mean in best.means.items()},
        "intervals": intervals,
        "n": {metric: mean.n for metric, mean in best.means.items()},
        "low": float(np.nanmin(values)),
        "high": float(np.nanmax(values)),
        "run_id": run_near_mean(best),
    }
