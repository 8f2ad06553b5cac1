"""The paired differences between configurations, for pandas: those of the report."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from clops_sweep.errors import UsageError, listed, shown
from clops_sweep.planning.state import State

from ..collect import Experiment
from ..search_trials import collect_with_searches
from ..tables.comparisons import Comparisons
from ..tables.scores import reported_names, warn_of_left_aside, warn_of_replaced
from ..tables.strategies import compare_strategies
from .page_comparisons import compared_on_page, fine_tuning_elsewhere, judged_by_metrics
from .planned import Found, planned_sections

COLUMNS = (
    "search_space",
    "configuration",
    "baseline",
    "metric",
    "difference",
    "low",
    "high",
    "level",
    "p",
    "p_holm",
    "n",
    "unit",
)


def differences_of(state: State, metric: str | None = None, baseline: str | None = None) -> pd.DataFrame:
    """Return a row for each pair of configurations that the report of a state compares, and for each metric.

    Trials of tuning are left out. The columns are those of `clops_sweep.differences`.

    Args:
        state: the state of a launch.
        metric: a column of `runs`; by default the headline metrics, of test people.
        baseline: a configuration: only its pairs are returned, each the other configuration minus this one.

    Warnings count the runs that are left aside as of another edition of the data.

    Raises:
        UsageError: no run has the metric, no pair has the baseline, or folds and random splits are mixed in one search
            space.
    """
    warn_of_left_aside(state)
    store = state.resolved.store
    runs = store.read("runs")
    collected = collect_with_searches(state.spaces, store, runs=runs, present=state.resolved.edition)
    metrics = () if metric is None else (metric,)
    experiments = judged_by_metrics([experiment for experiment, _ in collected], reported_names(state), metrics)
    compared: list[Found] = []
    grids = []
    for experiment, space, (_, record) in zip(experiments, state.spaces, collected, strict=True):
        if experiment.is_tuning:
            continue
        warn_of_replaced(experiment)
        compared.append((experiment, space, record))
        if space.search is None:
            grids.append(experiment)
    planned = planned_sections(compared, store)
    elsewhere = fine_tuning_elsewhere(runs, [section.experiment for section in planned])
    page = compared_on_page(planned, compare_strategies(grids), grids, elsewhere)
    rows: list[tuple[object, ...]] = []
    by_name = {experiment.name: experiment for experiment in experiments}
    for table in page.sections:
        rows += _rows(table, by_name[table.name])
    for strategies in page.strategies:
        rows += _rows(strategies.differences, grids[0])
    every_pair = pd.DataFrame(rows, columns=list(COLUMNS))
    return every_pair if baseline is None else _minus(every_pair, baseline)


def _minus(table: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Return the pairs of a table that have a configuration, each the other one minus it.

    Raises:
        UsageError: no pair has it.
    """
    is_first = table["configuration"] == baseline
    is_second = table["baseline"] == baseline
    if not (is_first | is_second).any():
        known = sorted({*table["configuration"], *table["baseline"]})
        raise UsageError(f"baseline = {shown(baseline)}: no such configuration; there are {listed(known)}")
    first = table[is_first]
    turned = first.assign(
        configuration=first["baseline"],
        baseline=baseline,
        difference=-first["difference"],
        low=-first["high"],
        high=-first["low"],
    )
    return pd.concat([table[is_second], turned]).sort_index().reset_index(drop=True)


def _rows(table: Comparisons, experiment: Experiment) -> Iterator[tuple[object, ...]]:
    """Yield a row for each comparison of a table and each of its metrics; an experiment says whose scores they are."""
    for row in table.rows:
        for metric, difference in row.differences.items():
            yield (
                table.name,
                row.name,
                row.baseline,
                experiment.stored_column(metric),
                difference.mean,
                difference.low,
                difference.high,
                row.levels[metric],
                difference.p,
                row.corrected[metric],
                difference.n,
                difference.units.counted if difference.units is not None else "",
            )
