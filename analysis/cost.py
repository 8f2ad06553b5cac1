"""What a gain in AUC costs: mean AUC against seconds of a run, or against the number of instances replayed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from analysis.collect import Experiment
from analysis.selection import cell_name, chosen_how, variants
from analysis.style import GRID, colour, new_figure, styled
from clops_sweep.errors import BadInput

Floats = npt.NDArray[np.float64]
COSTS = {"seconds": "seconds per run", "replayed": "instances replayed per run"}


MOST_NAMES = 12
"""Variants up to which a legend names them; of more, the frontier's names have to do."""


@dataclass(frozen=True)
class CostFrontier:
    """Configurations by cost and AUC. `on_frontier`: no other is at least as good and as cheap, and one of both more.

    All entries belong to configurations with a finished run; `group` is the position in `groups`.
    """

    cost_name: str
    names: tuple[str, ...]
    short_names: tuple[str, ...]
    cost: Floats
    auc: Floats
    group: npt.NDArray[np.int64]
    groups: tuple[str, ...]
    on_frontier: npt.NDArray[np.bool_]


def cost_frontier(experiment: Experiment, cost: str = "seconds") -> CostFrontier:
    """Mean AUC against mean cost of every configuration.

    Args:
        experiment: what was asked for and what there is.
        cost: "seconds" or "replayed", columns of the table `runs`.

    Raises:
        BadInput: an unknown cost, or no finished run that has it.
    """
    if cost not in COSTS:
        raise BadInput(f"cost {cost!r}: expected one of {', '.join(COSTS)}")
    auc = experiment.by_replicate("auc")
    costs_of = experiment.by_replicate(cost)
    points = []
    for cell in range(len(experiment.cells)):
        known = np.isfinite(auc[cell])
        values = costs_of[cell][known & np.isfinite(costs_of[cell])]
        if known.any() and values.size:
            points.append((cell, float(values.mean()), float(auc[cell][known].mean())))
    if not points:
        raise BadInput(f"search space {experiment.name!r} has no finished run with its {COSTS[cost]}")
    scales = experiment.number_axes
    groups = variants(experiment, scales)
    group_of = {cell: position for position, cells in enumerate(groups.values()) for cell in cells}
    costs, aucs = np.array([p[1] for p in points]), np.array([p[2] for p in points])
    return CostFrontier(
        cost,
        tuple(cell_name(experiment.cells[cell]) or experiment.name for cell, _, _ in points),
        tuple(chosen_how(experiment, cell, scales) or cell_name(experiment.cells[cell]) for cell, _, _ in points),
        costs,
        aucs,
        np.array([group_of[cell] for cell, _, _ in points], dtype=np.int64),
        tuple(name or experiment.name for name in groups),
        frontier(costs, aucs),
    )


def frontier(cost: Floats, value: Floats) -> npt.NDArray[np.bool_]:
    """Which points no other point dominates: lower cost and higher value are better."""
    order = np.lexsort((-value, cost))
    best, kept = -np.inf, np.zeros(cost.size, dtype=bool)
    last_cost = np.nan
    for i in order:
        equal = value[i] == best and cost[i] == last_cost
        if value[i] > best or equal:
            kept[i], best, last_cost = True, value[i], cost[i]
    return kept


@styled
def draw_cost_frontier(record: CostFrontier) -> Figure:
    """A dot per configuration; the frontier as a step line, its configurations named."""
    figure = new_figure(6.8, 4.0)
    axes = figure.subplots()
    axes.grid(color=GRID, lw=0.6)
    markers = "osD^vP*X"
    for position, name in enumerate(record.groups):
        mine = record.group == position
        axes.plot(
            record.cost[mine], record.auc[mine], markers[position % len(markers)], ms=5, mew=0, alpha=0.75,
            color=colour(position), label=name,
        )  # fmt: skip
    order = [i for i in np.argsort(record.cost, kind="stable") if record.on_frontier[i]]
    axes.step(record.cost[order], record.auc[order], where="post", color="black", lw=1.0, zorder=1)
    height = float(np.ptp(record.auc)) or 0.01
    width = float(np.ptp(record.cost)) or 1.0
    # Nothing lies above and to the left of the frontier, so that is where its names stand.
    named: list[int] = []
    for i in reversed(order):
        beside = [j for j in named if abs(record.auc[i] - record.auc[j]) < 0.045 * height]
        if any(abs(record.cost[i] - record.cost[j]) < 0.25 * width for j in beside):
            continue
        named.append(int(i))
        place = (float(record.cost[i]), float(record.auc[i]))
        text = axes.annotate(
            record.short_names[i], place, xytext=(-4, 3), textcoords="offset points", ha="right", fontsize=7.5
        )
        text.set_path_effects([withStroke(linewidth=2.5, foreground="white")])
    axes.set_ylim(float(record.auc.min()) - 0.06 * height, float(record.auc.max()) + 0.12 * height)
    axes.set_xlim(float(record.cost.min()) - 0.22 * width, float(record.cost.max()) + 0.05 * width)
    axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= float(record.cost.max()) + 0.05 * width])
    axes.set(xlabel=COSTS[record.cost_name], ylabel="average AUC")
    if 1 < len(record.groups) <= MOST_NAMES:
        longest = max(map(len, record.groups))
        figure.legend(loc="outside upper left", ncols=max(1, min(len(record.groups), 4, 64 // (longest + 4))))
    return figure


def describe_cost_frontier(record: CostFrontier) -> str:
    """The figure in words: the configurations on the frontier."""
    order = [i for i in np.argsort(record.cost, kind="stable") if record.on_frontier[i]]
    parts = [f"{record.names[i]}: AUC {record.auc[i]:.3f} at {record.cost[i]:,.0f}" for i in order]
    return f"Average AUC against {COSTS[record.cost_name]}. Not bettered at their cost: {'; '.join(parts)}."
