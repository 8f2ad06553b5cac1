"""Parallel coordinates: a line per configuration through its label on each axis, to the metric's mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...collect import Experiment, label_text
from ...metrics import Metric, known_metric
from ...statistics import Estimate, estimate

MOST_LINES = 1000
"""Most lines; with more configurations, the best are drawn."""


@dataclass(frozen=True)
class ParallelCoordinates:
    """Lines through axes.

    Attributes:
        metric: the metric on the last axis and in the colours.
        axes: the axes that vary.
        labels: labels of each axis, from the lowest to the highest.
        places: (lines, axes): position of a configuration's label on the axis, from 0 to 1.
        values: (lines,): mean of the metric, ascending if higher is better, so that the best is drawn last.
        estimates: means with standard deviation and number of runs.
        cells: indices of the configurations.
        total: number of configurations with a value.
    """

    metric: Metric
    axes: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    places: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]
    estimates: tuple[Estimate, ...]
    cells: tuple[int, ...]
    total: int


def parallel_coordinates(experiment: Experiment, metric: str, cells: Sequence[int]) -> ParallelCoordinates:
    """Return the lines of some configurations.

    Args:
        experiment: the experiment.
        metric: a numeric column of `runs`.
        cells: indices of the configurations; those without a finished run have no line.

    Raises:
        UsageError: an unknown metric.
    """
    shown = known_metric(metric, experiment.numeric_columns)
    values = experiment.by_replicate(metric)
    found = [(estimate(values[cell]), cell) for cell in cells]
    found = [(it, cell) for it, cell in found if it.n]
    sign = -1 if shown.better == "lower" else 1
    found.sort(key=lambda it: sign * it[0].mean)
    kept = found[-MOST_LINES:]
    axes = tuple(axis for axis, labels in experiment.axes.items() if len(labels) > 1)
    place = {axis: {repr(label): at for at, label in enumerate(experiment.axes[axis])} for axis in axes}
    places = np.array(
        [[place[axis][repr(experiment.cells[cell].labels[axis])] for axis in axes] for _, cell in kept], dtype=float
    ).reshape(len(kept), len(axes))
    longest = np.array([len(experiment.axes[axis]) - 1 for axis in axes], dtype=float)
    return ParallelCoordinates(
        shown,
        axes,
        tuple(tuple(map(label_text, experiment.axes[axis])) for axis in axes),
        places / longest if axes else places,
        np.array([it.mean for it, _ in kept], dtype=float),
        tuple(it for it, _ in kept),
        tuple(cell for _, cell in kept),
        len(found),
    )


def describe_parallel(record: ParallelCoordinates, names: Sequence[str]) -> str:
    """Describe the figure in words."""
    low, high = record.metric.text(float(record.values.min())), record.metric.text(float(record.values.max()))
    axes = ", ".join(
        f"{axis} ({labels[0]} to {labels[-1]})" for axis, labels in zip(record.axes, record.labels, strict=True)
    )
    return (
        f"Parallel coordinates of {len(names)} configurations over {axes or 'no axis'}: {record.metric.plain} from "
        f"{low} to {high}. The best are listed below, all in the table of runs."
    )
