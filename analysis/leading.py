"""The scores that lead: those of test people, unless a configuration is chosen by scores of validation people.

Terminal, report and dashboard ask this module, so that they agree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from clops_sweep.experiment.metrics import short_name
from clops_sweep.experiment.spaces.search_space import SELECTION

from .collect import Experiment
from .metrics import metric_named
from .selection import variants

_TEST = "test_"
_MOST_METRICS = 2
"""Most metrics whose scores are shown beside a configuration."""


@dataclass(frozen=True)
class LeadingColumns:
    """The columns of `runs` that are shown of each configuration of an experiment.

    Attributes:
        ranks: the column that ranks configurations.
        shown: all columns, in order.
        results: those of them that are compared with other methods and have intervals.
    """

    ranks: str
    shown: tuple[str, ...]
    results: tuple[str, ...]

    @property
    def ranks_by_test(self) -> bool:
        """Whether scores of test people rank, although there are scores of validation people."""
        return self.ranks.startswith(_TEST)

    @property
    def ranks_by_validation(self) -> bool:
        """Whether scores of validation people rank, and scores of test people are beside them."""
        return self.ranks not in self.results


def is_choice(experiment: Experiment) -> bool:
    """Return whether one of several configurations is chosen: of a grid over numbers, or of the trials of a search.

    Methods and named variants are compared, and none of them is chosen.
    """
    if experiment.is_search:
        return True
    of_variants = variants(experiment, experiment.number_axes).values()
    return any(len(cells) > 1 for cells in of_variants)


def names_of_tuned(experiments: Iterable[Experiment], known: Iterable[str] = ()) -> set[str]:
    """Return the names of the search spaces that tuning chose configurations of.

    Args:
        experiments: experiments, of which some may be of tuning.
        known: names that are known already.
    """
    names = set(known)
    for experiment in experiments:
        if experiment.is_tuning:
            names.add(experiment.name.rpartition(SELECTION)[0])
    return names


def what_was_tuned(name: str, spaces: Collection[str]) -> str:
    """Return the title of a tuning experiment: "er" for the tuning of a method, with its space if there are several.

    Args:
        name: name of the experiment, such as "my space_selection_er".
        spaces: names of all tuned search spaces that are shown beside it.
    """
    space, _, method = name.rpartition(SELECTION)
    method = method.removeprefix("_")
    if not space or not method:
        return name
    return method if set(spaces) <= {space} else f"{space}: {method}"


def with_leading_scores(experiments: Sequence[Experiment], tuned: Collection[str] = ()) -> list[Experiment]:
    """Return experiments that are shown together, judged by the scores that lead.

    After tuning, scores of test people lead: those of validation people may be the ones that tuning optimised. They
    also lead if no experiment has a configuration to choose. Otherwise configurations are ranked by scores of
    validation people, because the best of many test scores is partly luck.

    Args:
        experiments: the experiments of a launch or a page.
        tuned: names of the search spaces whose configurations tuning chose.
    """
    plain = [experiment for experiment in experiments if not (experiment.is_tuning or experiment.name in tuned)]
    one_is_chosen = any(map(is_choice, plain))
    judged = []
    for experiment in experiments:
        leads = experiment.name in tuned or not one_is_chosen
        tests = of_test_people(experiment) if leads and not experiment.is_tuning else ()
        judged.append(experiment.judged_by(tests))
    return judged


def of_test_people(experiment: Experiment) -> tuple[str, ...]:
    """Return the headline metrics of test people that the runs have; none if all metrics are of test people."""
    if experiment.on_test:
        return ()
    measured = experiment.measured
    return tuple(f"{_TEST}{name}" for name in experiment.headline if f"{_TEST}{name}" in measured)


def leading_columns(experiment: Experiment) -> LeadingColumns | None:
    """Return the columns to show of each configuration; None without a metric that has a direction.

    Where test scores lead, the validation score is beside them. Where validation scores rank, the test scores are
    beside them, because they are the result.
    """
    metrics = [name for name in experiment.headline if metric_named(name).better][:_MOST_METRICS]
    if not metrics:
        return None
    first = metrics[0]
    if first.startswith(_TEST):
        base = first.removeprefix(_TEST)
        beside = [base] if base in experiment.measured else []
        return LeadingColumns(first, (first, *beside, *metrics[1:]), tuple(metrics))
    tests = [] if experiment.chosen else [name for name in of_test_people(experiment) if name[len(_TEST) :] in metrics]
    if f"{_TEST}{first}" not in tests:
        return LeadingColumns(first, tuple(metrics), tuple(metrics))
    return LeadingColumns(first, (first, *tests), tuple(tests))


def heading(column: str, experiments: Sequence[Experiment]) -> str:
    """Return the heading of a column of scores: "test AUC", "validation AUC", "test forgetting".

    The measure of BWT and forgetting is named only if the experiments have several.
    """
    measures = {metric_named(experiment.headline[0]).measure for experiment in experiments}
    name = short_name(column, measures.pop() if len(measures) == 1 else None)
    on_test = {experiment.on_test for experiment in experiments}
    if metric_named(column).split != "validation" or len(on_test) > 1:
        return name
    return f"test {name}" if True in on_test else f"validation {name}"


def columns_in_words(columns: Iterable[str]) -> str:
    """Return the columns of `runs` behind headings, in their order: "forgetting" may be that of several measures."""
    return f"Columns of runs: {', '.join(columns)}"
