"""Figures of difficulty: distributions of s with fitted Gaussians, and task similarity with the curriculum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from ...difficulty import TaskGaussians, TaskSimilarity, fit_gaussians
from ...drawing.cells import add_colour_bar, draw_cells, frame_cell, write_in_cell
from ...drawing.labels import in_lines, inches, name_columns, name_rows
from ...drawing.style import MUTED, SEQUENTIAL, decimals, new_figure, styled
from ...drawing.task_styles import task_styles
from ...drawing.values_in_words import NamedValues

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Distributions:
    """Histograms of s per task of one run, as densities on common bins, and the fitted Gaussians.

    `density` has shape (tasks, bins), `edges` has bins + 1 entries.
    """

    gaussians: TaskGaussians
    edges: Floats
    density: Floats

    @property
    def named_values(self) -> NamedValues:
        """The mean s of each task."""
        means = [fit.mean for fit in self.gaussians.fits]
        return NamedValues("Mean s", list(zip(self.gaussians.tasks, means, strict=True)))


def distributions(instances: pd.DataFrame) -> Distributions:
    """Return histograms and Gaussians of one run's s.

    The bin width follows Scott's rule for the task with the most instances, with 15 to 80 bins.

    Raises:
        ValueError: no instance has an s.
    """
    gaussians = fit_gaussians(instances)
    known = instances[instances["s"].notna()]
    values = [known.loc[known["task"] == task, "s"].to_numpy(dtype=float) for task in gaussians.tasks]
    every = np.concatenate(values)
    low, high = float(every.min()), float(every.max())
    if high == low:
        low, high = low - 0.5, high + 0.5
    largest = max(values, key=len)
    width = 3.49 * float(largest.std()) / len(largest) ** (1 / 3)
    bins = int(np.clip((high - low) / width if width > 0 else 15, 15, 80))
    edges = np.linspace(low, high, bins + 1)
    density = np.array([np.histogram(v, edges, density=True)[0] for v in values])
    return Distributions(gaussians, edges, density)


@styled
def draw_distributions(record: Distributions) -> Figure:
    """Draw one row per task on a common axis, each to its own height: histogram, Gaussian and a tick at its mean."""
    tasks = record.gaussians.tasks
    longest = min(max(inches(task, 9) for task in tasks), 1.9)
    figure = new_figure(6.6 + max(longest - 0.6, 0), 0.62 * len(tasks) + 0.75)
    grid = figure.subplots(len(tasks), 1, squeeze=False, sharex=True)[:, 0]
    x = np.linspace(record.edges[0], record.edges[-1], 300)
    styles = task_styles(tasks)
    for position, axes in enumerate(grid):
        fit = record.gaussians.fits[position]
        mean, sd = fit.mean, fit.standard_deviation
        tint = styles[tasks[position]].colour
        axes.stairs(record.density[position], record.edges, fill=True, color=tint, alpha=0.35, lw=0)
        if sd > 0:
            axes.plot(x, np.exp(-(((x - mean) / sd) ** 2) / 2) / (sd * np.sqrt(2 * np.pi)), color=tint, lw=1.6)
        axes.axvline(mean, ymax=0.12, color="black", lw=1.4)
        places = decimals(sd)
        text = f"{mean:.{places}f} ± {sd:.{places}f}, {record.gaussians.n[position]:,} instances"
        side = "right" if mean < (record.edges[0] + record.edges[-1]) / 2 else "left"  # where the density is low
        axes.set_title(text, loc=side, fontsize=7.5, fontweight="normal", color=MUTED, pad=-6, y=1.0)
        name = in_lines(tasks[position], 1.9, 9, 3)
        axes.set_ylabel(name, rotation=0, ha="right", va="center", labelpad=8)
        peak = max(float(record.density[position].max()), 0.4 / sd if sd > 0 else 0.0)
        axes.set(yticks=[], ylim=(0, 1.2 * peak), xlim=(record.edges[0], record.edges[-1]))
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="x", length=3 if position == len(tasks) - 1 else 0)
    grid[-1].set_xlabel("s, area under beta over the epochs of the task: harder to the left, easier to the right")
    figure.supylabel("task", fontsize=9)
    return figure


@styled
def draw_similarity(record: TaskSimilarity) -> Figure:
    """Draw the matrix in curriculum order, so that the chain runs next to the diagonal."""
    n = len(record.tasks)
    order = list(record.curriculum)
    names = [record.tasks[task] for task in order]
    size = max(0.6 * n, 2.2)
    longest = min(max(inches(name, 8.5) for name in names), 2.2)
    figure = new_figure(size + 2.4 + max(longest, 0.5), size + 0.6 + (longest if longest > 0.5 else 0.2))
    axes = figure.subplots()
    ordered, scale = record.matrix[np.ix_(order, order)], Normalize(0, 1)
    texts = {at: f"{names[at[0]]} and {names[at[1]]}: {value:.2f}" for at, value in np.ndenumerate(ordered)}
    painted = draw_cells(axes, ordered, texts, scale, SEQUENTIAL)
    for (row, column), value in np.ndenumerate(ordered):
        write_in_cell(axes, (row, column), f"{value:.2f}", painted[row, column], fontsize=8.5)
    for step in range(n - 1):
        at = (step, step + 1)
        write_in_cell(axes, at, str(step + 1), painted[at], 0.22, 0.19, fontsize=6.5, fontweight="bold", zorder=4)
        frame_cell(axes, at, 3.4)
    axes.set_aspect("equal")
    name_columns(axes, names, (np.arange(n) + 0.5).tolist(), 0.55)
    name_rows(axes, names, (np.arange(n) + 0.5).tolist(), 0.55)
    axes.set_xlabel("task, in the order of the curriculum")
    axes.set_ylabel("task")
    add_colour_bar(figure, axes, scale, SEQUENTIAL, "similarity", fraction=0.046, pad=0.03)
    return figure
