"""Figures of a whole sweep: cost of AUC, importance of axes, sources of variance."""

from __future__ import annotations

import numpy as np

from ..collect import Experiment
from ..drawing.pictures import Sketch, sketch
from ..metrics import Metric
from ..selection import competing_cells
from .asked import Asked, shown_or_said
from .cost import COSTS, cost_frontier, draw_cost_frontier
from .importance import draw_importance, importance, in_words
from .variance import variance_by_source
from .variance_figure import draw_variance, needed_in_words


def sweep_figures(asked: Asked) -> list[Sketch | str]:
    """Return cost frontiers, importance of axes and sources of variance, for experiments with several configurations.

    Returns:
        Figures, and sentences for figures that cannot be shown.
    """
    experiment, prefix = asked.experiment, asked.prefix
    finished = [cell for cell, n in enumerate(experiment.counts("finished")) if n]
    if len(finished) < 3:
        return []
    items = shown_or_said(lambda: _frontier(experiment, "seconds", prefix))
    if np.nansum(experiment.by_replicate("replayed")):
        items += shown_or_said(lambda: _frontier(experiment, "replayed", prefix))
    if sum(len(labels) > 1 for labels in experiment.axes.values()) > 1:
        items += shown_or_said(lambda: _importance(experiment, prefix))
    if "weight_seed" in experiment.axes:
        items += shown_or_said(lambda: _variance(experiment, prefix))
    return items


def _frontier(experiment: Experiment, cost: str, prefix: str) -> Sketch:
    record = cost_frontier(experiment, cost)
    of = record.metric.plain
    caption = (
        f"Mean {of} of every configuration against {COSTS[cost]}. The numbered line joins the Pareto front: no other "
        "configuration is better at the same or a lower cost."
    )
    if len(np.unique(record.data)) > 1:
        caption += " Each data set and scenario has a front of its own."
    if len(competing_cells(experiment, record.metric.column)) < len(record.names):
        caption += " Configurations without all of their runs are not on the front."
    title = f"{of} against {COSTS[cost]}"
    named = _names_split(record.metric)
    return sketch(draw_cost_frontier, record, f"{prefix}-cost-{cost}", title, caption, states_split=named)


def _importance(experiment: Experiment, prefix: str) -> Sketch:
    record = importance(experiment, experiment.headline[0])
    caption = (
        "Share of the variance that depends on an axis, alone or with others (total effect): half the permutation "
        f"importance in a random forest over {in_words(record)}, on held-out replicates. Error bars (with three or "
        "more): one standard deviation over replicates. An estimate below 0 has no bar. "
        f"All axes together explain {record.r2:.0%} of the variance within a replicate."
    )
    return sketch(draw_importance, record, f"{prefix}-importance", "Importance of the axes", caption)


def _variance(experiment: Experiment, prefix: str) -> Sketch:
    record = variance_by_source(experiment, experiment.headline[0])
    sizes = ", ".join(f"{size} of {name}" for name, size in record.sizes.items())
    caption = (
        f"Left: square roots of variance components of {record.metric.plain} ({record.runs} runs: {sizes}, fully "
        "crossed), from an analysis of variance. An interaction counts as its last factor; interactions with the "
        "method are separate. Right: the power of the corrected t-test over patient splits to distinguish two "
        "methods. "
        f"{needed_in_words(record)}"
    )
    named = _names_split(record.metric)
    return sketch(draw_variance, record, f"{prefix}-variance", "Sources of variance", caption, states_split=named)


def _names_split(metric: Metric) -> bool:
    """Return whether the name of a metric says on whose data it is computed, as in "prequential AUC"."""
    return metric.split == "stream"
