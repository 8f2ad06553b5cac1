"""The best configurations of each search space, compared with fine-tuning."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
import pandas as pd

from clops_sweep.experiment.fields import training_of

from ..collect import Experiment, computed_on
from ..formats import (
    DASH,
    TextCell,
    TextTable,
    count_cell,
    interval_text,
    label_cell,
    number,
    p_cell,
    p_text,
    plural,
    with_interval,
)
from ..metrics import metric_named
from ..results import mean_of
from ..selection import cell_name, cells_by_data, competing_cells, data_of, variants
from ..statistics import ALPHA, PairedDifference, units_in_words
from .comparisons import OF_P, Comparison, Comparisons, ContrastKind, corrected_together, levels_in_words, paired
from .strategies import editions_by_cell, same_editions

MOST_ROWS = 6
"""Most configurations per search space."""
MOST_METRICS = 2

RANKED_APART = "Configurations are ranked within each data set and scenario."
"""A note on tables with several of them."""

_MOST_TIED = 4
"""Most names of tied configurations in a sentence."""

_UNITS = {"patient splits": "split", "folds": "fold", "seeds": "seed", "runs": "split"}


@dataclass(frozen=True)
class Best:
    """The best configuration of a variant, with the mean of each metric and its interval.

    `of` is the number of configurations that competed. `above` is the difference from fine-tuning; None for fine-tuning
    itself, or without a fine-tuning run with equal training. `rivals` has the differences of all that competed. `tied`
    names the configurations that share the best mean, if this one is the best and others do. `unranked` is said of the
    best of all: which configurations of the experiment did not compete, or that each was ranked by the runs it has.
    `data` names data set and scenario, if the experiment has several, whose configurations are ranked apart.
    `is_apart` tells that there are fine-tuning runs with equal training, but of data of other content or of another
    semantics version: they are not compared.
    """

    experiment: Experiment
    cell: int
    of: int
    means: Mapping[str, PairedDifference] = field(hash=False)
    above: Comparison | None
    rivals: Comparisons | None = None
    tied: tuple[str, ...] = ()
    unranked: str = ""
    data: str = ""
    is_apart: bool = False

    @property
    def name(self) -> str:
        """Name of the configuration."""
        return cell_name(self.experiment.cells[self.cell]) or self.experiment.name


def best_configurations(
    experiment: Experiment, others: Sequence[Experiment] = (), searched: Collection[str] = (), most: int = MOST_ROWS
) -> list[Best]:
    """Return the best configuration of each variant by the first headline metric, the best of all first.

    Configurations of several data sets or scenarios are ranked apart, those of the first one first.

    Only configurations with all runs finished compete, once their data set and scenario have any; of configurations
    that share their runs, the first. Fine-tuning is taken from the experiment, else from others, with equal training
    and data apart from the parameters of a search.

    Args:
        experiment: the experiment with the competing configurations.
        others: other experiments that may contain fine-tuning.
        searched: the parameters of a search, whose configurations form one variant.
        most: maximum number of configurations.
    """
    metrics = metrics_of_best(experiment)
    if not metrics:
        return []
    score = _scores(experiment, metrics[0])
    competing = sorted(score)
    of_data = _by_data(experiment, score)
    best_of_data = [_best_cells(experiment, there, searched)[:most] for there in of_data]
    best = list(chain.from_iterable(best_of_data))
    above = {}
    apart: set[int] = set()
    for rivals in _above_fine_tuning(experiment, competing, best, others, searched, apart):
        above.update({row.cell: (row, rivals) for row in rivals.rows})
    configurations = []
    place_of = {cell: place for place, cells in enumerate(best_of_data) for cell in cells}
    for cell in best:
        there = of_data[place_of[cell]]
        means = {metric: mean_of(experiment, cell, metric) for metric in metrics}
        row, rivals_of_cell = above.get(cell, (None, None))
        tied = _tied(experiment, there, cell) if cell == best_of_data[place_of[cell]][0] else ()
        unranked = unranked_in_words(experiment) if cell == best[0] else ""
        data = ", ".join(data_of(experiment.cells[cell])) if len(of_data) > 1 else ""
        is_apart = cell in apart
        configurations.append(
            Best(experiment, cell, len(there), means, row, rivals_of_cell, tied, unranked, data, is_apart)
        )
    return configurations


def metrics_of_best(experiment: Experiment) -> list[str]:
    """Return the headline metrics that the table shows; the first one ranks."""
    return [name for name in experiment.headline if metric_named(name).better][:MOST_METRICS]


def best_cells(experiment: Experiment) -> tuple[list[int], tuple[str, ...]]:
    """Return the cells of `best_configurations`, the best first, and the names of those that share the best mean."""
    metrics = metrics_of_best(experiment)
    if not metrics:
        return [], ()
    score = _scores(experiment, metrics[0])
    of_data = _by_data(experiment, score)
    best = [cell for there in of_data for cell in _best_cells(experiment, there, ())]
    return best, _tied(experiment, of_data[0], best[0]) if best else ()


def _by_data(experiment: Experiment, score: Mapping[int, float]) -> list[dict[int, float]]:
    """Return the scores of the cells of each data set and scenario, without those that no cell competes on."""
    groups = []
    for cells in cells_by_data(experiment):
        there = {cell: score[cell] for cell in cells if cell in score}
        if there:
            groups.append(there)
    return groups


def tied_in_words(names: Sequence[str], of: int) -> str:
    """Return a sentence about the configurations that share the best mean.

    Args:
        names: their names.
        of: number of configurations that competed.
    """
    which = f"all {of:,} configurations"
    if len(names) < of:
        more = len(names) - _MOST_TIED
        which = ", ".join(names[:_MOST_TIED]) + (f" and {more:,} more" if more > 0 else "")
    return f"tied for the best, with equal means to three decimals: {which}"


def unranked_in_words(experiment: Experiment) -> str:
    """Return a sentence about configurations without some of their runs; empty if all have all of theirs.

    They do not compete with those of their data set and scenario that have all. If none has, each competes with the
    runs that it has.
    """
    metrics = metrics_of_best(experiment)
    if not metrics or len(experiment.cells) < 2:
        return ""
    of_data = cells_by_data(experiment)
    sentences = []
    for cells in of_data:
        where = f"on {', '.join(data_of(experiment.cells[cells[0]]))}, " if len(of_data) > 1 else ""
        sentence = _unranked_of(experiment, metrics[0], cells)
        if sentence:
            sentences.append(f"{where}{sentence}")
    return "; ".join(sentences)


def _unranked_of(experiment: Experiment, metric: str, cells: Sequence[int]) -> str:
    """Return the sentence of `unranked_in_words` about the configurations of one data set and scenario."""
    requested, finished = experiment.counts(), experiment.counts("finished")
    started = [cell for cell in cells if finished[cell]]
    partial = [cell for cell in started if finished[cell] < requested[cell]]
    if not partial:
        return ""
    if len(partial) == len(started):
        return "no configuration has all its runs: each is ranked by those that it has"
    values = experiment.by_split(metric)
    named = []
    for cell in partial[:_MOST_TIED]:
        mean = number(float(np.nanmean(values[cell]))) if np.isfinite(values[cell]).any() else DASH
        name = cell_name(experiment.cells[cell])
        named.append(f"{name} ({mean} in {finished[cell]:,} of {requested[cell]:,} runs)")
    more = len(partial) - _MOST_TIED
    which = ", ".join(named) + (f" and {more:,} more" if more > 0 else "")
    return f"not ranked, because runs are missing or failed: {which}"


def _tied(experiment: Experiment, score: Mapping[int, float], best: int) -> tuple[str, ...]:
    """Return the names of the configurations whose mean is printed like that of the best one; none if it is alone."""
    tied = [cell for cell, value in score.items() if number(value) == number(score[best])]
    return tuple(cell_name(experiment.cells[cell]) for cell in tied) if len(tied) > 1 else ()


def _best_cells(experiment: Experiment, score: Mapping[int, float], searched: Collection[str]) -> list[int]:
    """Return the best of the competing cells of each variant, the best of all first."""
    best: list[int] = []
    for cells in variants(experiment, tuple(searched) or experiment.number_axes).values():
        of_variant = [cell for cell in cells if cell in score]
        if of_variant:
            best.append(max(of_variant, key=score.__getitem__))
    return sorted(best, key=score.__getitem__, reverse=True)


def _scores(experiment: Experiment, metric: str) -> dict[int, float]:
    """Return the mean score of each cell that competes; higher is better, whatever the metric."""
    values = experiment.by_split(metric)
    if metric_named(metric).better == "lower":
        values = -values
    first_with_runs: dict[tuple[str, ...], int] = {}  # equal configurations compete once
    for cell in competing_cells(experiment, metric):
        first_with_runs.setdefault(experiment.run_ids(cell), cell)
    return {cell: float(np.nanmean(values[cell])) for cell in first_with_runs.values()}


def corrected_with(shown: Sequence[Best], tables: Sequence[Comparisons]) -> tuple[list[Best], list[Comparisons]]:
    """Return the best configurations and other tables of a page, with p-values corrected together.

    The comparisons of all configurations that competed count, since the best were chosen among them.
    """
    rivals = list({id(best.rivals): best.rivals for best in shown if best.rivals is not None}.values())
    together = corrected_together([*tables, *rivals])
    corrected = {id(before): after for before, after in zip(rivals, together[len(tables) :], strict=True)}
    of_page = []
    for best in shown:
        if best.above is not None:
            of_best = corrected[id(best.rivals)]
            above = next(row for row in of_best.rows if row.cell == best.above.cell)
            best = replace(best, above=above, rivals=of_best)
        of_page.append(best)
    return of_page, together[: len(tables)]


def _above_fine_tuning(
    experiment: Experiment,
    competing: Sequence[int],
    best: Sequence[int],
    others: Sequence[Experiment],
    searched: Collection[str],
    apart: set[int],
) -> Iterator[Comparisons]:
    """Subtract fine-tuning from the cells that compete with the best, in a table for each way of training.

    Cells whose fine-tuning runs are of data of other content or of another semantics version are added to `apart`.
    """
    tuned: dict[tuple[object, ...], list[tuple[Experiment, int]]] = {}
    for source in (experiment, *others):
        for index, source_cell in enumerate(source.cells):
            config = source_cell.config
            if config.strategy == "finetune" and source.run_ids(index):
                tuned.setdefault(training_of(config, searched), []).append((source, index))
    groups: dict[tuple[object, ...], list[int]] = {}
    for cell in competing:
        groups.setdefault(training_of(experiment.cells[cell].config, searched), []).append(cell)
    editions = editions_by_cell(experiment)
    for alike, cells in groups.items():
        shown = [cell for cell in best if cell in cells]
        baselines = tuned.get(alike, [])
        if not baselines or not shown:
            continue
        baseline = baselines[0]
        comparable: list[int] = []
        for source, index in baselines:
            theirs = editions if source is experiment else editions_by_cell(source)
            comparable = [cell for cell in cells if same_editions(editions[cell], theirs[index])]
            if shown[0] in comparable:
                baseline = source, index
                break
        apart.update(cell for cell in cells if cell not in comparable)
        rivals = [cell for cell in comparable if experiment is not baseline[0] or cell != baseline[1]]
        if not rivals:
            continue
        sources = [*((experiment, cell) for cell in rivals), baseline]
        pairs: list[tuple[int, int, ContrastKind]] = [(rival, len(rivals), "reference") for rival in range(len(rivals))]
        compared = paired(experiment.name, sources, [""] * len(sources), pairs)
        rows = [replace(row, cell=rivals[row.cell]) for row in compared.rows]
        yield replace(compared, rows=tuple(rows))


def best_sentence(shown: Sequence[Best]) -> str:
    """Return the best configuration of the first search space in a sentence: its metric, and how sure it is.

    A p-value is given only over patient splits. Seeds of one split say nothing about other people: then the sentence
    has the least and the largest difference of a seed.

    If the search space has several data sets or scenarios, there is a sentence for each.
    """
    leaders: dict[str, Best] = {}
    for best in shown:
        if best.experiment is shown[0].experiment:
            leaders.setdefault(best.data, best)
    return " ".join(_best_sentence(best, shown) for best in leaders.values())


def _best_sentence(best: Best, shown: Sequence[Best]) -> str:
    metric, mean = next(iter(best.means.items()))
    where = f" in {best.experiment.name}" if _of_several(shown) else ""
    where += f" on {best.data}" if best.data else ""
    of_whom = ""  # the names of other metrics say whose they are
    if metric_named(metric).split == "validation":
        of_whom = " on test people" if best.experiment.on_test else " on validation people"
    said = [f"Best{where}: {best.name}, {metric_named(metric).plain} {number(mean.mean)}{of_whom}"]
    above = _difference(best, metric)
    if best.above is not None and above is not None:
        said.append(f"{number(abs(above.mean))} {'above' if above.mean >= 0 else 'below'} fine-tuning")
        said.append(_certainty(above, best.above.corrected[metric]))
    elif best.experiment.cells[best.cell].config.strategy != "finetune":
        said.append(
            "not compared with fine-tuning, whose runs are of other prepared data or another semantics version"
            if best.is_apart
            else "no fine-tuning run was trained alike to compare it with"
        )
    if best.unranked:
        said.append(best.unranked)
    return f"{'; '.join(part for part in said if part)}."


def _certainty(above: PairedDifference, corrected: float) -> str:
    """Return how sure a difference from fine-tuning is, as a clause.

    Args:
        above: the difference.
        corrected: its p-value, corrected.
    """
    units = above.units
    if units is not None and units.obstacle:
        return f"not tested: {units.obstacle}"
    if units is not None and units.kind == "seeds":
        low, high = min(above.of_units), max(above.of_units)
        return f"one patient split: no interval over people, {low:+.3f} to {high:+.3f} over its {above.n} seeds"
    p = p_text(corrected)
    if p == DASH:
        return ""
    said = f"p {p.replace('<', '< ')}" if p.startswith("<") else f"p = {p}"
    if units is not None and units.kind == "runs":
        said += ", about these runs: their numbers of people are not recorded"
    return said


def best_text(shown: Sequence[Best], name: str) -> TextTable:
    """Return the best configurations as a table."""
    metrics = list(dict.fromkeys(chain.from_iterable(best.means for best in shown)))
    if len(metrics) > MOST_METRICS:
        metrics = list(dict.fromkeys(next(iter(best.means)) for best in shown))
    several = _of_several(shown)
    header = ["configuration", "n"]
    if several:
        header.insert(0, "search space")
    columns = 1 + any(best.above for best in shown) + _tested(shown)
    for metric in metrics:
        header += [metric_named(metric).plain, "minus fine-tuning", "p"][:columns]
    rows = []
    for best in shown:
        first = next(iter(best.means.values()))
        n = plural(first.n, _UNITS[first.units.kind]) if first.units else DASH
        cells = [label_cell(best.name), count_cell(first.n, n)]
        if several:
            cells.insert(0, label_cell(best.experiment.name))
        for metric in metrics:
            cells += _cells(best, metric)[:columns]
        rows.append(tuple(cells))
    notes = tuple(_notes(shown))
    return TextTable(name, "Best configurations", tuple(header), tuple(rows), 1 + several, (), notes, _data(shown))


def _of_several(shown: Sequence[Best]) -> bool:
    """Return whether configurations are of several search spaces."""
    return len({best.experiment.name for best in shown}) > 1


def _compared(shown: Sequence[Best]) -> list[Comparison]:
    """Return the differences from fine-tuning, of the configurations that have one."""
    return [best.above for best in shown if best.above is not None]


def _difference(best: Best, metric: str) -> PairedDifference | None:
    """Return the difference from fine-tuning in a metric; None without one."""
    if best.above is None or metric not in best.means:
        return None  # search spaces in one table may have other headline metrics
    difference = best.above.differences[metric]
    return difference if difference.n else None


def _tested(shown: Sequence[Best]) -> bool:
    p_values = chain.from_iterable(row.corrected.values() for row in _compared(shown))
    return any(np.isfinite(p) for p in p_values)


def _cells(best: Best, metric: str) -> list[TextCell]:
    """Return cells with the mean, its difference from fine-tuning, and p."""
    cells = [TextCell(DASH)] * 3
    mean = best.means.get(metric)
    if mean is not None and mean.n:
        cells[0] = TextCell(number(mean.mean) + interval_text(mean.low, mean.high), mean.mean)
    above = _difference(best, metric)
    if best.above is not None and above is not None:
        p = best.above.corrected[metric]
        cells[1] = TextCell(with_interval(above.mean, above.low, above.high), above.mean, p < ALPHA)
        cells[2] = p_cell(p)
    return cells


def _notes(shown: Sequence[Best]) -> Iterator[str]:
    metrics = list(chain.from_iterable(best.means for best in shown))
    whose = computed_on([best.experiment for best in shown], metrics)
    yield f"Mean [interval from three units on: 95 %, unadjusted]. Metrics of {whose}."
    if any(best.data for best in shown):
        yield RANKED_APART
    compared = _compared(shown)
    if _tested(shown):
        yield f"Minus fine-tuning: mean of paired differences [interval of the t-test{levels_in_words(compared)}]."
        yield OF_P
    most = max(best.of for best in shown)
    if most > 1:
        yield f"The best of {most:,} configurations has also been lucky: expect lower scores on other people."
    for best in shown:
        if best.tied:
            sentence = tied_in_words(best.tied, best.of)
            yield f"{sentence[0].upper()}{sentence[1:]}."
        if best.unranked:
            yield f"{best.unranked[0].upper()}{best.unranked[1:]}."
    of_means = [best.means for best in shown]
    of_differences = [row.differences for row in compared]
    estimates = chain.from_iterable(of_metrics.values() for of_metrics in (*of_means, *of_differences))
    yield from units_in_words([estimate.units for estimate in estimates])
    for best in shown:
        if best.above is None and best.experiment.cells[best.cell].config.strategy != "finetune":
            yield "Not compared where no fine-tuning run was trained alike on the same splits and seeds."
            return


def _data(shown: Sequence[Best]) -> pd.DataFrame:
    """Return the best configurations as data: a row per configuration and metric."""
    names = ("search_space", "configuration", "metric", "mean", "low", "high", "n")
    of_differences = ("minus_fine_tuning", "difference_low", "difference_high", "difference_level", "pairs", "p_holm")
    rows: list[tuple[object, ...]] = []
    for best in shown:
        for metric, mean in best.means.items():
            row: list[object] = [best.experiment.name, best.name, metric, mean.mean, mean.low, mean.high, mean.n]
            if best.above is None:
                row += [None] * len(of_differences)
            else:
                above = best.above.differences[metric]
                row += [above.mean, above.low, above.high, best.above.levels[metric]]
                row += [above.n, best.above.corrected[metric]]
            rows.append(tuple(row))
    return pd.DataFrame(rows, columns=[*names, *of_differences], dtype=object)
