"""Paired differences between configurations over common seeds, with intervals and corrected p-values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from typing import Literal

import numpy as np
import pandas as pd

from clops_sweep.experiment.fields import OF_TRAINING
from clops_sweep.experiment.metrics import limits_of_difference
from clops_sweep.experiment.spaces.tuning import METHOD

from ..as_tuned import fields_as_tuned
from ..collect import Cell, Experiment, computed_on, headline_of, label_text
from ..formats import TextCell, TextTable, count_cell, label_cell, p_cell, with_interval
from ..metrics import metric_named
from ..results import Reference, ResultTable, aligned
from ..selection import cell_name, cells_by_data, data_of
from ..statistics import (
    ALPHA,
    MIN_UNITS,
    Floats,
    PairedDifference,
    Partitions,
    Replicate,
    Split,
    at_level,
    clipped,
    holm,
    holm_levels,
    paired_differences,
    units_in_words,
)

ContrastKind = Literal["variant", "reference"]

Runs = frozenset[tuple[str, ...]]
"""The run ids of both sides of a comparison."""

_MOST_PAIRS = 3
"""Most pairs of configurations that a sentence names."""

FEW = 12
"""Most configurations that are all compared with each other; of more, each with the first one, such as fine-tuning."""


@dataclass(frozen=True)
class Comparison:
    """One configuration minus another variant with equal settings, or minus a reference such as fine-tuning.

    `cell` and `baseline_cell` are indices of the experiment's cells; references follow after the last, and `runs` are
    the run ids of both. By metric, `differences` have the interval at `levels` (coverage), at which Holm tests them,
    and `corrected` are Holm's p-values: the interval excludes 0 if the corrected p is below 0.05. `together` counts the
    comparisons that Holm corrects together.
    """

    name: str
    baseline: str
    kind: ContrastKind
    cell: int
    baseline_cell: int
    runs: Runs
    differences: Mapping[str, PairedDifference] = field(hash=False)
    corrected: Mapping[str, float] = field(default_factory=dict, hash=False)
    levels: Mapping[str, float] = field(default_factory=dict, hash=False)
    together: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class TunedValue:
    """The value, as text, of a field that tuning chose for a method of a search space."""

    space: str
    field: str
    text: str
    method: str


@dataclass(frozen=True)
class Comparisons:
    """All comparisons of an experiment. p-values are corrected over all comparisons of one metric on a page.

    `computed_on` says whose scores are compared, such as "the validation set"; `training` names the fields of training
    in which compared configurations differ without an axis that says so, such as the epochs of a named variant; `tuned`
    has the values of those that tuning chose. `other_people` has the names of configurations that are compared although
    they have different people in training, validation or test, in pairs.
    """

    name: str
    rows: tuple[Comparison, ...]
    computed_on: str = ""
    training: str = ""
    tuned: tuple[TunedValue, ...] = ()
    other_people: tuple[tuple[str, str], ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """The compared metrics."""
        return tuple(self.rows[0].differences) if self.rows else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on the units of intervals and p-values."""
        units = units_in_words([d.units for row in self.rows for d in row.differences.values()])
        return (*units, *training_in_words([self]), *people_in_words([self]))


def training_in_words(tables: Sequence[Comparisons]) -> list[str]:
    """Return sentences on the fields of training in which configurations that some tables compare differ."""
    tuned = dict.fromkeys(chain.from_iterable(table.tuned for table in tables))
    spaces = list(dict.fromkeys(value.space for value in tuned))
    said = []
    for space in spaces:
        of_space = f" of {space}" if len(spaces) > 1 else ""
        values = [value for value in tuned if value.space == space]
        said.append(f"Methods{of_space} are compared as tuned: {_tuned_in_words(values)}.")
    for training in dict.fromkeys(table.training for table in tables if table.training):
        said.append(f"Compared configurations also differ in training: {training}.")
    return said


def people_in_words(tables: Sequence[Comparisons]) -> list[str]:
    """Return a sentence on the configurations that some tables compare although they have different people."""
    pairs = list(dict.fromkeys(chain.from_iterable(table.other_people for table in tables)))
    if not pairs:
        return []
    names = [f"{cell} minus {baseline}" for cell, baseline in pairs[:_MOST_PAIRS]]
    more = f" and {len(pairs) - _MOST_PAIRS:,} more" if len(pairs) > _MOST_PAIRS else ""
    return [f"The two sides have different people in training, validation or test: {'; '.join(names)}{more}."]


def _tuned_in_words(values: Iterable[TunedValue]) -> str:
    """Return the values of each field with their methods: "learning_rate 0.001 of er, 0.0003 of clops and finetune"."""
    methods: dict[str, dict[str, list[str]]] = {}
    for value in values:
        methods.setdefault(value.field, {}).setdefault(value.text, []).append(value.method)
    fields = []
    for name, of_field in methods.items():
        texts = [f"{text} of {' and '.join(of_value)}" for text, of_value in of_field.items()]
        fields.append(f"{name} {', '.join(texts)}")
    return "; ".join(fields)


def comparisons(experiment: Experiment, references: Sequence[Reference] = ()) -> Comparisons:
    """Compare every configuration with its baselines.

    Scores on different data sets or scenarios are not compared.

    A few configurations without numeric axes are all compared with each other, each with those before it; fine-tuning
    counts as the first. Otherwise each variant is compared with the first variant at equal settings of all other axes
    or, without variants or without numeric axes, with the first configuration. All are also compared with the first
    reference.
    """
    sources = [(experiment, cell) for cell in range(len(experiment.cells))]
    names = [cell_name(cell) or experiment.name for cell in experiment.cells]
    for reference in references:
        sources.append((reference.experiment, reference.cell))
        names.append(reference.name)
    pairs = []
    for cells in cells_by_data(experiment):
        pairs += _pairs(experiment, cells)
    first_of_data: dict[tuple[str, str], int] = {}
    for position, reference in enumerate(references, len(experiment.cells)):
        first_of_data.setdefault(data_of(reference.experiment.cells[reference.cell]), position)
    for index, cell in enumerate(experiment.cells):
        if data_of(cell) in first_of_data:
            pairs.append((index, first_of_data[data_of(cell)], "reference"))
    return paired(experiment.name, sources, names, pairs)


def paired(
    name: str,
    sources: Sequence[tuple[Experiment, int]],
    names: Sequence[str],
    pairs: Sequence[tuple[int, int, ContrastKind]],
    metrics: Sequence[str] = (),
) -> Comparisons:
    """Compare pairs of cells over the patient splits and seeds that both have.

    Args:
        name: name of the comparison.
        sources: the cells, of one experiment or several.
        names: names of the cells.
        pairs: indices of a cell and its baseline, and the kind of baseline.
        metrics: the metrics to compare; by default the headline metrics.
    """
    of_pairs: list[dict[str, PairedDifference]] = [{} for _ in pairs]
    by_data = _by_data(sources, pairs)
    metrics = metrics or headline_of(experiment for experiment, _ in sources)
    for metric in metrics:
        values, replicates, _ = aligned(sources, metric)
        for rows, known in by_data:
            cells = [pairs[row][0] for row in rows]
            baselines = [pairs[row][1] for row in rows]
            differences = paired_differences(values[cells], values[baselines], replicates, known, metric)
            for row, difference in zip(rows, differences, strict=True):
                of_pairs[row][metric] = difference
    runs = [tuple(sorted(experiment.run_ids(cell))) for experiment, cell in sources]
    compared = []
    for (cell, baseline, kind), by_metric in zip(pairs, of_pairs, strict=True):
        if any(difference.n for difference in by_metric.values()):
            both = frozenset({runs[cell], runs[baseline]})
            compared.append(Comparison(names[cell], names[baseline], kind, cell, baseline, both, by_metric))
    experiments = [experiment for experiment, _ in sources]
    whose = computed_on(experiments, metrics)
    there = [(row.cell, row.baseline_cell) for row in compared]
    training, tuned = _training_of_pairs(sources, there)
    other_people = tuple((names[cell], names[baseline]) for cell, baseline in _on_other_people(sources, there))
    return corrected_together([Comparisons(name, tuple(compared), whose, training, tuned, other_people)])[0]


def _on_other_people(
    sources: Sequence[tuple[Experiment, int]], pairs: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the pairs of cells that have different people in training, validation or test on a common replicate."""
    experiments = {id(experiment): experiment for experiment, _ in sources}
    people: dict[tuple[int, int], dict[Replicate, str]] = {}
    of_splits: dict[tuple[str, str, Split], set[str]] = {}
    for key, experiment in experiments.items():
        if "split_hash" not in experiment.runs:
            continue
        finished = experiment.runs[experiment.runs["status"] == "finished"].dropna(subset=["split_hash"])
        columns = finished["cell"].tolist(), experiment.replicates_of(finished), finished["split_hash"].tolist()
        for cell, replicate, content in zip(*columns, strict=True):
            people.setdefault((key, cell), {})[replicate] = content
            of_splits.setdefault((*data_of(experiment.cells[cell]), replicate[0]), set()).add(content)
    if all(len(contents) == 1 for contents in of_splits.values()):
        return []
    unlike = []
    for pair in pairs:
        ours, theirs = (people.get((id(sources[side][0]), sources[side][1]), {}) for side in pair)
        if any(ours[replicate] != theirs[replicate] for replicate in ours.keys() & theirs.keys()):
            unlike.append(pair)
    return unlike


def _training_of_pairs(
    sources: Sequence[tuple[Experiment, int]], pairs: Iterable[tuple[int, int]]
) -> tuple[str, tuple[TunedValue, ...]]:
    """Return the fields of training that differ between the cells of a pair, with their values; no axes.

    The second part has those in which methods differ as tuned (`..as_tuned`), the first one all others.
    """
    training: dict[str, list[object]] = {}
    tuned: dict[TunedValue, None] = {}
    for pair in pairs:
        sides = [sources[side] for side in pair]
        axes = {axis for experiment, _ in sides for axis in experiment.axes}
        one, other = (experiment.cells[cell].config for experiment, cell in sides)
        as_tuned = fields_as_tuned(*({experiment.name: experiment.cells[cell].tuned} for experiment, cell in sides))
        for name in OF_TRAINING:
            both = getattr(one, name), getattr(other, name)
            if name in axes or both[0] == both[1]:
                continue
            if name in as_tuned:
                for (experiment, cell), value in zip(sides, both, strict=True):
                    method = _method_of(experiment.cells[cell])
                    tuned[TunedValue(experiment.name, name, label_text(value), method)] = None
            else:
                known = training.setdefault(name, [])
                known += [value for value in both if value not in known]
    return _fields_in_words(training), tuple(tuned)


def _method_of(cell: Cell) -> str:
    """Return the method of a configuration of a tuned space, as its tables name it."""
    return cell.label(METHOD) if METHOD in cell.labels else cell_name(cell)


def _fields_in_words(values: Mapping[str, Sequence[object]]) -> str:
    """Return fields with their values: "learning_rate (0.001, 0.003)"."""
    listed = []
    for name, of_name in values.items():
        texts = [label_text(value) for value in of_name]
        listed.append(f"{name} ({', '.join(texts)})")
    return ", ".join(listed)


def corrected_together(tables: Sequence[Comparisons]) -> list[Comparisons]:
    """Return tables with p-values corrected by Holm over all comparisons in them, for each metric.

    Two configurations that several tables compare are one comparison: it counts once and has one p-value and interval.
    """
    p_values: dict[str, dict[Runs, float]] = {}
    for row in chain.from_iterable(table.rows for table in tables):
        for metric, difference in row.differences.items():
            p_values.setdefault(metric, {}).setdefault(row.runs, difference.p)
    corrected = {metric: _by_runs(known, holm) for metric, known in p_values.items()}
    levels = {metric: _by_runs(known, holm_levels) for metric, known in p_values.items()}

    together: dict[str, int] = {}
    for metric, known in p_values.items():
        together[metric] = int(np.isfinite(list(known.values())).sum())

    def of_page(row: Comparison) -> Comparison:
        differences: dict[str, PairedDifference] = {}
        level_of: dict[str, float] = {}
        for metric, difference in row.differences.items():
            differences[metric] = difference
            level_of[metric] = np.nan
            if np.isfinite(difference.p):
                level_of[metric] = 1 - levels[metric][row.runs]
                limits = limits_of_difference(metric, metric)
                differences[metric] = clipped(at_level(difference, level_of[metric]), limits)
        p_holm = {metric: corrected[metric][row.runs] for metric in row.differences}
        counts = {metric: together[metric] for metric in row.differences}
        return replace(row, differences=differences, corrected=p_holm, levels=level_of, together=counts)

    return [replace(table, rows=tuple(map(of_page, table.rows))) for table in tables]


def without_undecided(table: ResultTable, compared: Comparisons) -> ResultTable:
    """Return a table of results without bold marks that corrected comparisons of the same rows do not support.

    Args:
        table: the table; its rows are configurations, then references, as in `comparisons`.
        compared: the comparisons of these rows, with corrected p-values.
    """
    best = [row.best_in for row in table.rows]
    undecided: set[str] = set()
    for row in compared.rows:
        for metric, p in row.corrected.items():
            sides_that_win = (metric in best[row.cell]) + (metric in best[row.baseline_cell])
            if sides_that_win == 1 and not p < ALPHA:  # two winners have equal values
                undecided.add(metric)
    rows = (replace(row, best_in=row.best_in - undecided) for row in table.rows)
    return replace(table, rows=tuple(rows))


def _by_runs(p_values: Mapping[Runs, float], function: Callable[[list[float]], Floats]) -> dict[Runs, float]:
    return dict(zip(p_values, function([*p_values.values()]).tolist(), strict=True))


def _by_data(
    sources: Sequence[tuple[Experiment, int]], pairs: Sequence[tuple[int, int, ContrastKind]]
) -> list[tuple[list[int], Partitions]]:
    """Group the indices of pairs by data set and scenario, with its partitions."""
    groups: dict[int, tuple[list[int], Partitions]] = {}
    for row, (cell, _, _) in enumerate(pairs):
        experiment, index = sources[cell]
        known = experiment.partitions(index)
        rows, _ = groups.setdefault(id(known), ([], known))
        rows.append(row)
    return list(groups.values())


def comparison_text(record: Comparisons, name: str, title: str, metrics: Sequence[str] = ()) -> TextTable:
    """Return a table of differences with intervals and corrected p-values; bold if p < 0.05."""
    metrics = metrics or record.metrics
    is_tested = any(np.isfinite(row.corrected[metric]) for row in record.rows for metric in metrics)
    header = ["configuration", "minus", "n"]
    for metric in metrics:
        header.append(metric_named(metric).plain)
        if is_tested:
            header.append("p")
    rows, exact = [], []
    for row in record.rows:
        counts = [row.differences[metric].n for metric in metrics if row.differences[metric].n]
        n = max(counts, default=0)
        of_some = f"{min(counts)} to {n}" if len(set(counts)) > 1 else ""
        cells = [label_cell(row.name), label_cell(row.baseline), count_cell(n, of_some)]
        for metric in metrics:
            difference, p = row.differences[metric], row.corrected[metric]
            interval = with_interval(difference.mean, difference.low, difference.high)
            cells.append(TextCell(interval, difference.mean, p < ALPHA))
            if is_tested:
                cells.append(p_cell(p))
        rows.append(tuple(cells))
        exact.append(_as_data(row))
    notes = (
        f"Mean of paired differences [{levels_in_words(record.rows, metrics)}]"
        f"{without_interval_in_words(record.rows, metrics)}. Metrics of {record.computed_on}.",
        *record.notes,
        *([OF_P] if is_tested else []),
    )
    return TextTable(
        name, title, tuple(header), tuple(rows), 2, (), notes, pd.DataFrame(exact, dtype=object), "difference"
    )


def _as_data(row: Comparison) -> dict[str, object]:
    """Return a comparison in full precision."""
    data: dict[str, object] = {"configuration": row.name, "baseline": row.baseline}
    for metric, difference in row.differences.items():
        data[f"{metric}_difference"] = difference.mean
        data[f"{metric}_low"] = difference.low
        data[f"{metric}_high"] = difference.high
        data[f"{metric}_level"] = row.levels[metric]
        data[f"{metric}_pairs"] = difference.n
        data[f"{metric}_p"] = difference.p
        data[f"{metric}_p_holm"] = row.corrected[metric]
    return data


OF_P = (
    "p: two-sided, corrected by Holm over all comparisons of the page in this metric; bold: p < 0.05. Each "
    "interval has the level of its test: it excludes 0 exactly if p < 0.05."
)
"""A note on p-values and intervals of paired differences."""


def levels_in_words(rows: Iterable[Comparison], metrics: Collection[str] = ()) -> str:
    """Return what the intervals of differences are: "95 % interval of the t-test", and how far Holm widens some."""
    levels = []
    together: dict[str, int] = {}
    for row in rows:
        for metric, level in row.levels.items():
            if np.isfinite(level) and (not metrics or metric in metrics):
                levels.append(level)
                together[metric] = row.together[metric]
    if not levels:
        return "interval of the t-test"
    least = 1 - ALPHA
    interval = f"{100 * least:.4g} % interval of the t-test"
    if np.isclose(max(levels), least):
        return interval
    widened = f"widens intervals, up to {100 * (1 - ALPHA / max(together.values())):.4g} %"
    return f"{interval}; Holm corrects {_together_in_words(together)} and {widened}"


def _together_in_words(together: Mapping[str, int]) -> str:
    """Return the number of comparisons that Holm corrects; for each metric, if it differs between metrics."""
    counts = list(dict.fromkeys(together.values()))
    if len(counts) == 1:
        return f"{counts[0]:,} comparisons of the page"
    texts = []
    for count in counts:
        names = [metric_named(metric).plain for metric, of_metric in together.items() if of_metric == count]
        texts.append(f"{count:,} in {', '.join(names)}")
    return f"comparisons of the page ({'; '.join(texts)})"


def without_interval_in_words(rows: Iterable[Comparison], metrics: Collection[str]) -> str:
    """Return where differences lack an interval, as a clause; empty if all have one, or other notes give the reason."""
    reasons = set()
    for row in rows:
        for metric, difference in row.differences.items():
            if metric not in metrics or not difference.n or np.isfinite(difference.p):
                continue
            if difference.n < MIN_UNITS:
                reasons.add("below three pairs")
            elif difference.units is None or not difference.units.obstacle:
                reasons.add("where all differences of a row are equal")
    return f"; without interval {' and '.join(sorted(reasons))}" if reasons else ""


def _pairs(experiment: Experiment, cells: Sequence[int]) -> list[tuple[int, int, ContrastKind]]:
    """Return which of some cells, of one data set and scenario, are compared with which."""
    ordered = sorted(cells, key=lambda cell: experiment.cells[cell].config.strategy != "finetune")
    if len(experiment.number_axes) < 2 and len(cells) <= FEW:
        return [(cell, earlier, "variant") for earlier, cell in combinations(ordered, 2)]
    if not experiment.number_axes:
        return [(cell, ordered[0], "variant") for cell in ordered[1:]]
    return list(_against_first_variant(experiment, cells))


def _against_first_variant(experiment: Experiment, cells: Sequence[int]) -> Iterator[tuple[int, int, ContrastKind]]:
    variant_axes = [axis for axis in experiment.axes if axis not in experiment.number_axes]
    rank: dict[str, dict[str, int]] = {}
    for axis in variant_axes:
        rank[axis] = {repr(label): position for position, label in enumerate(experiment.axes[axis])}
    names = [cell_name(cell, variant_axes) if variant_axes else "" for cell in experiment.cells]

    def order(index: int) -> list[int]:
        """Return the position of a cell on the variant axes; the order of cells may be that of run ids."""
        return [rank[axis][repr(experiment.cells[index].labels[axis])] for axis in variant_axes]

    baselines: dict[str, int] = {}
    for index in sorted(cells, key=order):
        baselines.setdefault(names[index], index)
    for index in cells:
        if baselines[names[index]] != index:
            yield index, baselines[names[index]], "variant"
