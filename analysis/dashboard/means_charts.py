"""Charts of configurations for Plotly.js: means over seeds and patient splits with their corrected 95 % intervals.

`customdata` holds addresses: a click on a configuration lists its runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from html import escape
from typing import Any
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt
import pandas as pd

from clops_sweep.errors import UsageError
from clops_sweep.experiment.axis_names import axis_title

from ..collect import Experiment, label_text
from ..metrics import metric_named, words
from ..selection import cells_by_data
from ..statistics import PairedDifference, clipped, paired_differences
from .chart_parts import (
    ONLY,
    Chart,
    as_numbers,
    column_title,
    epoch_axis,
    layout_of,
    number_axis,
    score_axis,
    trace_of,
    value_text,
)
from .charts import colour_labels
from .choice import Choice
from .line_styles import LineStyle, line_styles
from .methods import method_name, runs_query
from .units import n_in_words

_BESIDE = 0.12
"""Most distance between two configurations of one label, in labels."""

MOST_BANDS = 2
"""Most curves whose bands are all shown: more would cover each other."""

_WIDTH = 0.7
"""Width that the configurations of one label share, in labels."""


@dataclass(frozen=True)
class Configuration:
    """A configuration with finished runs, its mean and its interval; `n` is number and kind of units: "3 folds"."""

    cell: int
    name: str
    address: str
    mean: PairedDifference
    n: str

    @property
    def ends(self) -> tuple[float, float]:
        """Lengths of the interval below and above the mean; 0 without one."""
        if not np.isfinite(self.mean.low):
            return 0.0, 0.0
        return self.mean.mean - self.mean.low, self.mean.high - self.mean.mean


def shows_means(choice: Choice, experiment: Experiment) -> bool:
    """Return whether the columns of a choice have means: an axis or a measured column against a measured one."""
    return choice.y in experiment.measured and choice.x in (*experiment.axes, *experiment.measured)


def configurations(experiment: Experiment, shown: pd.DataFrame, column: str) -> list[Configuration]:
    """Return the configurations of some runs with the mean of a column over these runs, the best first.

    Args:
        experiment: the experiment.
        shown: the runs, as rows of their table.
        column: a measured column.
    """
    runs = experiment.runs.iloc[shown.index]
    part = replace(experiment, runs=runs)
    means = means_of(part, column)
    present = []
    for cell in sorted(set(runs["cell"].tolist())):
        if means[cell].n:
            address = f"/runs?{urlencode(runs_query(experiment, experiment.cells[cell]))}"
            name = method_name(experiment, experiment.cells[cell])
            splits = {split for split, _ in part.replicates_of(part.runs_of(cell))}
            present.append(Configuration(cell, name, address, means[cell], n_in_words(means[cell], splits)))
    sign = 1 if metric_named(column).better == "lower" else -1
    return sorted(present, key=lambda configuration: sign * configuration.mean.mean)


def means_of(experiment: Experiment, column: str) -> list[PairedDifference]:
    """Return the mean of a column for each cell, with its interval as in the report; n is 0 without a value."""
    values = experiment.by_replicate(column)
    means = [PairedDifference(np.nan, np.nan, np.nan, np.nan, 0)] * len(experiment.cells)
    for cells in cells_by_data(experiment):
        for cell, mean in zip(cells, _tested(experiment, cells[0], values[cells], column), strict=True):
            means[cell] = mean
    return means


def _tested(experiment: Experiment, cell: int, values: npt.NDArray[np.float64], column: str) -> list[PairedDifference]:
    """Return means over the replicates of an experiment, without intervals if folds and random splits are mixed."""
    with suppress(UsageError):
        known = experiment.partitions(cell)
        tested = paired_differences(values, np.zeros_like(values), experiment.replicates, known, column)
        return [clipped(mean, metric_named(column).limits) for mean in tested]
    means = []
    for row in values:
        present = row[np.isfinite(row)]
        mean = float(present.mean()) if present.size else np.nan
        means.append(PairedDifference(mean, np.nan, np.nan, np.nan, present.size))
    return means


def means_chart(experiment: Experiment, points: Sequence[Configuration], choice: Choice) -> Chart:
    """Return a point with an interval for each configuration, a trace for each label of the colours.

    Configurations with one label are side by side; numbers are connected if a colour has one configuration at each.
    """
    places, layout = _places(experiment, points, choice)
    is_axis = choice.colour in experiment.axes
    of_points, in_order = colours_of_points(experiment, points, choice)
    styles = line_styles(of_points.tolist(), in_order)
    if not is_axis:
        styles = [LineStyle(ONLY)] * len(points)
    traces = []
    for label in in_order:
        chosen = np.flatnonzero(of_points == label).tolist()
        is_line = choice.x in experiment.number_axes and len({places[at] for at in chosen}) == len(chosen)
        if is_line:
            chosen.sort(key=lambda at: places[at])
        x = [places[at] for at in chosen]
        trace = trace_of(label, x, [points[at].mean.mean for at in chosen], "lines+markers" if is_line else "markers")
        trace["hovertext"] = [_hover(experiment, points[at], choice) for at in chosen]
        trace["hoverinfo"] = "text"
        trace["customdata"] = [points[at].address for at in chosen]
        ends = [points[at].ends for at in chosen]
        of_label = [styles[at] for at in chosen]
        first = styles[min(chosen)].colour
        trace["error_y"] = {"type": "data", "symmetric": False, "thickness": 1.5, "color": first}
        trace["error_y"] |= {"arrayminus": [low for low, _ in ends], "array": [high for _, high in ends]}
        marker = {"color": [style.colour for style in of_label], "symbol": [style.symbol for style in of_label]}
        trace |= {"marker": marker | {"size": 9}, "line": {"color": first, "width": 1.5}}
        traces.append(trace)
    heights: list[float | None] = []
    for point in points:
        low, high = point.ends
        heights += [point.mean.mean - low, point.mean.mean + high]
    layout["yaxis"] |= score_axis(choice.y, heights)
    layout["showlegend"] = is_axis and choice.colour != choice.x
    layout["legend"]["title"] = {"text": escape(axis_title(choice.colour)) if is_axis else ""}
    return {"data": traces, "layout": layout}


def curve_styles(experiment: Experiment, points: Sequence[Configuration], choice: Choice) -> list[LineStyle]:
    """Return the style of each configuration's curve: the colour and symbol of its point in `means_chart`."""
    of_points, in_order = colours_of_points(experiment, points, choice)
    return line_styles(of_points.tolist(), in_order)


def colours_of_points(
    experiment: Experiment, points: Sequence[Configuration], choice: Choice
) -> tuple[npt.NDArray[Any], list[str]]:
    """Return the label of each configuration that its colour stands for, and these labels in the order of colours."""
    column = "label" if choice.colour in experiment.axes else "none"
    labels = [""] * len(points)
    if column == "label":
        labels = [_label(experiment, point, choice.colour) for point in points]
    of_points = colour_labels(pd.DataFrame({"label": labels}), column)
    return of_points, _in_order(experiment, choice.colour, of_points)


def _places(experiment: Experiment, points: Sequence[Configuration], choice: Choice) -> tuple[list[float], Chart]:
    """Return the horizontal places of configurations and the layout of their chart."""
    layout = layout_of(column_title(choice.x), column_title(choice.y))
    if choice.x not in experiment.axes:
        means = means_of(replace(experiment, runs=experiment.runs), choice.x)
        return [means[point.cell].mean for point in points], layout
    labels = [experiment.cells[point.cell].labels[choice.x] for point in points]
    numbers, is_number = as_numbers(pd.Series(labels, dtype=object))
    if is_number and all(number is not None for number in numbers):
        layout["xaxis"] |= number_axis(numbers)
        return [float(number) for number in numbers if number is not None], layout
    texts = list(map(label_text, labels))
    categories = list(dict.fromkeys(texts))  # the label with the best configuration first
    layout["xaxis"] |= {"tickvals": list(range(len(categories))), "ticktext": list(map(escape, categories))}
    layout["xaxis"]["range"] = [-0.6, len(categories) - 0.4]
    return _side_by_side(texts, categories), layout


def _side_by_side(texts: Sequence[str], categories: Sequence[str]) -> list[float]:
    """Return the place of each configuration around that of its label."""
    places = np.zeros(len(texts))
    for position, category in enumerate(categories):
        members = [at for at, text in enumerate(texts) if text == category]
        distance = min(_BESIDE, _WIDTH / len(members))
        for rank, at in enumerate(members):
            places[at] = position + distance * (rank - (len(members) - 1) / 2)
    return [float(place) for place in places]


def _in_order(experiment: Experiment, column: str, labels: npt.NDArray[Any]) -> list[str]:
    """Return the labels of colours in the order of their axis."""
    present = dict.fromkeys(labels.tolist())
    known = [label_text(label) for label in experiment.axes.get(column, ())]
    ordered = [label for label in dict.fromkeys(known) if label in present]
    return [*ordered, *(label for label in present if label not in ordered)]


def _label(experiment: Experiment, point: Configuration, axis: str) -> str:
    return experiment.cells[point.cell].label(axis)


def _hover(experiment: Experiment, point: Configuration, choice: Choice) -> str:
    """Return what is shown beside the mouse for a configuration."""
    mean = point.mean
    interval = f" [{value_text(mean.low)}, {value_text(mean.high)}]" if np.isfinite(mean.low) else ""
    lines = [escape(point.name)]
    if choice.x in experiment.axes:
        lines.append(f"{column_title(choice.x)}: {escape(_label(experiment, point, choice.x))}")
    lines += [f"{column_title(choice.y)}: {value_text(mean.mean)}{interval}", escape(point.n)]
    return "<br>".join(lines)


def mean_curves(
    experiment: Experiment,
    rows: pd.DataFrame,
    shown: Sequence[Configuration],
    measure: str,
    split: str,
    task: str,
    styles: Sequence[LineStyle] = (),
) -> Chart:
    """Return the mean learning curve of some configurations, each with a band of its interval below it.

    Of more than two configurations, the bands are hidden until the mouse is on a curve.

    Args:
        experiment: the experiment.
        rows: rows of the table `curves` for their runs.
        shown: the configurations, the best first.
        measure: the measure, a column of `rows`.
        split: the split, "validation" or "test".
        task: the task to show; empty for the mean over all tasks.
        styles: the style of each; without any, they differ by their ranks.
    """
    of_task = rows if not task else rows[rows["task"] == task]
    by_run = of_task.pivot_table(measure, "epoch", "run_id", "mean")
    traces: list[Chart] = []
    for style, point in zip(styles or line_styles([""] * len(shown), [""]), shown, strict=True):
        replicates = _replicates_by_run(experiment, point.cell)
        runs = [run for run in replicates if run in by_run]
        if not runs:
            continue
        part = replace(experiment, runs=experiment.runs[experiment.runs["run_id"].isin(runs)])
        columns = [part.replicates.index(replicates[run]) for run in runs]
        values = np.full((len(by_run), len(part.replicates)), np.nan)
        values[:, columns] = by_run[runs].to_numpy()
        lines = _band(point, by_run.index, _tested(part, point.cell, values, measure), style)
        if len(shown) > MOST_BANDS:
            for line in lines[:-1]:  # the page shows the band of the curve that the mouse is on
                line |= {"visible": False, "meta": "hidden band"}
        traces += lines
    layout = layout_of("epoch", f"{split} {words(measure)}")
    layout["xaxis"] |= epoch_axis(by_run.index)
    layout["showlegend"] = False
    return {"data": traces, "layout": layout}


def _replicates_by_run(experiment: Experiment, cell: int) -> Mapping[str, Any]:
    """Return the patient split and seed of each finished run of a cell, by run id."""
    runs = experiment.runs_of(cell)
    return dict(zip(runs["run_id"].tolist(), experiment.replicates_of(runs), strict=True))


def _band(point: Configuration, epochs: pd.Index, means: Sequence[PairedDifference], style: LineStyle) -> list[Chart]:
    """Return a mean curve and, below it, the band of its interval."""
    known = [(epoch, mean) for epoch, mean in zip(epochs.tolist(), means, strict=True) if mean.n]
    curve = trace_of(point.name, [epoch for epoch, _ in known], [mean.mean for _, mean in known], "lines")
    curve |= {"line": style.line, "hoverinfo": "text", "customdata": [point.address] * len(known)}
    curve["hovertext"] = [f"{escape(point.name)}<br>epoch {epoch}: {mean.mean:.3f}" for epoch, mean in known]
    ends = [(epoch, mean) for epoch, mean in known if np.isfinite(mean.low)]
    if not ends:
        return [curve]
    there, back = [epoch for epoch, _ in ends], [epoch for epoch, _ in reversed(ends)]
    heights = [*(mean.high for _, mean in ends), *(mean.low for _, mean in reversed(ends))]
    band = trace_of(f"{point.name}, 95 %", [*there, *back], heights, "lines")
    band |= {"fill": "toself", "fillcolor": style.colour, "opacity": 0.15, "line": {"width": 0}, "hoverinfo": "skip"}
    return [band, curve]
