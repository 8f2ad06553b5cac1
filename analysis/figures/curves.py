"""Learning curves: validation AUC, or another measure, of every task after every epoch of the run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from clops_sweep.errors import UsageError
from clops_sweep.experiment.columns import STREAM
from clops_sweep.experiment.metrics import MEASURES, metric_named, words

from ..drawing.labels import in_lines, in_one_size
from ..drawing.line_labels import BESIDE, LINE_HEIGHT, name_lines, name_width
from ..drawing.style import GRID, new_figure, panels, styled
from ..drawing.task_styles import TaskStyle, short_names, task_styles
from ..drawing.values_in_words import NamedValues
from ..statistics import MIN_UNITS

Floats = npt.NDArray[np.float64]
PREQUENTIAL = "prequential"
PLOT_WIDTH = 4.2
"""Minimum width of a panel's curves in inches."""


@dataclass(frozen=True)
class Block:
    """A range of epochs, both ends included, in which one task was trained."""

    task: str
    first: int
    last: int


@dataclass(frozen=True)
class LearningCurves:
    """A measure on the validation or test split by task and epoch, over `n` units of one configuration.

    Units are patient splits, or the seeds of one (`Experiment.in_units`). `mean` and `sd` have shape (tasks, epochs);
    `sd` is NaN with fewer than three units. `epochs` counts over the whole
    run, from 1. `tasks` are in training order.
    """

    title: str
    tasks: tuple[str, ...]
    epochs: npt.NDArray[np.int64]
    mean: Floats
    sd: Floats
    n: int
    blocks: tuple[Block, ...]
    measure: str = "auc"
    split: str = "validation"

    @property
    def quantity(self) -> str:
        """The measure in words."""
        return f"{self.split} {words(self.measure)}"

    @property
    def band(self) -> tuple[Floats, Floats]:
        """Mean minus and plus one standard deviation, within the limits of the measure; the mean where sd is NaN."""
        low, high = (0.0, math.inf) if self.measure == "loss" else metric_named(self.measure).limits
        spread = np.nan_to_num(self.sd)
        return np.clip(self.mean - spread, low, high), np.clip(self.mean + spread, low, high)

    @property
    def named_values(self) -> NamedValues:
        """The value of each task at the end of its curve."""
        values = []
        for task, curve in zip(self.tasks, self.mean, strict=True):
            known = curve[np.isfinite(curve)]
            if known.size:
                values.append((task, float(known[-1])))
        what = f"{self.title}, final {self.quantity}" if self.title else f"Final {self.quantity}"
        return NamedValues(what, values, "lower" if self.measure == "loss" else "higher")


def learning_curves(
    curves: pd.DataFrame, title: str = "", measure: str = "auc", split: str = "validation"
) -> LearningCurves:
    """Return mean and sample standard deviation of curves over units.

    Args:
        curves: rows of the store's table `curves` for the runs of one configuration; with a column `unit`
            (`Experiment.in_units`), the runs of a unit are averaged first; without it, each run is a unit.
        title: name of the configuration.
        measure: a numeric column of the table: one of `MEASURES`, or loss.
        split: split of the curves: validation, or test with `curves="test"`.

    The curve of online streams is prequential, up to the last batch that all runs have. It has no blocks if runs train
    different tasks at the same batch, as on other splits.

    Raises:
        UsageError: no such column, no rows, or runs that trained different tasks at the same epoch.
    """
    if measure not in (*MEASURES, "loss") or measure not in curves:
        raise UsageError(f"measure {measure!r}: expected one of {', '.join((*MEASURES, 'loss'))}")
    if curves.empty:
        raise UsageError(f"{title or 'learning curves'}: no finished run with learning curves")
    is_stream = set(curves["task"]) == {STREAM}
    if is_stream:
        split, curves = PREQUENTIAL, curves[curves["epoch"] <= curves.groupby("run_id")["epoch"].max().min()]
    training = curves.drop_duplicates(["epoch", "training_task"]).sort_values("epoch")
    if training["epoch"].duplicated().any() and not is_stream:
        epoch = int(training.loc[training["epoch"].duplicated(), "epoch"].iloc[0])
        raise UsageError(f"{title or 'learning curves'}: the runs train different tasks at epoch {epoch}")
    blocks = [] if training["epoch"].duplicated().any() else _blocks(training)
    trained = list(dict.fromkeys(block.task for block in blocks))
    evaluated = list(dict.fromkeys(curves["task"]))
    tasks = [task for task in trained if task in evaluated] + [task for task in evaluated if task not in trained]
    if "unit" not in curves:
        curves = curves.assign(unit=curves["run_id"])
    mean = _by_task(curves, measure, "mean", tasks)
    n = int(curves["unit"].nunique())
    sd = _by_task(curves, measure, "std", tasks)
    return LearningCurves(
        title,
        tuple(tasks),
        mean.columns.to_numpy(dtype=np.int64),
        mean.to_numpy(dtype=float),
        sd.to_numpy(dtype=float) if n >= MIN_UNITS else np.full(sd.shape, np.nan),
        n,
        tuple(blocks),
        measure,
        split,
    )


@styled
def draw_learning_curves(records: Sequence[LearningCurves]) -> Figure:
    """Draw one panel per configuration on common axes; lines are named at their right end, blocks above.

    A task has the same style in all panels, whatever their task orders.

    Raises:
        UsageError: no record.
    """
    if not records:
        raise UsageError("learning curves: nothing to draw")
    blocks = [block.task for record in records if record.split == PREQUENTIAL for block in record.blocks]
    styles = task_styles([*(task for record in records for task in record.tasks), *blocks])
    columns = min(len(records), 2)
    rows = math.ceil(len(records) / columns)
    height = max(2.1, LINE_HEIGHT * 1.3 * len(styles))
    width = max(5.5, PLOT_WIDTH + BESIDE + 0.6 + max(map(name_width, styles)))
    titles = [in_lines(_title(record), width - 0.8, 9.5, bold=True) for record in records]
    above = 0.85 + 0.17 * max(title.count("\n") for title in titles)
    figure = new_figure(width * columns + 0.3, (height + above) * rows + 0.35)
    grid = panels(figure, rows, columns, len(records), sharey=True)
    low, high = _common_range(records)
    for index, axes in enumerate(grid.flat[: len(records)]):
        axes.set_ylim(low, high)
        _draw(axes, records[index], titles[index], styles, height)
        axes.tick_params(labelleft=True)
        if index % columns == 0:
            axes.set_ylabel(records[index].quantity)
        if index + columns >= len(records):
            axes.set_xlabel("batch" if records[index].split == PREQUENTIAL else "epoch")
    return figure


def _by_task(curves: pd.DataFrame, measure: str, statistic: Literal["mean", "std"], tasks: list[str]) -> pd.DataFrame:
    """Return a statistic over units, [tasks, epochs]; a run that stopped a task early keeps its last value."""
    # A pivot table with dropna=False has a row for each pair of a unit and a run: quadratic in the runs.
    values = curves.groupby(["task", "unit", "run_id", "epoch"])[measure].mean()
    of_runs = values.unstack("epoch").ffill(axis=1)  # noqa: PD010
    of_units = of_runs.groupby(level=["task", "unit"]).mean()
    return of_units.groupby(level="task").agg(statistic).reindex(tasks)


def _blocks(training: pd.DataFrame) -> list[Block]:
    blocks: list[Block] = []
    for epoch, task in zip(training["epoch"], training["training_task"], strict=True):
        if blocks and blocks[-1].task == task and blocks[-1].last == epoch - 1:
            blocks[-1] = Block(task, blocks[-1].first, int(epoch))
        else:
            blocks.append(Block(str(task), int(epoch), int(epoch)))
    return blocks


def _common_range(records: Sequence[LearningCurves]) -> tuple[float, float]:
    bands = [record.band for record in records if np.isfinite(record.mean).any()]
    low = min((float(np.nanmin(lows)) for lows, _ in bands), default=0.0)
    high = max((float(np.nanmax(highs)) for _, highs in bands), default=1.0)
    margin = 0.04 * max(high - low, 0.05)
    return low - margin, high + margin


def _title(record: LearningCurves) -> str:
    return f"{record.title} (n = {record.n})" if record.title else f"n = {record.n}"


def _draw(axes: Axes, record: LearningCurves, title: str, styles: Mapping[str, TaskStyle], height: float) -> None:
    epochs = record.epochs
    axes.grid(axis="y", color=GRID, lw=0.6)
    low, _ = axes.get_ylim()
    axes.set_xlim(float(epochs[0]) - 0.5, float(epochs[-1]) + 0.5)
    axes.set_title(title, loc="left", pad=_draw_blocks(axes, record, styles))
    faint = 0.18 if len(record.tasks) <= 8 else 0.1  # many overlapping bands hide the lines
    for task, mean, sd, low_band, high_band in zip(record.tasks, record.mean, record.sd, *record.band, strict=True):
        look = styles[task]
        if np.isfinite(sd).any():
            axes.fill_between(epochs, low_band, high_band, color=look.colour, alpha=faint, lw=0)
        marker = "o" if epochs.size == 1 else None
        line = Line2D(epochs, mean, marker=marker, ms=4, color=look.colour, ls=look.dash, lw=1.6)
        line.set_url(f"{task}: {record.quantity} {_last(mean)}, n = {record.n}")
        axes.add_line(line)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=2))
    ends = [float(row[np.isfinite(row)][-1]) if np.isfinite(row).any() else low for row in record.mean]
    name_lines(axes, record.tasks, ends, styles, height)


def _last(mean: Floats) -> str:
    finite = mean[np.isfinite(mean)]
    return f"{finite[-1]:.3f} in the end" if finite.size else "not known"


def _draw_blocks(axes: Axes, record: LearningCurves, styles: Mapping[str, TaskStyle]) -> float:
    """Draw a tint behind the curves and a strip above them for each block of training, with the task's name.

    Returns:
        Height above the axes in points.
    """
    if not record.blocks:
        return 6
    other = TaskStyle("#777777", "solid", "")  # all tasks are trained together
    inch = PLOT_WIDTH / float(np.ptp(axes.get_xlim()))
    widths = [0.94 * inch * (block.last - block.first + 1) for block in record.blocks]
    tasks = [block.task for block in record.blocks]
    names, size = in_one_size(tasks, widths, (7.5,), 1)
    if names != tasks:
        short = short_names(record.tasks)
        names, size = in_one_size([short.get(b.task, b.task) for b in record.blocks], widths, (7.5, 6.5, 5.5), 3)
    for block, name in zip(record.blocks, names, strict=True):
        look = styles.get(block.task, other)
        first, last = block.first - 0.5, block.last + 0.5
        axes.axvspan(first, last, color=look.colour, alpha=0.1, lw=0)
        axes.axvspan(
            first, last, ymin=1.0, ymax=1.035, facecolor=look.colour, edgecolor="white", hatch=look.hatch, lw=0,
            clip_on=False,
        )  # fmt: skip
        axes.text(
            (first + last) / 2, 1.05, name, transform=axes.get_xaxis_transform(), ha="center", va="bottom",
            color="#222222", fontsize=size, linespacing=1.05,
        )  # fmt: skip
    return 14 + 1.2 * size * (1 + max(name.count("\n") for name in names))
