"""Trajectories of beta: the task-instance parameters of some instances while their task is trained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from clops_sweep.errors import UsageError

from ...drawing.labels import in_lines
from ...drawing.style import new_figure, panels, styled
from ...drawing.task_styles import task_styles

LOWEST, MIDDLE, HIGHEST = "dashed", "dotted", "solid"
"""Line styles of instances by their s."""


@dataclass(frozen=True)
class TaskTrajectories:
    """Recorded trajectories of one task, sorted by s: `beta` [instances, epochs] and `s` [instances]."""

    task: str
    instances: tuple[int, ...]
    s: npt.NDArray[np.float64]
    beta: npt.NDArray[np.float64]


def beta_trajectories(instances: pd.DataFrame) -> tuple[TaskTrajectories, ...]:
    """Return the recorded trajectories of a run, by task in training order.

    Args:
        instances: rows of the table `instances` of one run; `beta_trajectory` is set for a few of them.

    Raises:
        UsageError: the run has no trajectories, as it learns no beta or is of an earlier version.
    """
    known = instances[instances["beta_trajectory"].notna()].sort_values(["s", "instance"], kind="stable")
    if known.empty:
        raise UsageError("trajectories: this run has recorded none")
    records = []
    for task in dict.fromkeys(instances["task"]):
        rows = known[known["task"] == task]
        if len(rows):
            beta = np.stack([np.asarray(values, dtype=float) for values in rows["beta_trajectory"]])
            s = rows["s"].to_numpy(dtype=float)
            records.append(TaskTrajectories(str(task), tuple(int(i) for i in rows["instance"]), s, beta))
    return tuple(records)


@styled
def draw_trajectories(records: tuple[TaskTrajectories, ...]) -> Figure:
    """Draw one panel per task on one scale: lowest s dashed, highest solid, the middle one dotted, with a legend."""
    columns = min(3, len(records))
    rows = -(-len(records) // columns)
    figure = new_figure(max(2.5 * columns, 4.6), 2.0 * rows + 0.6)
    grid = panels(figure, rows, columns, len(records), sharex=True, sharey=True)
    styles = task_styles(record.task for record in records)
    for axes, record in zip(grid.flat, records, strict=False):
        middle = np.median(record.s)
        for s, beta in zip(record.s, record.beta, strict=True):
            line = MIDDLE if s == middle else (LOWEST if s < middle else HIGHEST)
            marker = "o" if beta.size == 1 else None
            tint = styles[record.task].colour
            axes.plot(np.arange(1, beta.size + 1), beta, ls=line, marker=marker, ms=3, color=tint, lw=1.2)
        axes.axhline(1, color="0.6", lw=0.6, zorder=0)
        axes.set_title(in_lines(f"task {record.task}", 2.1, 9.5, 2, bold=True), loc="left")
        axes.ticklabel_format(axis="y", useOffset=False)
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    for axes in grid[-1]:
        axes.set_xlabel("epoch on the task")
    for axes in grid[:, 0]:
        axes.set_ylabel("beta")
    keys = [
        Line2D([], [], color="#333333", ls=line, lw=1.2, label=label)
        for line, label in ((HIGHEST, "highest s"), (MIDDLE, "middle s"), (LOWEST, "lowest s"))
    ]
    figure.legend(handles=keys, loc="outside upper left", ncols=3, handlelength=2.8)
    return figure
