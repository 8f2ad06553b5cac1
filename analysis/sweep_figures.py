"""Pictures of a sweep as a whole: what AUC costs, and which axes matter."""

from __future__ import annotations

from analysis.collect import Experiment
from analysis.cost import COSTS, cost_frontier, describe_cost_frontier, draw_cost_frontier
from analysis.importance import describe_importance, draw_importance, importance
from analysis.instance_figures import shown_or_said
from analysis.page import Picture, picture
from clops_sweep.store import RunStore

MAX_REPLAY_CELLS = 120
"""Above this many configurations, replayed instances are not counted: it takes one table of instances for each."""


def sweep_figures(experiment: Experiment, store: RunStore, prefix: str) -> list[Picture | str]:
    """Cost frontiers and importance of axes, for experiments with several finished configurations.

    Returns:
        Pictures, and sentences for those that cannot be shown.
    """
    finished = [cell for cell, n in enumerate(experiment.counts("finished")) if n]
    if len(finished) < 3:
        return []
    items = shown_or_said(lambda: _frontier(experiment, "seconds", {}, prefix))
    if len(finished) <= MAX_REPLAY_CELLS:
        replayed = replayed_instances(experiment, store, finished)
        if any(replayed.values()):
            items += shown_or_said(lambda: _frontier(experiment, "replayed", replayed, prefix))
    if sum(len(labels) > 1 for labels in experiment.axes.values()) > 1:
        items += shown_or_said(lambda: _importance(experiment, prefix))
    return items


def replayed_instances(experiment: Experiment, store: RunStore, cells: list[int]) -> dict[int, float]:
    """How many instances the first finished run of each cell replayed, each as often as it was.

    The number follows from the configuration and the sizes of the tasks, so one run per cell is enough.
    """
    run_ids = {experiment.run_ids(cell)[0]: cell for cell in cells}
    rows = store.read("instances", list(run_ids))
    totals = rows.groupby("run_id")["times_replayed"].sum()
    return {run_ids[str(run_id)]: float(total) for run_id, total in totals.items()}


def _frontier(experiment: Experiment, cost: str, replayed: dict[int, float], prefix: str) -> Picture:
    record = cost_frontier(experiment, cost, replayed)
    caption = (
        f"Mean average AUC of every configuration against {COSTS[cost]}. The line joins those that no other betters at "
        "their cost."
    )
    figure, alt = draw_cost_frontier(record), describe_cost_frontier(record)
    return picture(figure, f"{prefix}-cost-{cost}", f"AUC against {COSTS[cost]}", caption, alt)


def _importance(experiment: Experiment, prefix: str) -> Picture:
    record = importance(experiment)
    caption = (
        "Share of the variance that goes with an axis, alone or together with others (total effect): half of what a "
        f"random forest over {record.n} runs loses when the axis is shuffled, on replicates that it was not fitted to; "
        f"error bars: one standard deviation over replicates. All axes together explain {record.r2:.0%}."
    )
    figure = draw_importance(record)
    return picture(figure, f"{prefix}-importance", "Importance of the axes", caption, describe_importance(record))
