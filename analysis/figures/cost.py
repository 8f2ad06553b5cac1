"""Cost of a gain: the headline measure against seconds per run or instances replayed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from clops_sweep.errors import UsageError

from ..collect import Experiment
from ..drawing.labels import inches, legend_columns, shortened
from ..drawing.style import GRID, colour, new_figure, styled
from ..drawing.svg import tell_points
from ..drawing.values_in_words import NamedValues
from ..metrics import Metric, metric_named
from ..selection import cell_name, chosen_how, competing_cells, data_of, variants

Floats = npt.NDArray[np.float64]
COSTS = {"seconds": "seconds per run", "replayed": "instances replayed per run"}


MOST_NAMES = 12
"""Most variants in a legend; with more, only the frontier is named."""


@dataclass(frozen=True)
class CostFrontier:
    """Configurations by cost and value. `on_frontier`: no other one of its data set and scenario dominates it.

    All entries belong to configurations with a finished run; `group` is the index in `groups`, and `data` that of data
    set and scenario. Configurations that lack runs are not `on_frontier` beside complete ones (`competing_cells`).
    """

    cost_name: str
    metric: Metric
    names: tuple[str, ...]
    short_names: tuple[str, ...]
    cost: Floats
    value: Floats
    group: npt.NDArray[np.int64]
    groups: tuple[str, ...]
    on_frontier: npt.NDArray[np.bool_]
    data: npt.NDArray[np.int64]

    @property
    def named_values(self) -> NamedValues:
        """The value of each configuration on the frontier, with its cost."""
        values = []
        for i in np.flatnonzero(self.on_frontier).tolist():
            values.append((f"{self.names[i]} at {self.cost[i]:.3g}", float(self.value[i])))
        return NamedValues(f"{self.metric.plain} on the frontier", values, self.metric.better)


def cost_frontier(experiment: Experiment, cost: str = "seconds") -> CostFrontier:
    """Return the mean headline measure and the mean cost of every configuration.

    Args:
        experiment: the experiment.
        cost: "seconds" or "replayed", columns of the table `runs`.

    Raises:
        UsageError: an unknown cost, or no finished run has it.
    """
    if cost not in COSTS:
        raise UsageError(f"cost {cost!r}: expected one of {', '.join(COSTS)}")
    metric = metric_named(experiment.measure)
    quality = experiment.by_split(metric.column)
    costs_by_split = experiment.by_split(cost)
    cells: list[int] = []
    mean_costs: list[float] = []
    mean_values: list[float] = []
    for cell in range(len(experiment.cells)):
        has_value = np.isfinite(quality[cell])
        has_cost = np.isfinite(costs_by_split[cell])
        known_costs = costs_by_split[cell][has_value & has_cost]
        if has_value.any() and known_costs.size:
            cells.append(cell)
            mean_costs.append(float(known_costs.mean()))
            mean_values.append(float(quality[cell][has_value].mean()))
    if not cells:
        raise UsageError(f"search space {experiment.name!r} has no finished run with its {COSTS[cost]}")
    scales = experiment.number_axes
    groups = variants(experiment, scales)
    group_of: dict[int, int] = {}
    for position, members in enumerate(groups.values()):
        group_of |= dict.fromkeys(members, position)
    names = [cell_name(experiment.cells[cell]) for cell in cells]
    choices = [chosen_how(experiment, cell, scales) for cell in cells]
    costs, values = np.array(mean_costs), np.array(mean_values)
    number_of: dict[tuple[str, str], int] = {}
    data = np.array(
        [number_of.setdefault(data_of(experiment.cells[cell]), len(number_of)) for cell in cells], dtype=np.int64
    )
    competes = np.isin(cells, competing_cells(experiment, metric.column))
    on_frontier = np.zeros(len(cells), dtype=bool)
    for number in number_of.values():
        there = np.flatnonzero((data == number) & competes)
        on_frontier[there] = frontier(costs[there], values[there])
    return CostFrontier(
        cost_name=cost,
        metric=metric,
        names=tuple(name or experiment.name for name in names),
        short_names=tuple(choice or name for choice, name in zip(choices, names, strict=True)),
        cost=costs,
        value=values,
        group=np.array([group_of[cell] for cell in cells], dtype=np.int64),
        groups=tuple(name or experiment.name for name in groups),
        on_frontier=on_frontier,
        data=data,
    )


def frontier(cost: Floats, value: Floats) -> npt.NDArray[np.bool_]:
    """Return which points no other point dominates: lower cost and higher value are better."""
    order = np.lexsort((-value, cost))
    on_frontier = np.zeros(cost.size, dtype=bool)
    best = -np.inf
    last_cost = np.nan
    for i in order:
        is_equal = value[i] == best and cost[i] == last_cost
        if value[i] > best or is_equal:
            on_frontier[i] = True
            best = value[i]
            last_cost = cost[i]
    return on_frontier


@styled
def draw_cost_frontier(record: CostFrontier) -> Figure:
    """Draw a dot per configuration, and the frontier as a step line with numbered configurations, named below."""
    order = _along_frontier(record)
    named = [f"{number}  {record.names[i]}" for number, i in enumerate(order, 1)]
    longest = max((inches(name, 7.5) for name in named), default=0.0)
    columns = 2 if len(named) > 4 and longest < 3.0 else 1
    named = [shortened(name, 6.4 / columns, 7.5) for name in named]
    lines = -(-len(named) // columns)
    figure = new_figure(6.8, 3.8 + 0.165 * (lines + 1))
    axes = figure.subplots()
    axes.grid(color=GRID, lw=0.6)
    markers = "osD^vP*X"
    for position, name in enumerate(record.groups):
        mine = record.group == position
        axes.plot(
            record.cost[mine], record.value[mine], markers[position % len(markers)], ms=5, mew=0, alpha=0.75,
            color=colour(position), label=shortened(name, 6.0, 8.5), clip_on=False,
        )  # fmt: skip
    in_words = []
    for name, value, cost in zip(record.names, record.value.tolist(), record.cost.tolist(), strict=True):
        in_words.append(f"{name}: {_quantity(record)} {value:.3f} at {cost_text(cost)} {COSTS[record.cost_name]}")
    tell_points(axes, record.cost, record.value, in_words)
    for number in np.unique(record.data).tolist():
        of_data = [i for i in order if record.data[i] == number]
        axes.step(record.cost[of_data], record.value[of_data], where="post", color="black", lw=1.0, zorder=1)
    height = float(np.ptp(record.value)) or 0.01
    width = float(np.ptp(record.cost)) or float(record.cost.max()) or 1.0
    lowest, highest = float(record.value.min()), float(record.value.max())
    axes.set_ylim(lowest - 0.06 * height, highest + 0.12 * height)
    cheapest, dearest = float(record.cost.min()), float(record.cost.max())
    axes.set_xlim(max(cheapest - 0.08 * width, 0.0), dearest + 0.05 * width)  # costs are not negative
    # The space above and left of the frontier is empty: its numbers go there.
    for numbers, i in _numbers_apart(record, order, 0.035 * width, 0.05 * height):
        at_edge = record.cost[i] - axes.get_xlim()[0] < 0.04 * width  # the number would overlap the axis
        text = axes.annotate(
            numbers, (float(record.cost[i]), float(record.value[i])), xytext=(4 if at_edge else -3, 4),
            textcoords="offset points", ha="left" if at_edge else "right", fontsize=8, fontweight="bold",
        )  # fmt: skip
        text.set_path_effects([withStroke(linewidth=2.5, foreground="white")])
    axes.set(xlabel=COSTS[record.cost_name], ylabel=_quantity(record))
    if 1 < len(record.groups) <= MOST_NAMES:
        figure.legend(loc="outside upper left", ncols=legend_columns(record.groups, 6.4))
    figure.legend(
        [Line2D([], [], ls="none")] * len(named), named, loc="outside lower left", ncols=columns, handlelength=0,
        handletextpad=0, fontsize=7.5, title="on the Pareto front", title_fontsize=7.5, alignment="left",
        labelspacing=0.25,
    )  # fmt: skip
    return figure


def _quantity(record: CostFrontier) -> str:
    return record.metric.plain


def cost_text(cost: float) -> str:
    """Format a cost with at least three digits: 0.0421, 3.58, 1,240."""
    return f"{cost:,.0f}" if cost >= 100 or cost == 0 else f"{cost:.3g}"


def _along_frontier(record: CostFrontier) -> list[int]:
    """Return the configurations on the frontier by increasing cost."""
    return [int(i) for i in np.argsort(record.cost, kind="stable") if record.on_frontier[i]]


def _numbers_apart(record: CostFrontier, order: list[int], x: float, y: float) -> list[tuple[str, int]]:
    """Return labels and their configurations: "4", or "4-6" for neighbours closer than x and y to the first."""
    groups: list[list[int]] = []  # of numbers, from 1
    for number, i in enumerate(order, 1):
        first = order[groups[-1][0] - 1] if groups else i
        is_near = record.cost[i] - record.cost[first] < x and record.value[i] - record.value[first] < y
        if groups and is_near:
            groups[-1].append(number)
        else:
            groups.append([number])
    labels = []
    for group in groups:
        label = f"{group[0]}" if len(group) == 1 else f"{group[0]}-{group[-1]}"
        labels.append((label, order[group[0] - 1]))
    return labels
