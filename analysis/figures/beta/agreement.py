"""Agreement of runs on the difficulty of instances, and of acquisition functions on the instances to replay."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from scipy import stats

from clops_sweep.errors import UsageError, several

from ...drawing.cells import add_colour_bar, draw_cells, write_in_cell
from ...drawing.labels import inches, name_columns, name_rows
from ...drawing.style import GRID, MUTED, SEQUENTIAL, new_figure, styled
from ...drawing.task_styles import task_styles
from ...drawing.values_in_words import NamedValues
from ...statistics import estimate

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RankAgreement:
    """Spearman's rank correlation of s between all pairs of runs, by task.

    `rho` has shape (tasks, pairs); NaN where fewer than three instances are common to a pair or s is constant.
    """

    tasks: tuple[str, ...]
    rho: Floats
    runs: int

    @property
    def named_values(self) -> NamedValues:
        """The mean correlation of each task."""
        values = [(task, estimate(rho).mean) for task, rho in zip(self.tasks, self.rho, strict=True)]
        return NamedValues("Mean rank correlation", values)


@dataclass(frozen=True)
class ReplayOverlap:
    """Overlap of the replayed instances of acquisition functions: sum of minima / sum of maxima of `times_replayed`.

    1: the same instances equally often; 0: no common instance. `matrix` (names, names) holds means over common
    replicates; `n` is the number of replicates of each entry.
    """

    names: tuple[str, ...]
    matrix: Floats
    n: npt.NDArray[np.int64]

    @property
    def named_values(self) -> NamedValues:
        """The overlap of each pair of functions."""
        values = []
        for one, other in itertools.combinations(range(len(self.names)), 2):
            values.append((f"{self.names[one]} and {self.names[other]}", float(self.matrix[one, other])))
        return NamedValues("Overlap", values)


def rank_agreement(instances: pd.DataFrame) -> RankAgreement:
    """Return the agreement of s between runs of one configuration with different seeds.

    Args:
        instances: rows of the table `instances` of these runs.

    Raises:
        UsageError: fewer than two runs with an s.
    """
    known = instances[instances["s"].notna()]
    runs = list(dict.fromkeys(known["run_id"]))
    if len(runs) < 2:
        raise UsageError(f"rank agreement of s needs two runs or more that learn beta; there are {len(runs)}")
    tasks = tuple(str(task) for task in dict.fromkeys(known["task"]))
    rho = []
    for task in tasks:
        by_run = known[known["task"] == task].pivot_table("s", index="instance", columns="run_id").reindex(columns=runs)
        rho.append([_spearman(by_run[a], by_run[b]) for a, b in itertools.combinations(runs, 2)])
    return RankAgreement(tasks, np.array(rho), len(runs))


def replay_overlap(replays: Mapping[str, Mapping[tuple[int, int], pd.DataFrame]]) -> ReplayOverlap:
    """Return the overlap of the instances that configurations replayed, paired by replicate.

    Args:
        replays: for each configuration, (split seed, seed) to that run's rows of `instances`.

    Raises:
        UsageError: fewer than two configurations.
    """
    names = tuple(replays)
    if len(names) < 2:
        raise UsageError(f"overlap of replays needs two configurations or more; there are {len(names)}")
    counts: dict[str, dict[tuple[int, int], pd.Series]] = {}
    for name, by_replicate in replays.items():
        counts[name] = {}
        for key, rows in by_replicate.items():
            counts[name][key] = rows.set_index(["task", "instance"])["times_replayed"]
    matrix = np.full((len(names), len(names)), np.nan)
    n = np.zeros((len(names), len(names)), dtype=np.int64)
    for (i, a), (j, b) in itertools.product(enumerate(names), repeat=2):
        common = counts[a].keys() & counts[b].keys()
        values = np.array([_ruzicka(counts[a][key], counts[b][key]) for key in sorted(common)])
        values = values[np.isfinite(values)]
        n[i, j] = values.size
        matrix[i, j] = values.mean() if values.size else np.nan
    return ReplayOverlap(names, matrix, n)


@styled
def draw_rank_agreement(record: RankAgreement) -> Figure:
    """Draw a row per task: a dot per pair of runs and a line at their mean."""
    longest = min(max(inches(task, 8.5) for task in record.tasks), 2.2)
    figure = new_figure(5.2 + max(longest - 0.6, 0), 0.34 * len(record.tasks) + 0.85)
    axes = figure.subplots()
    axes.grid(axis="x", color=GRID, lw=0.6)
    axes.axvline(0, color=MUTED, lw=0.8)
    styles = task_styles(record.tasks)
    for position, (task, values) in enumerate(zip(record.tasks, record.rho, strict=True)):
        finite = values[np.isfinite(values)]
        axes.plot(finite, np.full(finite.size, position), "o", ms=4.5, color=styles[task].colour, alpha=0.5, mew=0)
        if finite.size:
            axes.plot([finite.mean()] * 2, [position - 0.3, position + 0.3], color="black", lw=1.6)
    name_rows(axes, record.tasks, range(len(record.tasks)), 0.34)
    axes.set(ylim=(len(record.tasks) - 0.5, -0.5), ylabel="task")
    axes.set_xlim(min(-0.05, float(np.nanmin(record.rho, initial=0.0)) - 0.05), 1.02)
    axes.set_xlabel("Spearman's rank correlation of s between two runs")
    return figure


@styled
def draw_replay_overlap(record: ReplayOverlap) -> Figure:
    """Draw the matrix with its values."""
    n = len(record.names)
    figure = new_figure(0.8 * n + 2.8, 0.55 * n + 1.5)
    axes = figure.subplots()
    scale = Normalize(0, 1)
    pairs = {at: f"{record.names[at[0]]} and {record.names[at[1]]}" for at in np.ndindex(n, n)}
    texts = {
        at: f"{pair}: {record.matrix[at]:.2f}, {several(int(record.n[at]), 'pair')} of runs"
        for at, pair in pairs.items()
    }
    painted = draw_cells(axes, record.matrix, texts, scale, SEQUENTIAL)
    for at in np.argwhere(np.isfinite(record.matrix)).tolist():
        write_in_cell(axes, tuple(at), f"{record.matrix[tuple(at)]:.2f}", painted[tuple(at)])
    name_columns(axes, record.names, (np.arange(n) + 0.5).tolist(), 0.75)
    name_rows(axes, record.names, (np.arange(n) + 0.5).tolist(), 0.5)
    add_colour_bar(figure, axes, scale, SEQUENTIAL, "overlap of replays", pad=0.03)
    return figure


def _spearman(a: pd.Series, b: pd.Series) -> float:
    both = pd.DataFrame({"a": a, "b": b}).dropna()
    if len(both) < 3 or both["a"].nunique() < 2 or both["b"].nunique() < 2:
        return np.nan
    return float(stats.spearmanr(both["a"], both["b"]).statistic)


def _ruzicka(a: pd.Series, b: pd.Series) -> float:
    both = pd.DataFrame({"a": a, "b": b}).fillna(0)
    most = float(both.max(axis=1).sum())
    return float(both.min(axis=1).sum()) / most if most else np.nan
