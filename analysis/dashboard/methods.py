"""The scores of methods: of each experiment for the overview, and by data set and scenario for the page of methods."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from clops_sweep.errors import UsageError
from clops_sweep.experiment.columns import FIELDS
from clops_sweep.experiment.plugins.options import OPTIONS

from ..collect import Cell, Experiment, label_text
from ..formats import DASH, duration, interval_text, p_text, with_interval
from ..leading import heading, is_choice, leading_columns
from ..metrics import metric_named
from ..results import mean_of
from ..selection import cell_name, cells_by_data, data_of, variants
from ..statistics import PairedDifference, Split, ordered, paired_difference
from ..tables.best import Best, best_configurations, corrected_with
from ..tables.comparisons import FEW
from .snapshot import Snapshot
from .units import n_in_words, split_names, splits_in_words

MOST_METRICS = 2
_MOST_SPLITS = 5
"""Most patient splits that a title names."""


@dataclass(frozen=True)
class Score:
    """A mean and its interval as texts; the interval is empty if there are too few units for one.

    Of a difference, `p` is its p-value, and both are corrected as in the report; without `p` they are not. `number` is
    what the texts format; None without a value.
    """

    mean: str = DASH
    interval: str = ""
    p: str = ""
    number: PairedDifference | None = None


@dataclass(frozen=True)
class MethodRow:
    """A method: one variant of an experiment, by the configuration that terminal and report show as its best.

    Configurations that lack runs do not compete with complete ones of their data set and scenario.

    Attributes:
        experiment: name of the experiment.
        name: name of the configuration.
        is_best: whether it is the best of its experiment on this data set and scenario, as terminal and report rank,
            or tied with it.
        is_tied: whether others share the best mean.
        is_by_validation: whether scores of validation people rank it, although scores of test people are shown.
        is_ranked: whether it has all its runs, or no row of its table has.
        minus_best: its paired difference from the best, if that one has all its runs.
        of: number of configurations of the variant.
        scores: mean and interval of each metric, in the order of the table.
        n: number and kind of units, such as "5 folds".
        finished: number of finished runs of the configuration.
        asked: number of its requested runs.
        failed: number of failed runs of the variant.
        seconds: mean compute time of a finished run of the variant.
        query: the parameters of the page "Runs" that select the runs of the variant.
        sort: the mean of the first metric, higher is better; NaN without one.
    """

    experiment: str
    name: str
    is_best: bool
    is_tied: bool
    is_by_validation: bool
    is_ranked: bool
    minus_best: Score
    of: int
    scores: tuple[Score, ...]
    n: str
    finished: int
    asked: int
    failed: int
    seconds: str
    query: Mapping[str, str]
    sort: float


@dataclass(frozen=True)
class MethodTable:
    """Methods on one data set and scenario, best first; those without all their runs follow the complete ones.

    Attributes:
        title: data set and scenario, with the patient splits if another table has others.
        metrics: titles of the metrics.
        meanings: for each metric, its full name and formula.
        better: for each metric, whether "higher" or "lower" values are better; empty if neither.
        rows: the methods.
        on_one_split: whether the intervals of some rows are over the seeds of one patient split.
    """

    title: str
    metrics: tuple[str, ...]
    meanings: tuple[str, ...]
    better: tuple[str, ...]
    rows: tuple[MethodRow, ...]
    on_one_split: bool

    @property
    def level(self) -> str:
        """Whether the intervals of differences from the best are corrected, in a word; empty if rows differ in it."""
        corrected = {bool(row.minus_best.p) for row in self.rows if row.minus_best.interval}
        if len(corrected) != 1:
            return ""
        return "corrected" if True in corrected else "unadjusted"


@dataclass(frozen=True)
class _Source:
    """A variant of an experiment: its cells, the one that represents it, and that one's rank if it has one.

    `leader` is the best configuration of its data set and scenario.
    """

    experiment: Experiment
    cells: Sequence[int]
    shown: int
    ranked: Best | None = None
    is_best: bool = False
    leader: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all requested runs of the shown configuration have finished."""
        return _is_complete(self.experiment, self.shown)


Splits = frozenset[Split]
"""The patient splits that an experiment requests."""


def method_tables(snapshot: Snapshot) -> list[MethodTable]:
    """Return the methods of all experiments that report results.

    There is a table for each data set and scenario. Experiments with other patient splits have a table of their own,
    because their scores are of other people.
    """
    groups: dict[tuple[str, str], dict[Splits, list[_Source]]] = {}
    for section in snapshot.sections.values():
        experiment = section.experiment
        if experiment.is_tuning or not experiment.counts("finished").any():
            continue
        for data, sources in _sources_by_data(experiment).items():
            finished = [source for source in sources if experiment.run_ids(source.shown)]
            if finished:
                splits = frozenset(split for split, _ in experiment.repetitions)
                groups.setdefault(data, {}).setdefault(splits, []).extend(finished)
    tables = []
    for data, by_splits in groups.items():
        for splits, sources in sorted(by_splits.items(), key=lambda group: -len(group[0])):
            title = ", ".join(data)
            if len(by_splits) > 1:
                title += f": {_in_words(splits)}"
            table = _table(title, sources)
            rows = sorted(table.rows, key=_place)
            tables.append(replace(table, rows=tuple(rows)))
    return tables


def _place(row: MethodRow) -> tuple[bool, float]:
    """Return the sort key of a row: the ranked ones first, by their score."""
    return not row.is_ranked, -row.sort if np.isfinite(row.sort) else np.inf


def _in_words(splits: Splits) -> str:
    """Return the number of patient splits, with their names if they are few."""
    count = splits_in_words(splits)
    if len(splits) > _MOST_SPLITS:
        return count
    known = split_names(splits)
    in_order = ordered((split, 0) for split in splits)
    names = [known[split] for split, _ in in_order]
    return f"{count} ({', '.join(names)})"


def methods_by_experiment(snapshot: Snapshot) -> dict[str, list[MethodTable]]:
    """Return the methods of each experiment that reports results, by name: a table for each data set and scenario.

    The methods are ranked as in terminal and report; those without a rank follow.
    """
    by_name = {}
    for name, section in snapshot.sections.items():
        if not section.experiment.is_tuning and section.experiment.cells:
            by_data = _sources_by_data(section.experiment)
            by_name[name] = [_table(", ".join(data), sources) for data, sources in by_data.items()]
    return by_name


def method_name(experiment: Experiment, cell: Cell) -> str:
    """Return the name of a configuration, beginning with its strategy if its axes do not name a method."""
    name = cell_name(cell)
    names_method = any(axis == "strategy" or axis not in {*FIELDS, *OPTIONS} for axis in experiment.axes)
    if names_method and name:
        return name
    return ", ".join(part for part in (cell.config.strategy, name) if part)


def _sources_by_data(experiment: Experiment) -> dict[tuple[str, str], list[_Source]]:
    """Return the variants of an experiment by data set and scenario: the ranked ones, best first, then the rest."""
    ranked = {best.cell: best for best in _ranked(experiment)}
    groups = list(variants(experiment, experiment.number_axes).values())
    if any(best.columns.ranks_by_test for best in ranked.values()):  # all configurations are ranked
        groups = [[cell] for cell in range(len(experiment.cells))]
    by_data: dict[tuple[str, str], list[_Source]] = {}
    for of_data in cells_by_data(experiment):
        there = set(of_data)
        of_variants = [sorted(there.intersection(group)) for group in groups]
        first = next((cell for cell in ranked if cell in there), None)
        is_compared = len([cells for cells in of_variants if cells]) > 1
        sources = []
        for cells in filter(None, of_variants):
            shown = next((cell for cell in ranked if cell in cells), _most_finished(experiment, cells))
            is_best = is_compared and (shown == first or (shown in ranked and ranked[shown].is_tied))
            sources.append(_Source(experiment, cells, shown, ranked.get(shown), is_best, first))
        place = {cell: position for position, cell in enumerate(ranked)}
        sources.sort(key=lambda source: place.get(source.shown, len(place)))
        by_data[data_of(experiment.cells[of_data[0]])] = sources
    return by_data


def _is_complete(experiment: Experiment, cell: int) -> bool:
    """Return whether all requested runs of a cell have finished."""
    return bool(experiment.counts("finished")[cell] == experiment.counts()[cell])


def _ranked(experiment: Experiment) -> list[Best]:
    """Return the configurations as terminal and report rank them; none if folds and random splits are mixed.

    Where the report compares all of them with each other, they have the same differences.
    """
    searched = tuple(experiment.axes) if experiment.is_search else ()
    are_few = max(map(len, cells_by_data(experiment))) <= FEW
    compares = are_few and not is_choice(experiment)
    with suppress(UsageError):
        ranked = best_configurations(experiment, (), searched, len(experiment.cells), compares=compares)
        return corrected_with(ranked, ())[0]
    return []


def _most_finished(experiment: Experiment, cells: Sequence[int]) -> int:
    """Return the cell with the most finished runs."""
    finished = experiment.counts("finished")
    return max(cells, key=lambda cell: finished[cell])


def _table(title: str, sources: Sequence[_Source]) -> MethodTable:
    """Return the table of methods on one data set and scenario."""
    metrics: dict[str, None] = {}
    for source in sources:
        metrics.update(dict.fromkeys(_metrics(source.experiment)))
    names = list(metrics)[:MOST_METRICS]
    kinds: set[str] = set()
    one_is_complete = any(source.is_complete for source in sources)
    rows = []
    for source in sources:
        means = [_mean(source, name) for name in names]
        kinds.update(mean.units.kind for mean in means if mean is not None and mean.units is not None)
        rows.append(_row(source, names, means, source.is_complete or not one_is_complete))
    experiments = [source.experiment for source in sources]
    titles = tuple(heading(name, experiments) for name in names)
    better = tuple(metric_named(name).better or "" for name in names)
    meanings = tuple(f"{metric_named(name).plain}: {metric_named(name).formula}" for name in names)
    return MethodTable(title, titles, meanings, better, tuple(rows), "seeds" in kinds)


def _metrics(experiment: Experiment) -> list[str]:
    """Return the metrics that are results: those of test people, if the runs have them."""
    columns = leading_columns(experiment)
    return list(experiment.headline if columns is None else columns.results)


def _mean(source: _Source, metric: str) -> PairedDifference | None:
    """Return the mean of the shown configuration; None without a value, or if folds and random splits are mixed."""
    mean = source.ranked.means.get(metric) if source.ranked is not None else None
    if mean is None:
        with suppress(UsageError):
            mean = mean_of(source.experiment, source.shown, metric)
    return mean if mean is not None and mean.n else None


def _row(source: _Source, names: Sequence[str], means: Sequence[PairedDifference | None], is_ranked: bool) -> MethodRow:
    experiment = source.experiment
    cell = experiment.cells[source.shown]
    runs = experiment.runs[experiment.runs["cell"].isin(source.cells)]
    finished = runs[runs["status"] == "finished"]
    splits = {split for split, _ in experiment.replicates_of(experiment.runs_of(source.shown))}
    sort, n = _order(names, means, splits)
    return MethodRow(
        experiment=experiment.name,
        name=method_name(experiment, cell),
        is_best=source.is_best and is_ranked,
        is_tied=source.is_best and source.ranked is not None and source.ranked.is_tied,
        is_by_validation=source.ranked is not None and source.ranked.columns.ranks_by_validation,
        is_ranked=is_ranked,
        minus_best=_minus_best(source, names[0]) if names else Score(),
        of=len(source.cells),
        scores=tuple(_score(name, mean) for name, mean in zip(names, means, strict=True)),
        n=n,
        finished=int(experiment.counts("finished")[source.shown]),
        asked=int(experiment.counts()[source.shown]),
        failed=int((runs["status"] == "failed").sum()),
        seconds=duration(float(finished["seconds"].mean())) if len(finished) else DASH,
        query=runs_query(experiment, cell, without=experiment.number_axes),
        sort=sort,
    )


def runs_query(experiment: Experiment, cell: Cell, without: Sequence[str] = ()) -> dict[str, str]:
    """Return the parameters of the page "Runs" that select the runs of a configuration, whatever some axes are."""
    query = {"experiment": experiment.name}
    for axis in experiment.axes:
        if axis not in without and cell.labels.get(axis) is not None:
            query[f"only-{axis}"] = label_text(cell.labels[axis])
    return query


def _score(name: str, mean: PairedDifference | None) -> Score:
    if mean is None:
        return Score()
    text = metric_named(name).text
    interval = f"[{text(mean.low)}, {text(mean.high)}]" if np.isfinite(mean.low) else ""
    return Score(text(mean.mean), interval, number=mean)


def _minus_best(source: _Source, metric: str) -> Score:
    """Return the paired difference of a complete configuration from the best of its experiment.

    It is the one of the report, with a p-value, or else the difference with an interval that is not corrected.
    """
    experiment, leader = source.experiment, source.leader
    if leader is None or leader == source.shown or not source.is_complete or not _is_complete(experiment, leader):
        return Score()
    if metric not in experiment.measured:
        return Score()
    of_report = source.ranked.below_leader if source.ranked is not None else None
    if of_report is not None and metric in of_report.differences:
        return _difference(of_report.differences[metric], of_report.corrected[metric])
    values = experiment.by_replicate(metric)
    with suppress(UsageError):
        known = experiment.partitions(source.shown)
        difference = paired_difference(values[source.shown], values[leader], experiment.replicates, known, metric)
        return _difference(difference)
    return Score()


def _difference(difference: PairedDifference, p: float = np.nan) -> Score:
    """Return a difference as text.

    Args:
        difference: the difference.
        p: its corrected p-value; NaN if it is not corrected.
    """
    if not difference.n:
        return Score()
    mean = with_interval(difference.mean, np.nan, np.nan)
    interval = interval_text(difference.low, difference.high).strip()
    return Score(mean, interval, p_text(p) if np.isfinite(p) else "", difference)


def _order(
    names: Sequence[str], means: Sequence[PairedDifference | None], splits: Collection[Split]
) -> tuple[float, str]:
    """Return the mean of the first known metric, higher is better, and the number and kind of its units."""
    for name, mean in zip(names, means, strict=True):
        if mean is not None:
            sort = -mean.mean if metric_named(name).better == "lower" else mean.mean
            return sort, n_in_words(mean, splits)
    return np.nan, DASH
