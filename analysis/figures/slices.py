"""Slices of a search: each objective over the values of each parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from clops_sweep.errors import UsageError
from clops_sweep.experiment.axis_names import axis_title
from clops_sweep.search.records import StudyRecord

from ..collect import label_text
from ..drawing.labels import in_lines
from ..drawing.style import GRID, colour, new_figure, styled
from ..drawing.svg import tell_points
from ..metrics import metric_named

MOST_PARAMETERS = 4
_COLUMNS, _PANEL = 3, 2.6
"""Panels that are side by side on the page, and their width in inches: that of the histories above them."""

_DECADES = 1.5
"""Decades from which on a parameter without a declared range has a logarithmic axis."""


@dataclass(frozen=True)
class Slices:
    """Complete trials: their numbers, the values of each parameter, and objectives [trials, objectives].

    `logarithmic` says of each parameter with a declared range whether it is sampled on a logarithmic scale.
    """

    objectives: tuple[str, ...]
    numbers: tuple[int, ...]
    labels: dict[str, tuple[Any, ...]] = field(hash=False)
    values: npt.NDArray[np.float64] = field(hash=False)
    logarithmic: Mapping[str, bool] = field(hash=False, default_factory=dict)


@dataclass(frozen=True)
class MethodSlices:
    """The slices of one method of a tuned space."""

    title: str
    slices: Slices


def slices(record: StudyRecord, logarithmic: Mapping[str, bool] | None = None) -> Slices:
    """Return the slices of a search over the parameters that all complete trials have and that vary.

    Args:
        record: the study.
        logarithmic: see `Slices`.

    Raises:
        UsageError: fewer than two trials are complete, or no parameter varies.
    """
    trials = record.of("complete")
    varied = {}
    for name in trials[0].labels if trials else ():
        if all(name in trial.labels for trial in trials):
            labels = tuple(trial.labels[name] for trial in trials)
            if len(set(map(repr, labels))) > 1:
                varied[name] = labels
    if not varied:
        raise UsageError(f"search {record.name!r} has no two complete trials with different values of a parameter")
    shown = dict(list(varied.items())[:MOST_PARAMETERS])
    values = np.array([trial.values for trial in trials], dtype=float)
    return Slices(tuple(record.objectives), tuple(trial.number for trial in trials), shown, values, logarithmic or {})


def _spans_decades(places: Sequence[float]) -> bool:
    return min(places) > 0 and float(np.log10(max(places) / min(places))) >= _DECADES


# Not optuna.visualization.matplotlib: it draws with pyplot, whose state is global, and one objective at a time.
@styled
def draw_slices(record: Slices) -> Figure:
    """Draw a panel per objective and parameter, a dot per trial; later trials are darker."""
    rows, columns = len(record.objectives), len(record.labels)
    figure = new_figure(2.3 * columns + 0.8, 2.2 * rows + 0.3)
    grid = figure.subplots(rows, columns, squeeze=False, sharey="row")
    for row, objective in enumerate(record.objectives):
        grid[row][0].set_ylabel(metric_named(objective).plain)
        for axes, (name, labels) in zip(grid[row], record.labels.items(), strict=True):
            _draw(axes, record, name, labels, record.values[:, row])
    return figure


@styled
def draw_slices_of_methods(methods: Sequence[MethodSlices]) -> Figure:
    """Draw a panel per method and parameter, as `draw_slices` does, of the first objective on one scale.

    The panels of a method are side by side; methods with few parameters share a row.
    """
    rows = _rows_of_methods(methods)
    columns = max(_width(row) for row in rows)
    figure = new_figure(_PANEL * columns + 0.6, 2.1 * len(rows) + 0.3)
    grid = figure.subplots(len(rows), columns, squeeze=False, sharey=True)
    for of_row, row in zip(grid, rows, strict=True):
        of_row[0].set_ylabel(metric_named(row[0].slices.objectives[0]).plain)
        column = 0
        for method in row:
            record = method.slices
            of_row[column].set_title(in_lines(method.title, 2.0, 9), fontsize=9, fontweight="normal", loc="left")
            for name, labels in record.labels.items():
                _draw(of_row[column], record, name, labels, record.values[:, 0])
                column += 1
        for axes in of_row[column:]:
            axes.set_axis_off()
    return figure


def _rows_of_methods(methods: Sequence[MethodSlices]) -> list[list[MethodSlices]]:
    """Return the methods of each row, in their order: as many as have `_COLUMNS` panels, at least one."""
    rows: list[list[MethodSlices]] = []
    for method in methods:
        if rows and _width([*rows[-1], method]) <= _COLUMNS:
            rows[-1].append(method)
        else:
            rows.append([method])
    return rows


def _width(methods: Sequence[MethodSlices]) -> int:
    """Return the number of panels of some methods."""
    return sum(len(method.slices.labels) for method in methods)


def _draw(axes: Axes, record: Slices, name: str, labels: tuple[Any, ...], values: npt.NDArray[np.float64]) -> None:
    axes.grid(color=GRID, lw=0.6)
    axes.set_xlabel(axis_title(name))
    numbers = all(isinstance(label, int | float) and not isinstance(label, bool) for label in labels)
    kinds = sorted({label_text(label) for label in labels})
    places = [float(label) if numbers else kinds.index(label_text(label)) for label in labels]
    later = [to_rgba(colour(0), alpha) for alpha in np.linspace(0.3, 1, len(places))]
    axes.scatter(places, values, s=16, lw=0, color=later)
    if not numbers:
        axes.set_xticks(range(len(kinds)), kinds, rotation=30, ha="right")
    elif record.logarithmic.get(name, _spans_decades(places)):
        axes.set_xscale("log")
        _label_log_axis(axes, places)
    texts = [f"trial {number}: {value:.3g}" for number, value in zip(record.numbers, values, strict=True)]
    tell_points(axes, np.array(places), values, texts)


def _label_log_axis(axes: Axes, places: Sequence[float]) -> None:
    """Label a log axis with plain numbers: the formatter of Matplotlib writes TeX, which SVG text would show."""
    decades = float(np.log10(max(places) / min(places)))
    steps: tuple[float, ...] = (1, 1.5, 2, 3, 4, 5, 6, 8)
    if decades > 2:
        steps = (1,)
    elif decades > 1:
        steps = (1, 2, 5)
    elif decades > 0.4:
        steps = (1, 2, 3, 5)
    axes.xaxis.set_major_locator(LogLocator(subs=steps))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
