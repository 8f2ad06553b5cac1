"""The best configurations of each search space with their scores, compared with fine-tuning."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations

import numpy as np
import pandas as pd

from clops_sweep.experiment.axis_names import axis_title
from clops_sweep.experiment.config import names_of
from clops_sweep.experiment.fields import training_of
from clops_sweep.experiment.spaces.axes import number_in_words

from ..collect import Experiment, computed_on, label_text
from ..editions import replaced_in_words
from ..formats import (
    DASH,
    TextCell,
    TextTable,
    count_cell,
    label_cell,
    mean_text,
    number,
    p_cell,
    p_text,
    plural,
    with_interval,
    with_joined_options,
)
from ..leading import LeadingColumns, columns_in_words, heading, is_choice, leading_columns
from ..metrics import metric_named
from ..results import mean_of
from ..selection import cell_name, cells_by_data, competing_cells, data_of, scenario_in_words, undefined_runs, variants
from ..statistics import ALPHA, PairedDifference, units_in_words
from .comparisons import (
    FEW,
    OF_P,
    Comparison,
    Comparisons,
    ContrastKind,
    corrected_together,
    levels_in_words,
    paired,
    people_in_words,
    training_in_words,
    without_interval_in_words,
)
from .editions_of_cells import editions_by_cell, same_editions

MOST_ROWS = 6
"""Most configurations of a search space of which one is chosen: the best of each variant."""
MOST_COMPARED = 20
"""Most configurations of a search space whose test scores lead: all of them, unless they are more."""
MOST_SPACES = 5
"""Most search spaces with several configurations each; of more, each has one."""
_MOST_IN_SENTENCES = 3
"""Most search spaces whose best configurations are named in sentences."""
_MOST_COLUMNS = 3
"""Most columns of scores."""

RANKED_APART = "Configurations are ranked within each data set and scenario."
"""A note on tables with several of them."""

FINE_TUNING = "fine-tuning"
"""Fine-tuning in words, where search spaces have no name for it or several."""

_MOST_CHOSEN = 4
"""Most tuned fields with a column each; of more, one column has all."""

_MOST_TIED = 4
"""Most names of tied configurations in a sentence."""


@dataclass(frozen=True)
class Best:
    """The best configuration of a variant, with the mean of each metric and its interval.

    `of` is the number of configurations that competed, and `columns` are those to show: `means` has them all. `above`
    is the difference from fine-tuning; None for fine-tuning itself, or without a fine-tuning run with equal training.
    `rivals` has the differences of all that competed. `tied` names the configurations that share the best mean, if this
    one is the first of them and there are others; `is_tied` tells that this one is one of them. `unranked` is said of
    the best of all: which configurations of the experiment did not compete, or that each was ranked by the runs it has.
    `data` names data set and scenario, if the experiment has several, whose configurations are ranked apart. `is_apart`
    tells that there are fine-tuning runs with equal training, but of data of other content or of another semantics
    version: they are not compared. `is_elsewhere` tells that the fine-tuning runs are of search spaces that are not
    shown. `more` counts configurations that are left out, because they are too many.

    `among` has the differences between all pairs of a few configurations that none is chosen of; `leader` is the best
    of them, and `runner_up` the second.
    """

    experiment: Experiment
    cell: int
    of: int
    columns: LeadingColumns
    means: Mapping[str, PairedDifference] = field(hash=False)
    above: Comparison | None
    rivals: Comparisons | None = None
    tied: tuple[str, ...] = ()
    is_tied: bool = False
    unranked: str = ""
    data: str = ""
    is_apart: bool = False
    is_elsewhere: bool = False
    more: int = 0
    among: Comparisons | None = None
    leader: int = -1
    runner_up: int = -1

    @property
    def name(self) -> str:
        """Name of the configuration."""
        return cell_name(self.experiment.cells[self.cell]) or self.experiment.name

    @property
    def result(self) -> PairedDifference:
        """The mean of the first metric that is a result: of test people, where there are scores of both."""
        return self.means[self.columns.results[0]]

    @property
    def below_leader(self) -> Comparison | None:
        """The difference from the best one of its data set and scenario; None if they are not compared."""
        return _below_leader(self, self.cell)

    @property
    def n(self) -> str:
        """Number and kind of the values behind `result`, and of the runs with a value, if some have none."""
        values = self.experiment.by_replicate(self.columns.results[0])[self.cell]
        defined = int(np.isfinite(values).sum())
        finished = len(self.experiment.run_ids(self.cell))
        undefined = f" ({defined:,} of {plural(finished, 'run')})" if defined < finished else ""
        if self.result.units is None:
            return f"{DASH}{undefined}"
        return self.result.units.in_short(self.result.n) + undefined


@dataclass(frozen=True)
class Failing:
    """A configuration of which every computed run failed: `failed` of `requested` runs."""

    experiment: Experiment
    cell: int
    failed: int
    requested: int

    @property
    def name(self) -> str:
        """Name of the configuration."""
        return cell_name(self.experiment.cells[self.cell]) or self.experiment.name

    @property
    def in_words(self) -> str:
        """What a table has in place of the number of runs: "failed (3 of 3)"."""
        return f"failed ({self.failed:,} of {self.requested:,})"


def failing_configurations(experiment: Experiment) -> list[Failing]:
    """Return the configurations with failed and without finished runs; none if one of all is chosen.

    Of many, the first are returned.
    """
    if is_choice(experiment):
        return []
    requested, failed = experiment.counts(), experiment.counts("failed")
    cells = _without_results(experiment, range(len(experiment.cells)))
    return [Failing(experiment, cell, int(failed[cell]), int(requested[cell])) for cell in cells[:MOST_COMPARED]]


def _without_results(experiment: Experiment, cells: Iterable[int]) -> list[int]:
    """Return the cells that have failed runs but no finished one."""
    finished, failed = experiment.counts("finished"), experiment.counts("failed")
    return [cell for cell in cells if failed[cell] and not finished[cell]]


def best_of_page(
    experiments: Sequence[Experiment],
    others: Sequence[Experiment] = (),
    elsewhere: Sequence[Experiment] = (),
    *,
    compares: bool = True,
) -> list[Best]:
    """Return the best configurations of experiments that are shown together, in their order; tuning has none.

    Args:
        experiments: the experiments, judged by the scores that lead.
        others: experiments that may contain fine-tuning.
        elsewhere: further ones, which are not shown.
        compares: whether to compare with fine-tuning.
    """
    reporting = [experiment for experiment in experiments if not experiment.is_tuning]
    most = 1 if len(reporting) > MOST_SPACES else None
    best: list[Best] = []
    for experiment in reporting:
        searched = tuple(experiment.axes) if experiment.is_search else ()
        best += best_configurations(experiment, others, searched, most, elsewhere, compares=compares)
    return best


def best_configurations(
    experiment: Experiment,
    others: Sequence[Experiment] = (),
    searched: Collection[str] = (),
    most: int | None = None,
    elsewhere: Sequence[Experiment] = (),
    *,
    compares: bool = True,
) -> list[Best]:
    """Return the best configuration of each variant by the metric that ranks them, the best of all first.

    Configurations of several data sets or scenarios are ranked apart, those of the first one first. If none of them is
    chosen, or if test scores rank them, all are returned, because the best of many test scores is partly luck.

    Only configurations with all runs finished compete, once their data set and scenario have any; of configurations
    that share their runs, the first. Fine-tuning is taken from the experiment, else from others, with equal training
    and data apart from the parameters of a search; without equal training, it is that of the experiment itself.

    Args:
        experiment: the experiment with the competing configurations.
        others: other experiments that may contain fine-tuning.
        searched: the parameters of a search, whose configurations form one variant.
        most: maximum number of configurations on a data set and scenario.
        elsewhere: further experiments that may contain fine-tuning, which are not shown.
        compares: whether to compare with fine-tuning.
    """
    columns = leading_columns(experiment)
    if columns is None:
        return []
    score = _scores(experiment, columns.ranks)
    of_data = _by_data(experiment, score)
    ordered = [_best_cells(experiment, there, searched, columns) for there in of_data]
    best_of_data = [cells[: most or most_of(experiment)] for cells in ordered]
    best = list(chain.from_iterable(best_of_data))
    above = {}
    apart: set[int] = set()
    if compares:
        sources = [experiment, *others]
        for rivals, is_elsewhere in _above_fine_tuning(sources, elsewhere, sorted(score), best, searched, apart):
            above.update({row.cell: (row, rivals, is_elsewhere) for row in rivals.rows})
    configurations = []
    for there, cells, all_cells in zip(of_data, best_of_data, ordered, strict=True):
        among = _among(experiment, all_cells, columns) if compares else None
        tied = _tied_cells(there, all_cells[0])
        for cell in cells:
            row, rivals_of_cell, is_elsewhere = above.get(cell, (None, None, False))
            is_first = cell == cells[0]
            configuration = Best(
                experiment,
                cell,
                len(there),
                columns,
                {metric: mean_of(experiment, cell, metric) for metric in columns.shown},
                row,
                rivals_of_cell,
                tied=tuple(cell_name(experiment.cells[other]) for other in tied) if is_first else (),
                is_tied=cell in tied,
                unranked=unranked_in_words(experiment) if cell == best[0] else "",
                data=", ".join(data_of(experiment.cells[cell])) if len(of_data) > 1 else "",
                is_apart=cell in apart,
                is_elsewhere=is_elsewhere,
                more=len(all_cells) - len(cells) if is_first else 0,
                among=among,
                leader=all_cells[0],
                runner_up=all_cells[1] if len(all_cells) > 1 else -1,
            )
            configurations.append(configuration)
    return configurations


def ranked_cells(experiment: Experiment) -> list[int]:
    """Return the cells with finished runs: those that compete, the best first, then the others."""
    columns = leading_columns(experiment)
    score = {} if columns is None else _scores(experiment, columns.ranks)
    ranked: list[int] = []
    for of_data in _by_data(experiment, score):
        ranked += sorted(of_data, key=of_data.__getitem__, reverse=True)
    others = [cell for cell in range(len(experiment.cells)) if experiment.run_ids(cell) and cell not in score]
    return [*ranked, *others]


def most_of(experiment: Experiment) -> int:
    """Return how many configurations of an experiment are shown on each data set and scenario."""
    return MOST_ROWS if is_choice(experiment) else MOST_COMPARED


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
    return f"tied for the best, with equal means to three decimals: {_tied_names(names, of)}"


def _tied_names(names: Sequence[str], of: int) -> str:
    """Return the names of the configurations that share the best mean, of `of` that competed."""
    if len(names) == of > 2:
        return f"all {of:,} configurations"
    more = len(names) - _MOST_TIED
    return ", ".join(names[:_MOST_TIED]) + (f" and {more:,} more" if more > 0 else "")


def unranked_in_words(experiment: Experiment) -> str:
    """Return a sentence about configurations without some of their runs; empty if all have all of theirs.

    They do not compete with those of their data set and scenario that have all. If none has, each competes with the
    runs that it has.
    """
    columns = leading_columns(experiment)
    if columns is None or len(experiment.cells) < 2:
        return ""
    of_data = cells_by_data(experiment)
    sentences = []
    for cells in of_data:
        where = f"on {', '.join(data_of(experiment.cells[cells[0]]))}, " if len(of_data) > 1 else ""
        sentence = _unranked_of(experiment, columns.ranks, cells)
        if sentence:
            sentences.append(f"{where}{sentence}")
    return "; ".join(sentences)


def _unranked_of(experiment: Experiment, metric: str, cells: Sequence[int]) -> str:
    """Return the sentence of `unranked_in_words` about the configurations of one data set and scenario."""
    requested, finished = experiment.counts(), experiment.counts("finished")
    undefined = undefined_runs(experiment, metric)
    started = [cell for cell in cells if finished[cell]]
    finished = finished - undefined
    partial = [cell for cell in started if finished[cell] < requested[cell]]
    without = _without_results(experiment, cells)
    if partial and len(partial) == len(started):
        return "no configuration has all its runs: each is ranked by those that it has"
    if not partial and not without:
        return ""
    values = experiment.by_split(metric)
    named = []
    for cell in partial[:_MOST_TIED]:
        mean = number(float(np.nanmean(values[cell]))) if np.isfinite(values[cell]).any() else DASH
        name = cell_name(experiment.cells[cell])
        named.append(f"{name} ({mean} in {finished[cell]:,} of {requested[cell]:,} runs)")
    failed = experiment.counts("failed")
    for cell in without[: _MOST_TIED - len(named)]:
        named.append(f"{cell_name(experiment.cells[cell])} (failed: {failed[cell]:,} of {requested[cell]:,} runs)")
    more = len(partial) + len(without) - len(named)
    which = ", ".join(named) + (f" and {more:,} more" if more > 0 else "")
    reasons = []
    if without or (requested - finished - undefined)[partial].any():
        reasons.append("are missing or failed")
    if undefined[partial].any():
        reasons.append(f"have no {heading(metric, [experiment])}")
    return f"not ranked, because runs {' or '.join(reasons)}: {which}"


def _tied_cells(score: Mapping[int, float], best: int) -> list[int]:
    """Return the configurations whose mean is printed like that of the best one; none if it is alone."""
    tied = [cell for cell, value in score.items() if number(value) == number(score[best])]
    return tied if len(tied) > 1 else []


def _best_cells(
    experiment: Experiment, score: Mapping[int, float], searched: Collection[str], columns: LeadingColumns
) -> list[int]:
    """Return the best of the competing cells of each variant, the best of all first; all cells if none is chosen."""
    groups = list(variants(experiment, tuple(searched) or experiment.number_axes).values())
    if columns.ranks_by_test:
        groups = [[cell] for cell in range(len(experiment.cells))]
    best: list[int] = []
    for cells in groups:
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
    competing = list(first_with_runs.values())
    means = np.nanmean(values[competing], axis=1)
    return dict(zip(competing, means.tolist(), strict=True))


def corrected_with(shown: Sequence[Best], tables: Sequence[Comparisons]) -> tuple[list[Best], list[Comparisons]]:
    """Return the best configurations and other tables of a page, with p-values corrected together.

    The comparisons of all configurations that competed count, since the best were chosen among them.
    """
    of_best = {}
    for best in shown:
        of_best.update({id(table): table for table in (best.rivals, best.among) if table is not None})
    own = list(of_best.values())
    together = corrected_together([*tables, *own])
    corrected = {id(before): after for before, after in zip(own, together[len(tables) :], strict=True)}
    of_page = []
    for best in shown:
        if best.among is not None:
            best = replace(best, among=corrected[id(best.among)])
        if best.above is not None:
            rivals = corrected[id(best.rivals)]
            above = next(row for row in rivals.rows if row.cell == best.above.cell)
            best = replace(best, above=above, rivals=rivals)
        of_page.append(best)
    return of_page, together[: len(tables)]


def _above_fine_tuning(
    sources: Sequence[Experiment],
    elsewhere: Sequence[Experiment],
    competing: Sequence[int],
    best: Sequence[int],
    searched: Collection[str],
    apart: set[int],
) -> Iterator[tuple[Comparisons, bool]]:
    """Subtract fine-tuning from the cells that compete with the best, in a table for each way of training.

    Cells whose fine-tuning runs are of data of other content or of another semantics version are added to `apart`.

    Args:
        sources: the experiment of the cells, then others that may contain fine-tuning.
        elsewhere: further ones, which are not shown.
        competing: the cells that compete.
        best: those that are shown.
        searched: the parameters of a search.
        apart: receives cells.

    Yields:
        The differences, and whether the fine-tuning runs are from `elsewhere`.
    """
    experiment = sources[0]
    tuned: dict[tuple[object, ...], list[_Baseline]] = {}
    for source in (*sources, *elsewhere):
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
        baselines = tuned.get(alike) or _trained_otherwise(experiment, cells)
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
        if rivals:
            source, _ = baseline
            is_elsewhere = any(source is other for other in elsewhere)
            name = FINE_TUNING if is_elsewhere else _name_of_fine_tuning(baseline)
            yield _differences(experiment, rivals, baseline, name), is_elsewhere


_Baseline = tuple[Experiment, int]
"""An experiment and its cell with fine-tuning."""


def _trained_otherwise(experiment: Experiment, cells: Sequence[int]) -> list[_Baseline]:
    """Return the fine-tuning of an experiment on the data of some cells, if there is one; none for fine-tuning itself.

    Tuning may give each method another learning rate, and methods are compared nevertheless.
    """
    configs = [experiment.cells[cell].config for cell in cells]
    if any(config.strategy == "finetune" for config in configs):
        return []
    data = data_of(experiment.cells[cells[0]])
    baselines: list[_Baseline] = []
    for index, cell in enumerate(experiment.cells):
        is_fine_tuning = cell.config.strategy == "finetune" and data_of(cell) == data
        if is_fine_tuning and experiment.run_ids(index):
            baselines.append((experiment, index))
    return baselines if len(baselines) == 1 else []


def _name_of_fine_tuning(baseline: _Baseline) -> str:
    """Return the name that the search space gives to fine-tuning, without numeric axes; "fine-tuning" without one."""
    experiment, cell = baseline
    without = (*experiment.number_axes, "dataset", "scenario")
    return cell_name(experiment.cells[cell], without) or FINE_TUNING


def _differences(experiment: Experiment, rivals: Sequence[int], baseline: _Baseline, name: str) -> Comparisons:
    """Return the differences of cells from fine-tuning of the given name, in the metrics that are results."""
    columns = leading_columns(experiment)
    metrics = columns.results if columns is not None else ()
    sources = [*((experiment, cell) for cell in rivals), baseline]
    pairs: list[tuple[int, int, ContrastKind]] = [(rival, len(rivals), "reference") for rival in range(len(rivals))]
    names = [*("" for _ in rivals), name]
    compared = paired(experiment.name, sources, names, pairs, metrics)
    rows = [replace(row, cell=rivals[row.cell]) for row in compared.rows]
    return replace(compared, rows=tuple(rows))


def _among(experiment: Experiment, cells: Sequence[int], columns: LeadingColumns) -> Comparisons | None:
    """Return the differences between all pairs of a few configurations of one data set and scenario.

    None if one of them is chosen, or if they are many: the best of many is partly luck.

    Args:
        experiment: the experiment.
        cells: its competing cells, the best first.
        columns: its columns.
    """
    if not 1 < len(cells) <= FEW or is_choice(experiment):
        return None
    pairs: list[tuple[int, int, ContrastKind]] = [(cell, better, "variant") for better, cell in combinations(cells, 2)]
    sources = [(experiment, cell) for cell in range(len(experiment.cells))]
    names = [cell_name(cell) or experiment.name for cell in experiment.cells]
    return paired(experiment.name, sources, names, pairs, columns.results)


def _below_leader(best: Best, cell: int) -> Comparison | None:
    """Return the difference of a cell from the best one of its data set and scenario; None if they are not compared."""
    if best.among is None:
        return None
    return next((row for row in best.among.rows if (row.cell, row.baseline_cell) == (cell, best.leader)), None)


def _ahead_in_words(best: Best, metric: str) -> list[str]:
    """Return clauses on the difference of the best configuration from the second; none if they are not compared.

    Args:
        best: the best configuration of its data set and scenario.
        metric: the metric of the difference.
    """
    row = _below_leader(best, best.runner_up)
    if row is None or not row.differences[metric].n:
        return []
    ahead = row.differences[metric].negated
    clauses = [f"{number(abs(ahead.mean))} {'above' if ahead.mean >= 0 else 'below'} {row.name}"]
    if certainty := _certainty(ahead, row.corrected[metric]):
        clauses.append(certainty)
    if np.isfinite(row.corrected[metric]) and not row.corrected[metric] < ALPHA:
        clauses.append("no clear difference")
    return [", ".join(clauses)]


def best_sentences(shown: Sequence[Best], *, compares: bool = True) -> list[str]:
    """Return the best configuration of each of the first search spaces: its metric, and how sure it is.

    A p-value is given only over patient splits. Seeds of one split say nothing about other people: then the sentence
    has the least and the largest difference of a seed.

    If a search space has several data sets or scenarios, there is a sentence for each.

    Args:
        shown: the best configurations.
        compares: whether to name the difference from fine-tuning.
    """
    experiments = list({id(best.experiment): best.experiment for best in shown}.values())
    sentences = [_sentences_of(experiment, shown, compares) for experiment in experiments[:_MOST_IN_SENTENCES]]
    more = len(experiments) - _MOST_IN_SENTENCES
    if more > 0:
        sentences[-1] += f" {more:,} more search space{'s' if more > 1 else ''}: in the table."
    return sentences


def _sentences_of(experiment: Experiment, shown: Sequence[Best], compares: bool) -> str:
    leaders: dict[str, Best] = {}
    for best in shown:
        if best.experiment is experiment:
            leaders.setdefault(best.data, best)
    sentences = [_best_sentence(best, shown, compares) for best in leaders.values()]
    if replaced := replaced_in_words(experiment.replaced):
        sentences.append(f"{replaced}.")
    return " ".join(sentences)


def _best_sentence(best: Best, shown: Sequence[Best], compares: bool) -> str:
    is_only_one = best.of == 1 and best.name == best.experiment.name
    where = f" in {best.experiment.name}" if _of_several(shown) and not is_only_one else ""
    where += f" on {best.data}" if best.data else ""
    columns = best.columns
    scores = []
    for metric in dict.fromkeys((columns.ranks, columns.results[0])):
        mean = best.means[metric]
        is_over_seeds = mean.units is not None and mean.units.kind == "seeds"
        has_interval = metric in columns.results and not is_over_seeds  # seeds say nothing about other people
        text = mean_text(mean) if has_interval else number(mean.mean)
        scores.append(f"{heading(metric, [best.experiment])} {text}")
    which = f"{best.name}{where}"
    if best.of > 1:
        by = f" by {heading(columns.ranks, [best.experiment])}" if columns.ranks_by_validation else ""
        which = f"Best{where}{by}: {best.name}"
        if best.tied:
            which = f"Tied for the best{where}{by}: {_tied_names(best.tied, best.of)}; {best.name}"
    said = [f"{which}, {', '.join(scores)}, n = {best.n}"]
    metric = columns.results[0]
    above = _difference(best.above, metric)
    is_to_fine_tuning = best.experiment.cells[best.runner_up].config.strategy == "finetune"
    if not (compares and best.above is not None and is_to_fine_tuning):
        said += _ahead_in_words(best, metric)
    compares = compares and not best.is_elsewhere
    if compares and best.above is not None and above is not None:
        direction = "above" if above.mean >= 0 else "below"
        said.append(f"{number(abs(above.mean))} {direction} {_spelled_out(best.above.baseline)}")
        said.append(_certainty(above, best.above.corrected[metric]))
    elif compares and best.is_apart:
        said.append("not compared with fine-tuning, whose runs are of other prepared data or another semantics version")
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


def best_text(shown: Sequence[Best], name: str, failing: Sequence[Failing] = ()) -> TextTable:
    """Return the best configurations as a table.

    Args:
        shown: the configurations.
        name: name of the table.
        failing: configurations without results, which follow.
    """
    metrics = columns_of(shown)
    experiments = [best.experiment for best in shown]
    several = _of_several(shown)
    header = ["configuration", "n"]
    if several:
        header.insert(0, "search space")
    columns = 1 + bool(_compared(shown)) + _tested(shown)
    chosen = _chosen_columns(shown)
    header[-1:-1] = chosen
    minus = f"minus {_baseline(shown)}"
    results = set(chain.from_iterable(best.columns.results for best in shown))
    for metric in metrics:
        header.append(heading(metric, experiments))
        if metric in results:
            header += [minus, "p"][: columns - 1]
    rows = []
    for best in shown:
        cells = [label_cell(best.name), *_chosen_cells(best, chosen), count_cell(best.result.n, best.n)]
        if several:
            cells.insert(0, label_cell(best.experiment.name))
        for metric in metrics:
            cells += _cells(best, metric, _contrast(best, shown))[: columns if metric in results else 1]
        rows.append(tuple(cells))
    for failed in failing:
        nothing_chosen = [TextCell(DASH)] * len(chosen)
        cells = [label_cell(failed.name), *nothing_chosen, count_cell(0, failed.in_words)]
        if several:
            cells.insert(0, label_cell(failed.experiment.name))
        dashes = [TextCell(DASH)] * (len(header) - len(cells))
        rows.append((*cells, *dashes))
    notes = tuple(_notes(shown))
    headings = frozenset(heading(metric, experiments) for metric in metrics)
    table = TextTable(
        name,
        title_of(shown),
        tuple(header),
        tuple(rows),
        1 + several,
        notes=notes,
        data=_data(shown),
        metric_headings=headings,
        about=_about(shown),
        notes_on_differences=frozenset(_notes_on_differences(shown)),
    )
    first = 1 + several
    return with_joined_options(table, range(first, first + len(chosen)))


def _tuned_fields(shown: Sequence[Best]) -> list[str]:
    """Return the fields that tuning chose for any of some configurations, those of the most configurations first."""
    fields: dict[str, int] = {}
    for best in shown:
        cell = best.experiment.cells[best.cell]
        for name in names_of([cell.config]):
            if name in cell.tuned:
                fields[name] = fields.get(name, 0) + 1
    return sorted(fields, key=lambda name: -fields[name])


def _chosen_columns(shown: Sequence[Best]) -> list[str]:
    """Return the headings of the values that tuning chose: a column for each of a few fields, else one for all."""
    fields = _tuned_fields(shown)
    return [axis_title(name) for name in fields] if len(fields) <= _MOST_CHOSEN else ["chosen"]


def _chosen_cells(best: Best, columns: Sequence[str]) -> list[TextCell]:
    """Return the values that tuning chose for a configuration, in the columns of `_chosen_columns`."""
    cell = best.experiment.cells[best.cell]
    chosen = {axis_title(name): cell.config.get(name) for name in names_of([cell.config]) if name in cell.tuned}
    if list(columns) == ["chosen"]:
        text = ", ".join(f"{title} {_short(value)}" for title, value in chosen.items())
        return [label_cell(text or DASH)]
    cells = []
    for title in columns:
        value = chosen.get(title)
        text = _short(value) if title in chosen else DASH
        if isinstance(value, int | float) and not isinstance(value, bool):
            cells.append(TextCell(text, float(value)))
        else:
            cells.append(TextCell(text, text))
    return cells


def _short(value: object) -> str:
    """Return a chosen value as text, a number with three significant digits."""
    return number_in_words(value) if isinstance(value, float) else label_text(value)


def _about(shown: Sequence[Best]) -> str:
    """Return data sets and scenarios in words, and n if all configurations have the same."""
    configs = [best.experiment.cells[best.cell].config for best in shown]
    parts = [
        " and ".join(dict.fromkeys(config.dataset for config in configs)),
        " and ".join(dict.fromkeys(map(scenario_in_words, configs))),
    ]
    of_n = {best.n for best in shown}
    if len(of_n) == 1:
        parts.append(f"n = {of_n.pop()}")
    return ", ".join(parts)


def title_of(shown: Sequence[Best]) -> str:
    """Return the title of a table of configurations."""
    if any(is_choice(best.experiment) for best in shown):
        return "Best configurations"
    return "Test scores" if all(best.columns.ranks_by_test for best in shown) else "Scores"


def columns_of(shown: Sequence[Best]) -> list[str]:
    """Return the columns of scores of configurations that are shown in one table."""
    columns = dict.fromkeys(chain.from_iterable(best.columns.shown for best in shown))
    if len(columns) > _MOST_COLUMNS:
        columns = dict.fromkeys(chain.from_iterable(best.columns.shown[:-1] or best.columns.shown for best in shown))
    return list(columns)


def stored_columns_of(shown: Sequence[Best]) -> list[str]:
    """Return the columns of `runs` with the scores of configurations: those of test without a validation set."""
    columns: dict[str, None] = {}
    for column in columns_of(shown):
        for best in shown:
            if column in best.columns.shown:
                columns[best.experiment.stored_column(column)] = None
    return list(columns)


def _of_several(shown: Sequence[Best]) -> bool:
    """Return whether configurations are of several search spaces."""
    return len({best.experiment.name for best in shown}) > 1


def _is_above_fine_tuning(shown: Sequence[Best]) -> bool:
    """Return whether configurations are compared with fine-tuning: if any is, and else with the best one."""
    return any(best.above is not None for best in shown)


def _baseline(shown: Sequence[Best]) -> str:
    """Return what configurations are compared with: fine-tuning by its name or, if none is compared with it, "best"."""
    names = {best.above.baseline for best in shown if best.above is not None}
    if len(names) > 1:
        return FINE_TUNING
    return names.pop() if names else "best"


def _spelled_out(name: str) -> str:
    """Return the name of fine-tuning with "fine-tuning" in parentheses, unless it says so."""
    return name if FINE_TUNING in name.lower().replace(" ", "-") else f"{name} ({FINE_TUNING})"


def _contrast(best: Best, shown: Sequence[Best]) -> Comparison | None:
    """Return the difference of a configuration from the baseline of the table; None without one."""
    return best.above if _is_above_fine_tuning(shown) else best.below_leader


def _compared(shown: Sequence[Best]) -> list[Comparison]:
    """Return the differences from the baseline of the table, of the configurations that have one."""
    contrasts = [_contrast(best, shown) for best in shown]
    return [contrast for contrast in contrasts if contrast is not None]


def _difference(contrast: Comparison | None, metric: str) -> PairedDifference | None:
    """Return the difference in a metric; None without one."""
    if contrast is None:
        return None
    difference = contrast.differences.get(metric)  # search spaces in one table may have other metrics
    return difference if difference is not None and difference.n else None


def _tested(shown: Sequence[Best]) -> bool:
    p_values = chain.from_iterable(row.corrected.values() for row in _compared(shown))
    return any(np.isfinite(p) for p in p_values)


def _cells(best: Best, metric: str, contrast: Comparison | None) -> list[TextCell]:
    """Return cells with the mean, its difference from the baseline, and p."""
    cells = [TextCell(DASH)] * 3
    mean = best.means.get(metric)
    if mean is not None and mean.n:
        text = mean_text(mean) if metric in best.columns.results else number(mean.mean)
        cells[0] = TextCell(text, mean.mean)
    difference = _difference(contrast, metric)
    if contrast is not None and difference is not None:
        p = contrast.corrected[metric]
        interval = with_interval(difference.mean, difference.low, difference.high)
        cells[1] = TextCell(interval, difference.mean, p < ALPHA)
        cells[2] = p_cell(p)
    return cells


def ranks_in_words(shown: Sequence[Best]) -> str:
    """Return a sentence on the scores that rank configurations, if test scores do not although there are some."""
    ranked = [best for best in shown if best.columns.ranks_by_validation]
    if not ranked:
        return ""
    metrics = dict.fromkeys(heading(best.columns.ranks, [best.experiment]) for best in ranked)
    return f"Ranked by {' and '.join(metrics)}: the best of many test scores would be partly luck."


def means_in_words(shown: Sequence[Best]) -> str:
    """Return what stands behind the means of configurations, in brackets and parentheses."""
    means = [best.means[metric] for best in shown for metric in best.columns.results]
    said = []
    if any(np.isfinite(mean.low) for mean in means):
        kinds = {mean.units.kind for mean in means if mean.units is not None}
        over = "over the seeds of one patient split, not over people" if kinds == {"seeds"} else "unadjusted"
        said.append(f"[95 % interval, {over}]")
    if any(mean.n > 1 and not np.isfinite(mean.low) for mean in means):
        said.append("(lowest to highest)")
    return " ".join(["Mean", *said])


def _notes_on_differences(shown: Sequence[Best]) -> Iterator[str]:
    compared = _compared(shown)
    if _tested(shown):
        without_interval = without_interval_in_words(compared, columns_of(shown))
        yield f"Minus {_baseline(shown)}: mean of paired differences [{levels_in_words(compared)}]{without_interval}."
        yield OF_P
    if any(best.above is not None and best.is_elsewhere for best in shown):
        yield "The fine-tuning runs are of search spaces of this store that are not shown here."


def _notes(shown: Sequence[Best]) -> Iterator[str]:
    yield f"{means_in_words(shown)}."
    without_validation = [best.experiment for best in shown if best.experiment.on_test]
    if without_validation:
        yield f"Metrics of {computed_on([best.experiment for best in shown])}."
    if ranked := ranks_in_words(shown):
        yield ranked
    if any(best.data for best in shown):
        yield RANKED_APART
    yield from _notes_on_differences(shown)
    compared = _compared(shown)
    is_above = _is_above_fine_tuning(shown)
    tables = [best.rivals if is_above else best.among for best in shown]
    rivals = [table for table in tables if table is not None]
    yield from training_in_words(rivals)
    among = [best.among for best in shown if best.among is not None]
    yield from people_in_words([*rivals, *among])
    most = max((best.of for best in shown if not best.columns.ranks_by_validation), default=1)
    if most > 1:
        yield f"The best of {most:,} configurations has also been lucky: expect lower scores on other people."
    for best in shown:
        whose = f"{best.experiment.name}: " if _of_several(shown) else ""
        if best.tied:
            yield _as_sentence(tied_in_words(best.tied, best.of), whose)
        if best.more:
            yield f"{best.experiment.name}: {best.more:,} more in the table of its results."
        if best.unranked:
            yield _as_sentence(best.unranked, whose)
    of_means = [best.means for best in shown]
    of_differences = [row.differences for row in compared]
    estimates = chain.from_iterable(of_metrics.values() for of_metrics in (*of_means, *of_differences))
    yield from units_in_words([estimate.units for estimate in estimates])
    yield f"{columns_in_words(stored_columns_of(shown))}."
    for best in shown:
        is_baseline = not is_above or best.experiment.cells[best.cell].config.strategy == "finetune"
        if best.above is None and not is_baseline:
            yield "Not compared where no fine-tuning run was trained alike on the same splits and seeds."
            return


def _as_sentence(said: str, whose: str) -> str:
    """Return a clause as a sentence, which begins with the search space that it is about, if that is given."""
    return f"{whose}{said}." if whose else f"{said[0].upper()}{said[1:]}."


def _data(shown: Sequence[Best]) -> pd.DataFrame:
    """Return the best configurations as data: a row per configuration and metric."""
    names = ("search_space", "configuration", "metric", "mean", "low", "high", "n", "lowest", "highest")
    minus = "minus_fine_tuning" if _is_above_fine_tuning(shown) else "minus_best"
    of_differences = (minus, "difference_low", "difference_high", "difference_level", "pairs", "p_holm")
    tuned = _tuned_fields(shown)
    rows: list[tuple[object, ...]] = []
    for best in shown:
        cell = best.experiment.cells[best.cell]
        chosen = [cell.config.get(name) if name in cell.tuned else None for name in tuned]
        for metric, mean in best.means.items():
            row: list[object] = [best.experiment.name, best.name, metric, mean.mean, mean.low, mean.high, mean.n]
            row += [min(mean.of_units, default=np.nan), max(mean.of_units, default=np.nan)]
            contrast = _contrast(best, shown)
            difference = None if contrast is None else contrast.differences.get(metric)
            if contrast is None or difference is None:
                row += [None] * len(of_differences)
            else:
                row += [difference.mean, difference.low, difference.high, contrast.levels[metric]]
                row += [difference.n, contrast.corrected[metric]]
            rows.append((*row, *chosen))
    return pd.DataFrame(rows, columns=[*names, *of_differences, *tuned], dtype=object)
