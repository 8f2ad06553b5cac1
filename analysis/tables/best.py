"""The best configurations of each search space, compared with fine-tuning."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

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
from ..selection import cell_name, variants
from ..statistics import ALPHA, PairedDifference, units_in_words
from .comparisons import OF_P, Comparison, Comparisons, Kind, corrected_together, levels_in_words, paired
from .strategies import editions_of

MOST_ROWS, MOST_METRICS = 6, 2
"""Most configurations per search space, and most metrics."""

_UNITS = {"patient splits": "split", "folds": "fold", "seeds": "seed", "runs": "split"}


@dataclass(frozen=True)
class Best:
    """The best configuration of a variant, with the mean of each metric and its interval.

    `of` is the number of configurations that competed. `above` is the difference from fine-tuning; None for fine-tuning
    itself, or without a fine-tuning run with equal training. `rivals` has the differences of all that competed.
    """

    experiment: Experiment
    cell: int
    of: int
    means: Mapping[str, PairedDifference] = field(hash=False)
    above: Comparison | None
    rivals: Comparisons | None = None

    @property
    def name(self) -> str:
        """Name of the configuration."""
        return cell_name(self.experiment.cells[self.cell]) or self.experiment.name


def best_configurations(
    experiment: Experiment, others: Sequence[Experiment] = (), searched: Collection[str] = (), most: int = MOST_ROWS
) -> list[Best]:
    """Return the best configuration of each variant by the first headline metric, the best of all first.

    Only configurations with all runs finished compete, once there are any; of configurations that share their runs, the
    first. Fine-tuning is taken from the experiment,
    else from others, with equal training and data apart from the parameters of a search.

    Args:
        experiment: the experiment with the competing configurations.
        others: other experiments that may contain fine-tuning.
        searched: the parameters of a search, whose configurations form one variant.
        most: maximum number of configurations.
    """
    metrics = [name for name in experiment.headline if metric_named(name).better][:MOST_METRICS]
    if not metrics:
        return []
    values = experiment.by_split(metrics[0]) * (-1 if metric_named(metrics[0]).better == "lower" else 1)
    known = np.isfinite(values).any(axis=1)
    whole = known & (experiment.counts() == experiment.counts("finished"))
    there = np.flatnonzero(whole if whole.any() else known).tolist()
    competing = sorted({experiment.run_ids(cell): cell for cell in reversed(there)}.values())  # equal ones compete once
    score = {cell: float(np.nanmean(values[cell])) for cell in competing}
    groups = variants(experiment, tuple(searched) or experiment.number_axes).values()
    best = [max(of, key=score.__getitem__) for cells in groups if (of := [it for it in cells if it in score])]
    best = sorted(best, key=score.__getitem__, reverse=True)[:most]
    above = {}
    for rivals in _above_fine_tuning(experiment, competing, best, others, searched):
        above.update({row.cell: (row, rivals) for row in rivals.rows})
    found = []
    for cell in best:
        means = {metric: mean_of(experiment, cell, metric) for metric in metrics}
        found.append(Best(experiment, cell, len(competing), means, *above.get(cell, (None, None))))
    return found


def corrected_with(found: Sequence[Best], tables: Sequence[Comparisons]) -> tuple[list[Best], list[Comparisons]]:
    """Return the best configurations and other tables of a page, with p-values corrected together.

    The comparisons of all configurations that competed count, since the best were chosen among them.
    """
    rivals = list({id(it.rivals): it.rivals for it in found if it.rivals is not None}.values())
    together = corrected_together([*tables, *rivals])
    of_page = {id(old): new for old, new in zip(rivals, together[len(tables) :], strict=True)}
    best = []
    for it in found:
        if it.above is not None:
            rows = of_page[id(it.rivals)].rows
            above = next(row for row in rows if row.cell == it.above.cell)
            it = replace(it, above=above, rivals=of_page[id(it.rivals)])
        best.append(it)
    return best, together[: len(tables)]


def _above_fine_tuning(
    experiment: Experiment,
    competing: Sequence[int],
    best: Sequence[int],
    others: Sequence[Experiment],
    searched: Collection[str],
) -> Iterator[Comparisons]:
    """Subtract fine-tuning from the cells that compete with the best, in a table for each way of training."""
    tuned: dict[tuple[object, ...], tuple[Experiment, int]] = {}
    for source in (experiment, *others):
        for index, it in enumerate(source.cells):
            if it.config.strategy == "finetune" and source.run_ids(index):
                tuned.setdefault(training_of(it.config, searched), (source, index))
    groups: dict[tuple[object, ...], list[int]] = {}
    for cell in competing:
        groups.setdefault(training_of(experiment.cells[cell].config, searched), []).append(cell)
    for alike, cells in groups.items():
        shown, baseline = [cell for cell in best if cell in cells], tuned.get(alike)
        if baseline is None or not shown:
            continue
        ours, theirs = editions_of(experiment, shown[0]), editions_of(*baseline)
        if any(theirs.get(split, edition) != edition for split, edition in ours.items()):
            continue
        rivals = [cell for cell in cells if experiment is not baseline[0] or cell != baseline[1]]
        sources = [*((experiment, cell) for cell in rivals), baseline]
        pairs: list[tuple[int, int, Kind]] = [(place, len(rivals), "reference") for place in range(len(rivals))]
        found = paired(experiment.name, sources, [""] * len(sources), pairs)
        yield replace(found, rows=tuple(replace(row, cell=rivals[row.cell]) for row in found.rows))


def best_sentence(found: Sequence[Best], more_seeds: str = "") -> str:
    """Return the best configuration of the first search space in a sentence: its metric, and how sure it is.

    Args:
        found: the best configurations.
        more_seeds: the command that asks for more seeds, if there is one.
    """
    best, several = found[0], len({it.experiment.name for it in found}) > 1
    metric, mean = next(iter(best.means.items()))
    where = f" in {best.experiment.name}" if several else ""
    of_whom = ""  # the names of other metrics say whose they are
    if metric_named(metric).split == "validation":
        of_whom = " on test people" if best.experiment.on_test else " on validation people"
    said = [f"Best{where}: {best.name}, {metric_named(metric).plain} {number(mean.mean)}{of_whom}"]
    if best.above is not None and (above := best.above.differences[metric]).n:
        said.append(f"{number(abs(above.mean))} {'above' if above.mean >= 0 else 'below'} fine-tuning")
        p = p_text(best.above.corrected[metric])
        why = above.units.obstacle if above.units is not None else ""
        if why:
            said.append(f"not tested: {why}")
        elif p != DASH:
            said[-1] += f" (p {p})" if p.startswith("<") else f" (p = {p})"
        if " seed" in why and more_seeds:
            return f"{'; '.join(said)}. Run `{more_seeds}`."
    elif best.experiment.cells[best.cell].config.strategy != "finetune":
        said.append("no fine-tuning run was trained alike to compare it with")
    return f"{'; '.join(said)}."


def best_text(found: Sequence[Best], name: str) -> TextTable:
    """Return the best configurations as a table."""
    metrics = list(dict.fromkeys(metric for it in found for metric in it.means))
    if len(metrics) > MOST_METRICS:
        metrics = list(dict.fromkeys(next(iter(it.means)) for it in found))
    several = len({it.experiment.name for it in found}) > 1
    header = [*(["search space"] if several else []), "configuration", "n"]
    columns = 1 + any(it.above for it in found) + _tested(found)
    for metric in metrics:
        header += [metric_named(metric).plain, "minus fine-tuning", "p"][:columns]
    rows = []
    for it in found:
        first = next(iter(it.means.values()))
        n = plural(first.n, _UNITS[first.units.kind]) if first.units else DASH
        names = [*([it.experiment.name] if several else []), it.name]
        cells = [*map(label_cell, names), count_cell(first.n, n)]
        rows.append((*cells, *(cell for metric in metrics for cell in _cells(it, metric)[:columns])))
    notes = tuple(_notes(found))
    return TextTable(name, "Best configurations", tuple(header), tuple(rows), 1 + several, (), notes, _data(found))


def _tested(found: Sequence[Best]) -> bool:
    return any(np.isfinite(p) for it in found if it.above for p in it.above.corrected.values())


def _cells(it: Best, metric: str) -> list[TextCell]:
    """Return cells with the mean, its difference from fine-tuning, and p."""
    cells, mean = [TextCell(DASH)] * 3, it.means.get(metric)
    if mean is not None and mean.n:
        cells[0] = TextCell(number(mean.mean) + interval_text(mean.low, mean.high), mean.mean)
    # Search spaces in one table may have other headline metrics.
    if it.above is not None and metric in it.means and (above := it.above.differences[metric]).n:
        p = it.above.corrected[metric]
        cells[1] = TextCell(with_interval(above.mean, above.low, above.high), above.mean, p < ALPHA)
        cells[2] = p_cell(p)
    return cells


def _notes(found: Sequence[Best]) -> Iterator[str]:
    metrics = [metric for it in found for metric in it.means]
    whose = computed_on([it.experiment for it in found], metrics)
    yield f"Mean [interval from three units on: 95 %, unadjusted]. Metrics of {whose}."
    if _tested(found):
        rows = [it.above for it in found if it.above]
        yield f"Minus fine-tuning: mean of paired differences [interval of the t-test{levels_in_words(rows)}]."
        yield OF_P
    if (of := max(it.of for it in found)) > 1:
        yield f"The best of {of:,} configurations has also been lucky: expect lower scores on other people."
    of_means = [d.units for it in found for d in it.means.values()]
    yield from units_in_words(
        [*of_means, *(d.units for it in found if it.above for d in it.above.differences.values())]
    )
    strategies = (it.experiment.cells[it.cell].config.strategy for it in found if it.above is None)
    if any(strategy != "finetune" for strategy in strategies):
        yield "Not compared where no fine-tuning run was trained alike on the same splits and seeds."


def _data(found: Sequence[Best]) -> pd.DataFrame:
    """Return the best configurations as data: a row per configuration and metric."""
    names = ("search_space", "configuration", "metric", "mean", "low", "high", "n")
    of_differences = ("minus_fine_tuning", "difference_low", "difference_high", "difference_level", "pairs", "p_holm")
    rows: list[tuple[object, ...]] = []
    for it in found:
        for metric, mean in it.means.items():
            above: tuple[object, ...] = (None,) * len(of_differences)
            if it.above is not None:
                of_metric, level = it.above.differences[metric], it.above.levels[metric]
                above = of_metric.mean, of_metric.low, of_metric.high, level, of_metric.n, it.above.corrected[metric]
            rows.append((it.experiment.name, it.name, metric, mean.mean, mean.low, mean.high, mean.n, *above))
    return pd.DataFrame(rows, columns=[*names, *of_differences], dtype=object)
