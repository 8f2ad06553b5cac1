"""The comparisons of a report, whose p-values are corrected together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from ..as_stored import stored_experiments
from ..collect import Experiment
from ..leading import names_of_tuned, with_leading_scores
from ..tables.best import Best, best_of_page, corrected_with
from ..tables.comparisons import Comparisons
from ..tables.strategies import StrategyComparison
from .planned import PlannedSection


@dataclass(frozen=True)
class PageComparisons:
    """The comparisons of a page, with p-values corrected together: by section, of strategies, of the best."""

    sections: tuple[Comparisons, ...]
    strategies: tuple[StrategyComparison, ...]
    best: tuple[Best, ...]


def judged_by_metrics(
    experiments: Sequence[Experiment], tuned: Iterable[str], metrics: Sequence[str]
) -> list[Experiment]:
    """Return experiments judged by given metrics or, without any, by the scores that lead.

    Args:
        experiments: the experiments.
        tuned: the names of tuned spaces.
        metrics: columns of `runs`.
    """
    if metrics:
        return [experiment.judged_by(metrics) for experiment in experiments]
    return with_leading_scores(experiments, names_of_tuned(experiments, tuned))


def compared_on_page(
    planned: Sequence[PlannedSection],
    strategies: Sequence[StrategyComparison],
    grids: Sequence[Experiment],
    elsewhere: Sequence[Experiment],
) -> PageComparisons:
    """Compare configurations of each section, strategies of several, and the best of reported runs with fine-tuning.

    Args:
        planned: the sections of the page, with those that are not drawn.
        strategies: the comparisons of strategies.
        grids: the experiments of the page without those of tuning, which may contain fine-tuning.
        elsewhere: further experiments that may contain fine-tuning.
    """
    drawn = [section for section in planned if not section.alone]
    best = best_of_page([section.experiment for section in planned], grids, elsewhere)
    tables = [*(section.compared() for section in drawn), *(of_two.differences for of_two in strategies)]
    best, together = corrected_with(best, tables)
    of_strategies = zip(strategies, together[len(drawn) :], strict=True)
    return PageComparisons(
        tuple(together[: len(drawn)]),
        tuple(replace(it, differences=differences) for it, differences in of_strategies),
        tuple(best),
    )


def fine_tuning_elsewhere(runs: pd.DataFrame, experiments: Sequence[Experiment]) -> list[Experiment]:
    """Return the fine-tuning runs of the store on the data shown, from any search space but not from tuning alone."""
    if runs.empty:
        return []
    hashes = {edition.data_hash for it in experiments for edition in it.shown}
    tuning = {run_id for it in experiments if it.is_tuning for run_id in it.runs["run_id"]}
    reported = {run_id for it in experiments if not it.is_tuning for run_id in it.runs["run_id"]}
    of_data = (runs["strategy"] == "finetune") & runs["data_hash"].isin(hashes)
    return stored_experiments(runs[of_data & ~runs["run_id"].isin(tuning - reported)])[0]
