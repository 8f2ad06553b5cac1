"""One call a figure, for notebooks and scripts: `plot_heatmap(space, "results", "auc")`.

Each function reads the store, computes the record of a figure and draws it. Of a tuned space, the reported runs are
drawn; `plot_optimization_history` and `plot_slices` draw one of its searches. For figures of your own, use the
functions of `clops_sweep.analysis` that compute a record, or draw one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from clops_sweep.arguments import named_arguments
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError, listed, shown, warn_user
from clops_sweep.experiment.columns import FIELDS
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.experiment.spaces.where import Where
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State
from clops_sweep.search.records import StudyRecord
from clops_sweep.store.run_store import RunStore

from ..collect import Cell, Experiment
from ..drawing.pictures import Sketch
from ..editions import left_aside_in_words
from ..figures.asked import Asked
from ..figures.best_figure import draw_best
from ..figures.cost import COSTS, cost_frontier, draw_cost_frontier
from ..figures.heatmaps import draw_heatmap, heatmap
from ..figures.importance import draw_importance, importance
from ..figures.optimization_history import draw_optimization_history, optimization_history
from ..figures.profiles import draw_profile, profile
from ..figures.slices import draw_slices, slices
from ..figures.task_figures import MAX_PANELS, task_figures
from ..figures.task_titles import TaskTitles
from ..figures.variance import variance_by_source
from ..figures.variance_figure import draw_variance
from ..leading import what_was_tuned, with_leading_scores
from ..search_trials import collect_with_searches
from ..selection import cell_name, typical_cell
from ..tables.best import best_configurations
from .best_means import best_means

_MOST_OF_GRID = 6
"""Most configurations of a grid of numbers that figures by task draw; of more, typical ones."""

Space = SearchSpace | str | PathLike[str]
"""A search space, or the path of a search-space file."""


@named_arguments
def plot_heatmap(
    space: Space,
    results: str | PathLike[str] = "results",
    metric: str | None = None,
    *,
    axes: tuple[str, str] | None = None,
    name: str | None = None,
) -> Figure:
    """Draw the means of a metric over two axes, one panel for each variant of the other axes.

    Example::

        plot_heatmap("search_spaces/class_il_grid.py", "results", "auc").savefig("auc.pdf")

    Args:
        space: a search space, or the path of a search-space file.
        results: the store, a folder or a URI.
        metric: a numeric column of `runs`; by default the first headline metric.
        axes: rows and columns; by default the first two numeric axes.
        name: the search space to draw, of a file with several; of a tuned space, the reported runs are drawn.

    Raises:
        UsageError: the space, store, metric or an axis is unknown, or the space has no two numeric axes.
    """
    experiment = _opened(space, results, name).experiment
    return draw_heatmap(heatmap(experiment, metric or experiment.headline[0], axes))


@named_arguments
def plot_methods(
    space: Space,
    results: str | PathLike[str] = "results",
    metrics: Sequence[str] = (),
    *,
    name: str | None = None,
) -> Figure:
    """Draw the mean of each method with its 95 % interval, a panel for each metric, the best method first.

    It is the first figure of the report: of methods or named variants that are compared, all; of a grid over numbers or
    a search, the best configuration of each variant. Without an interval, single values are drawn. Intervals are over
    patient splits, or over seeds with one split, and unadjusted for several methods.

    Example::

        plot_methods("search_spaces/methods_uci_har.py", "results").savefig("methods.pdf")

    Args:
        space: a search space, or the path of a search-space file.
        results: the store, a folder or a URI.
        metrics: numeric columns of `runs`; the first ranks. By default those of the report's first table.
        name: the search space to draw, of a file with several; of a tuned space, the reported runs are drawn.

    Raises:
        UsageError: the space, store or a metric is unknown, folds and random splits are mixed, or no run has finished.
    """
    opened = _opened(space, results, name)
    given = [metrics] if isinstance(metrics, str) else list(metrics)
    if given:
        experiment = opened.experiment.judged_by(given)
    else:
        (experiment,) = with_leading_scores([opened.experiment], opened.tuned)
    best = best_configurations(experiment, compares=False)
    if not best:
        raise UsageError(f"search space {experiment.name!r} has no finished run with a score yet")
    more = sum(row.more for row in best)
    if more:
        warn_user(f"the figure shows the best {len(best)} of {len(best) + more} methods")
    return draw_best(best_means(best, max(len(given), 2)))


@named_arguments
def plot_metrics(
    space: Space,
    results: str | PathLike[str] = "results",
    metrics: Sequence[str] = (),
    *,
    axis: str | None = None,
    name: str | None = None,
) -> Figure:
    """Draw metrics along one axis, a line for each variant of the other axes.

    Means with one standard deviation over patient splits, or seeds; `write_report` shows intervals.

    Example::

        plot_metrics(space, "results", ["auc", "bwt"], axis="strategy")

    Args:
        space: a search space, or the path of a search-space file.
        results: the store, a folder or a URI.
        metrics: numeric columns of `runs`; by default the headline metrics.
        axis: the axis; by default the first one.
        name: the search space to draw, of a file with several; of a tuned space, the reported runs are drawn.

    Raises:
        UsageError: the space, store, a metric or the axis is unknown.
    """
    experiment = _opened(space, results, name).experiment
    return draw_profile(profile(experiment, axis, [metrics] if isinstance(metrics, str) else metrics))


@named_arguments
def plot_learning_curves(
    space: Space,
    results: str | PathLike[str] = "results",
    metric: str | None = None,
    *,
    where: str | None = None,
    name: str | None = None,
) -> Figure:
    """Draw a measure of every task after every epoch, a panel for each configuration.

    Lines are means over patient splits, after a mean over the seeds of each; over seeds if there is one split. Bands
    are one standard deviation (n - 1), from n = 3 on, within the limits of the measure. Curves are of validation
    people; of data without a validation set, of test people in runs with `curves="test"`.

    Of more than twelve configurations with finished runs, or six of a grid of numbers, one of each variant of the axes
    without numbers is drawn, the one closest to the paper's settings. A warning names those that are drawn.

    Example::

        plot_learning_curves(space, "results", "accuracy", where="storage_fraction == 0.5")

    Args:
        space: a search space, or the path of a search-space file.
        results: the store, a folder or a URI.
        metric: a metric of `runs` whose measure is drawn, such as "accuracy"; by default the first headline metric.
        where: a condition on axes and config fields that the drawn configurations meet.
        name: the search space to draw, of a file with several; of a tuned space, the reported runs are drawn.

    Raises:
        UsageError: the space, store or metric is unknown, the condition is invalid or no configuration meets it, or no
            finished run has recorded curves.
    """
    return _task_figure("curves", space, results, metric, where, name)


@named_arguments
def plot_r_matrices(
    space: Space,
    results: str | PathLike[str] = "results",
    metric: str | None = None,
    *,
    where: str | None = None,
    name: str | None = None,
) -> Figure:
    """Draw R, each task (columns) after training on each task (rows), a panel for each configuration.

    Example::

        plot_r_matrices(space, "results")

    The arguments and errors are those of `plot_learning_curves`.
    """
    return _task_figure("r", space, results, metric, where, name)


@named_arguments
def plot_forgetting(
    space: Space,
    results: str | PathLike[str] = "results",
    metric: str | None = None,
    *,
    where: str | None = None,
    name: str | None = None,
) -> Figure:
    """Draw each task right after it was learned and at the end of the run, a panel for each configuration.

    Example::

        plot_forgetting(space, "results")

    The arguments and errors are those of `plot_learning_curves`.
    """
    return _task_figure("forgetting", space, results, metric, where, name)


@named_arguments
def plot_cost_frontier(
    space: Space, results: str | PathLike[str] = "results", cost: str = "seconds", *, name: str | None = None
) -> Figure:
    """Draw the first headline metric of every configuration against its cost, with the Pareto front.

    Example::

        plot_cost_frontier(space, "results", "replayed")

    Args:
        space: a search space, or the path of a search-space file.
        results: the store, a folder or a URI.
        cost: "seconds" of a run, or "replayed" instances.
        name: the search space to draw, of a file with several; of a tuned space, the reported runs are drawn.

    Raises:
        UsageError: the space, store or cost is unknown, or no run has finished.
    """
    if cost not in COSTS:
        raise UsageError(f"cost = {shown(cost)}: not known; known: {listed(COSTS)}")
    return draw_cost_frontier(cost_frontier(_opened(space, results, name).experiment, cost))


@named_arguments
def plot_importance(
    space: Space, results: str | PathLike[str] = "results", metric: str | None = None, *, name: str | None = None
) -> Figure:
    """Draw the share of a metric's variance that depends on each axis.

    Example::

        plot_importance(space, "results", "auc")

    Args:
        space: a search space, or the path of a search-space file.
        results: the store, a folder or a URI.
        metric: a numeric column of `runs`; by default the first headline metric.
        name: the search space to draw, of a file with several; of a tuned space, the reported runs are drawn.

    Raises:
        UsageError: the space, store or metric is unknown, or too few configurations have finished.
    """
    experiment = _opened(space, results, name).experiment
    return draw_importance(importance(experiment, metric or experiment.headline[0]))


@named_arguments
def plot_variance(
    space: Space, results: str | PathLike[str] = "results", metric: str | None = None, *, name: str | None = None
) -> Figure:
    """Draw the variance components of a metric, and the power of the test over patient splits.

    Example::

        plot_variance("search_spaces/variance.py", "results")

    The arguments are those of `plot_importance`.

    Raises:
        UsageError: the space, store or metric is unknown, or its runs are not fully crossed over splits and seeds.
    """
    experiment = _opened(space, results, name).experiment
    return draw_variance(variance_by_source(experiment, metric or experiment.headline[0]))


@named_arguments
def plot_optimization_history(
    space: Space, results: str | PathLike[str] = "results", *, name: str | None = None
) -> Figure:
    """Draw the objectives of a search over its trials, and the best value so far.

    Example::

        plot_optimization_history("search_spaces/optuna_class_il.py", "results")

    Args:
        space: a search space, or the path of a search-space file.
        results: the store, a folder or a URI.
        name: the search to draw, of a file or a tuned space with several: its name, or the method that it tunes.

    Raises:
        UsageError: the space or store is unknown, it is no search, or no trial is complete.
    """
    return draw_optimization_history(optimization_history(_study(space, results, name)))


@named_arguments
def plot_slices(space: Space, results: str | PathLike[str] = "results", *, name: str | None = None) -> Figure:
    """Draw the objectives of a search over each parameter.

    Example::

        plot_slices("search_spaces/optuna_class_il.py", "results")

    The arguments are those of `plot_optimization_history`.

    Raises:
        UsageError: the space or store is unknown, it is no search, or fewer than two trials are complete.
    """
    return draw_slices(slices(_study(space, results, name)))


@dataclass(frozen=True)
class _Opened:
    """One search space with its runs."""

    experiment: Experiment
    store: RunStore
    data: PreparedData
    tuned: frozenset[str] = frozenset()


def _read(
    space: Space, results: str | PathLike[str], name: str | None, *, with_methods: bool = False
) -> tuple[State, list[tuple[Experiment, StudyRecord | None]]]:
    """Return the state of search spaces, and their experiments with the study of each search.

    With `with_methods`, the name may be that of a method of a tuned space.

    Raises:
        UsageError: no search space has the name.
    """
    store = RunStore.named(str(results))
    store.files.check_is_there()
    state = State.of(Request(Selection.of(space), PreparedData.found(), store))
    present = state.resolved.edition
    experiments = collect_with_searches(state.resolved.selection.spaces, store, present=present)
    names = [tuned.space.name for tuned in state.tuned]
    names += [experiment.name for experiment, _ in experiments]
    if with_methods:
        for tuned in state.tuned:
            names += [what_was_tuned(phase.name, {tuned.space.name}) for phase in tuned.space.phases]
    if name is not None and name not in names:
        raise UsageError(f"name = {shown(name)}: no such search space; there are {', '.join(dict.fromkeys(names))}")
    return state, experiments


def _searches_of(name: str, state: State) -> list[str]:
    """Return the names of the searches of a tuned space, or the name of another space itself."""
    for tuned in state.tuned:
        if tuned.space.name == name:
            return [phase.name for phase in tuned.space.phases]
    return [name]


def _several_names(names: Iterable[str]) -> UsageError:
    """Return the error about a figure of several search spaces, with all names: one of them is wanted."""
    return UsageError(f"name: expected one of {', '.join(names)}; a figure shows one")


def _opened(space: Space, results: str | PathLike[str], name: str | None) -> _Opened:
    """Return the experiment of a search space, or the one with a name; of a tuned space, that of its reported runs."""
    state, experiments = _read(space, results, name)
    by_name = {experiment.name: experiment for experiment, _ in experiments}
    if name is None:
        tuning = {phase.name for tuned in state.tuned for phase in tuned.space.phases}
        undecided = [tuned.space.name for tuned in state.tuned if tuned.reported is None]
        names = [*(known for known in by_name if known not in tuning), *undecided]
        if len(names) > 1:
            raise _several_names(names)
        (name,) = names
    if name not in by_name:  # a tuned space without a choice
        searches = _searches_of(name, state)
        raise UsageError(
            f"{name!r} has no reported runs, because its tuning has not chosen yet; name= draws the trials of a "
            f"search: {', '.join(searches)}"
        )
    experiment = by_name[name]
    for phrase, _ in left_aside_in_words(experiment.left_aside):
        warn_user(f"not shown and not included in any mean: {phrase}")
    tuned = frozenset(reported.name for method in state.tuned if (reported := method.reported) is not None)
    return _Opened(experiment, state.asked.store, state.resolved.data, tuned)


def _study(space: Space, results: str | PathLike[str], name: str | None) -> StudyRecord:
    """Return the study of a search, or of the only search of a tuned space."""
    state, experiments = _read(space, results, name, with_methods=True)
    for tuned in state.tuned:
        for phase in tuned.space.phases:
            if what_was_tuned(phase.name, {tuned.space.name}) == name:
                name = phase.name
    studies = {experiment.name: study for experiment, study in experiments if experiment.is_search}
    names = list(studies)
    if name is not None:
        names = _searches_of(name, state)
    if len(names) > 1:
        raise _several_names(names)
    study = studies.get(names[0]) if names else None
    if study is None:
        subject = name or (names or [experiments[0][0].name])[0]
        raise UsageError(f"{subject!r} has no trial of a search: expected a search that has begun")
    return study


def _task_figure(
    kind: str, space: Space, results: str | PathLike[str], metric: str | None, where: str | None, name: str | None
) -> Figure:
    """Return a figure of `task_figures` by the end of its name."""
    opened = _opened(space, results, name)
    experiment = opened.experiment.judged_by([] if metric is None else [metric])
    frames = opened.data.of_prepared(dict.fromkeys(cell.config.data_key for cell in experiment.cells))
    cells = _cells_to_draw(experiment, where)
    sketches = task_figures(Asked(experiment, opened.store, "plot", TaskTitles(frames), cells=cells))
    return _drawn(sketches, f"plot-{kind}", experiment)


def _cells_to_draw(experiment: Experiment, where: str | None) -> list[int]:
    """Return the cells with finished runs that meet a condition; of more than fit, typical ones, with a warning."""
    cells = np.flatnonzero(experiment.counts("finished")).tolist()
    if where is not None and cells:
        holds = Where(where, [*experiment.axes, *FIELDS, *OPTIONS])
        cells = [cell for cell in cells if holds(_Values(experiment.cells[cell]))]
        if not cells:
            raise UsageError(
                f"where = {shown(where)}: no configuration of {experiment.name!r} with a finished run meets it"
            )
    if len(cells) <= (_MOST_OF_GRID if experiment.number_axes else MAX_PANELS):
        return cells
    typical = _typical(experiment, cells)
    drawn = typical[:MAX_PANELS]
    which = "the first" if len(typical) == len(cells) else "those closest to the paper's settings"
    names = "; ".join(cell_name(experiment.cells[cell]) for cell in drawn)
    axis = (*experiment.number_axes, *experiment.axes)[0]
    example = f"{axis} == {experiment.cells[drawn[0]].labels[axis]!r}"
    warn_user(
        f"the figure shows {len(drawn)} of {len(cells)} configurations, {which} "
        f"({names}); where= chooses others, such as where={example!r}"
    )
    return drawn


def _typical(experiment: Experiment, cells: Sequence[int]) -> list[int]:
    """Return the cell closest to the paper's settings of each variant of the axes without numbers."""
    variants: dict[str, list[int]] = {}
    for cell in cells:
        variants.setdefault(cell_name(experiment.cells[cell], experiment.number_axes), []).append(cell)
    typical = [typical_cell(experiment, of_variant) for of_variant in variants.values()]
    return [cell for cell in typical if cell is not None]


@dataclass(frozen=True)
class _Values:
    """The labels of a configuration on its axes, and the values of its config."""

    cell: Cell

    def get(self, name: str) -> Any:
        """Return the label on an axis, else the value of a config field."""
        return self.cell.labels[name] if name in self.cell.labels else self.cell.config.get(name)


def _drawn(sketches: Iterable[Sketch], wanted: str, experiment: Experiment) -> Figure:
    for item in sketches:
        if item.name == wanted:
            return item.draw(item.record)
    raise UsageError(f"{experiment.name!r}: no finished run has recorded what this figure shows")
