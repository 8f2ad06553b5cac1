"""The scores of every configuration of a launch, for pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd

from clops_sweep.errors import warn_user
from clops_sweep.experiment.columns import COMPUTED_WITH, CONFIG
from clops_sweep.experiment.fields import REPLICATES
from clops_sweep.experiment.identity import REVISED_BY
from clops_sweep.experiment.metrics import METRICS, PAPER
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import headline
from clops_sweep.planning.changes import runs_of_earlier_editions
from clops_sweep.planning.state import State

from ..collect import FAMILY, Experiment
from ..editions import replaced_in_words
from ..leading import leading_columns, names_of_tuned, with_leading_scores
from ..results import mean_of
from ..search_trials import collect_with_searches
from ..selection import cell_name
from .best import ranked_cells

COLUMNS = (
    "search_space",
    "configuration",
    "metric",
    "mean",
    "low",
    "high",
    "n",
    "unit",
    "lowest",
    "highest",
    "validation",
    "finished",
    "requested",
)


def leading_experiments(state: State, *, with_all_metrics: bool = True) -> list[Experiment]:
    """Return the experiment of each search space of a state, judged by the scores that lead.

    Args:
        state: the state of a launch.
        with_all_metrics: whether to read all metrics, or of grids those that may lead.
    """
    experiments = _experiments(state, with_all_metrics=with_all_metrics)
    return with_leading_scores(experiments, names_of_tuned(experiments, reported_names(state)))


def _experiments(state: State, *, with_all_metrics: bool) -> list[Experiment]:
    """Return the experiment of each search space, with the columns of `runs` that scores need.

    They need no software and no machine, and of grids few settings: the configs have them. Runs of searches are read
    with their settings.
    """
    store = state.resolved.store
    left_out = {*COMPUTED_WITH}
    if all(space.search is None for space in state.spaces):
        left_out |= {*CONFIG, *OPTIONS}.difference(FAMILY, REVISED_BY, REPLICATES)
        if not with_all_metrics:
            left_out |= _without_lead(state)
    columns = [name for name in store.columns() if name not in left_out]
    runs = store.read("runs", columns=columns)
    present = state.resolved.edition
    return [experiment for experiment, _ in collect_with_searches(state.spaces, store, runs=runs, present=present)]


def _without_lead(state: State) -> set[str]:
    """Return the metrics, of validation and of test people, that cannot be a headline metric of a search space."""
    scenarios = {request.config.scenario for space in state.spaces for request in space.requests()}
    left_out = {*METRICS}.difference(PAPER, *map(headline, scenarios))
    return left_out | {f"test_{metric}" for metric in left_out}


def reported_names(state: State) -> list[str]:
    """Return the names of the search spaces whose configurations tuning has chosen."""
    return [space.name for tuned in state.tuned if (space := tuned.reported) is not None]


def run_ids_of(state: State) -> tuple[list[str], str]:
    """Return the ids of the stored runs of the search spaces of a state, and a sentence on those that are left aside.

    They are of one edition of the data; those of tuning are included. The sentence is empty if none is left aside.
    Searches that were made on another edition are named, too.
    """
    run_ids: dict[str, None] = {}
    replaced = 0
    for experiment in _experiments(state, with_all_metrics=False):
        is_stored = experiment.runs["status"] != "missing"
        run_ids.update(dict.fromkeys(experiment.runs.loc[is_stored, "run_id"]))
        replaced += experiment.replaced
    sentences = [*state.on_other_data, replaced_in_words(replaced)]
    return list(run_ids), "; ".join(filter(None, sentences))


def scores_of(state: State, metric: str | None = None) -> pd.DataFrame:
    """Return a row for each configuration with finished runs, the best of its search space first.

    Trials of tuning are left out. The columns are those of `clops_sweep.scores`.

    Args:
        state: the state of a launch.
        metric: a column of `runs`; by default the first headline metric, of test people.

    Warnings count the runs that are left aside as of another edition of the data, and finished runs without a value.

    Raises:
        UsageError: no run has the metric, or folds and random splits are mixed in one search space.
    """
    warn_of_left_aside(state)
    rows = []
    for experiment in leading_experiments(state):
        if experiment.is_tuning:
            continue
        warn_of_replaced(experiment)
        judged = experiment if metric is None else experiment.judged_by([metric])
        columns = leading_columns(judged)
        shown = metric or (columns.results[0] if columns is not None else judged.headline[0])
        for cell in ranked_cells(experiment):
            rows.append(_row(judged, cell, shown))
            if sentence := _undefined_in_words(judged, cell, shown):
                warn_user(f"search space {experiment.name!r}: {sentence}")
    return pd.DataFrame(rows, columns=list(COLUMNS))


def warn_of_left_aside(state: State) -> None:
    """Warn of runs and searches of another edition of the data, which are not those that are shown."""
    for sentence in (*runs_of_earlier_editions(state), *state.on_other_data):
        warn_user(sentence)


def warn_of_replaced(experiment: Experiment) -> None:
    """Warn of the runs of an experiment that are left aside, as of another edition of the data."""
    if replaced := replaced_in_words(experiment.replaced):
        warn_user(f"search space {experiment.name!r}: {replaced}")


def _undefined_in_words(experiment: Experiment, cell: int, metric: str) -> str:
    """Return a sentence on the finished runs that the mean of a configuration leaves out; empty without any."""
    finished = len(experiment.run_ids(cell))
    defined = int(np.isfinite(experiment.by_replicate(metric)[cell]).sum())
    if not 0 < defined < finished:
        return ""
    name = cell_name(experiment.cells[cell]) or experiment.name
    return f"{name} has {metric} in {defined} of {finished} finished runs; its mean is over these"


def _row(experiment: Experiment, cell: int, metric: str) -> tuple[object, ...]:
    mean = mean_of(experiment, cell, metric)
    measured_on_test = experiment.on_test and not metric.startswith("test_")
    name = f"test_{metric}" if measured_on_test and f"test_{metric}" in experiment.runs else metric
    validation = np.nan
    base = metric.removeprefix("test_")
    if base != metric and base in experiment.measured:
        validation = mean_of(experiment, cell, base).mean
    return (
        experiment.name,
        cell_name(experiment.cells[cell]) or experiment.name,
        name,
        mean.mean,
        mean.low,
        mean.high,
        mean.n,
        mean.units.counted if mean.units is not None else "",
        min(mean.of_units, default=np.nan),
        max(mean.of_units, default=np.nan),
        validation,
        len(experiment.run_ids(cell)),
        int(experiment.counts()[cell]),
    )
