"""All metrics along one axis of a search space, for spaces without two numeric axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clops_sweep.errors import UsageError
from clops_sweep.experiment.axis_names import axis_title

from ..collect import Experiment, label_text
from ..drawing.labels import in_lines, legend_columns, name_columns, name_rows, shortened
from ..drawing.style import GRID, MUTED, colour, new_figure, styled
from ..drawing.svg import tell_points
from ..drawing.values_in_words import NamedValues
from ..metrics import Metric, known_metric, metric_named
from ..statistics import MIN_UNITS, estimate

Floats = npt.NDArray[np.float64]


MOST_COLUMNS = 12
"""Most names side by side; more are shown in rows."""


@dataclass(frozen=True)
class Profile:
    """Metrics along one axis, by variant of all others.

    `values` maps a metric to an array (variants, labels, replicates), NaN without a run. `is_scale` says whether
    adjacent labels may be connected by a line.
    """

    name: str
    axis: str
    labels: tuple[Any, ...]
    variants: tuple[str, ...]
    is_scale: bool
    values: Mapping[str, Floats] = field(hash=False)

    @property
    def named_values(self) -> NamedValues:
        """The mean of the first metric for each variant and label."""
        metric = metric_named(next(iter(self.values)))
        values = []
        for variant, by_label in zip(self.variants, self.values[metric.column], strict=True):
            for label, of_runs in zip(self.labels, by_label, strict=True):
                name = ", ".join(part for part in (variant, label_text(label)) if part)
                values.append((name, estimate(of_runs).mean))
        return NamedValues(metric.plain, values, metric.better)


def profile(experiment: Experiment, axis: str | None = None, metrics: Sequence[str] = ()) -> Profile:
    """Return metrics along one axis.

    Args:
        experiment: the experiment.
        axis: by default the first numeric axis, else the first axis. A space without axes has one label, its name.
            Names without a finished run have no place on it.
        metrics: numeric columns of `runs`; by default the headline metrics.

    Raises:
        UsageError: an unknown axis or metric.
    """
    if axis is None:
        axis = (*experiment.number_axes, *experiment.axes, "")[0]
    elif axis not in experiment.axes:
        known = ", ".join(experiment.axes) or "none"
        raise UsageError(f"search space {experiment.name!r} has no axis {axis!r}; it has {known}")
    labels = experiment.axes.get(axis, (experiment.name,))
    others = [other for other in experiment.axes if other != axis]
    variant_of_cell = []
    for cell in experiment.cells:
        of_others = [_other_label(other, cell.labels[other]) for other in others]
        variant_of_cell.append(", ".join(of_others))
    variants = tuple(dict.fromkeys(variant_of_cell))
    n_splits = len({split for split, _ in experiment.repetitions})
    n_values = n_splits if n_splits > 1 else len(experiment.repetitions)
    columns = {repr(label): position for position, label in enumerate(labels)}
    values = {}
    for name in metrics or experiment.headline:
        metric = known_metric(name, experiment.numeric_columns).column
        by_split = experiment.by_split(metric)
        values[metric] = np.full((len(variants), len(labels), n_values), np.nan)
        for index, cell in enumerate(experiment.cells):
            row = variants.index(variant_of_cell[index])
            column = columns[repr(cell.labels[axis])] if axis else 0
            values[metric][row, column] = by_split[index]
    is_scale = axis in experiment.number_axes
    has_value = np.zeros(len(labels), bool)
    for of_metric in values.values():
        has_value |= np.isfinite(of_metric).any(axis=(0, 2))
    if not is_scale and has_value.any():
        labels = tuple(label for label, is_there in zip(labels, has_value, strict=True) if is_there)
        values = {name: of_metric[:, has_value] for name, of_metric in values.items()}
    return Profile(experiment.name, axis, labels, variants, is_scale, values)


@styled
def draw_profile(record: Profile) -> Figure:
    """Draw one panel per metric: the mean, with one standard deviation from three runs on, and a small dot per split.

    Many or long names are shown in rows.
    """
    metrics = [metric_named(metric) for metric in record.values]
    texts = [label_text(label) for label in record.labels]
    in_rows = not record.is_scale and (len(texts) > MOST_COLUMNS or max(map(len, texts)) > 24)
    width = 2.5 if in_rows else max(2.5, 0.62 * len(texts))
    if in_rows:
        figure = new_figure(4.6 + 2.1 * len(metrics), 1.2 + 0.2 * len(texts))
    else:
        figure = new_figure(max(width * len(metrics), 5.0), 3.1)
    grid = figure.subplots(1, len(metrics), squeeze=False, sharey=in_rows)[0]
    n_variants = len(record.variants)
    offsets = (np.arange(n_variants) - (n_variants - 1) / 2) * min(0.6 / n_variants, 0.2)
    for axes, metric in zip(grid, metrics, strict=True):
        axes.set_title(in_lines(metric.plain, width - 0.6, 9.5), fontweight="normal")
        axes.grid(axis="both" if in_rows else "y", color=GRID, lw=0.6)
        if metric.signed:
            draw_zero = axes.axvline if in_rows else axes.axhline
            draw_zero(0, color=MUTED, lw=0.8)
        for position, offset in enumerate(offsets.tolist()):
            _draw_variant(axes, record, metric, position, offset, in_rows)
        if not in_rows:
            room = figure.get_figwidth() / len(metrics) - 0.6
            name_columns(axes, texts, range(len(texts)), room / len(texts))
            axes.set_xlim(-0.5, len(texts) - 0.5)
    has_spread = any(np.isfinite(values).sum(axis=-1).max() >= MIN_UNITS for values in record.values.values())
    if has_spread:
        name_values = grid[0].set_xlabel if in_rows else grid[0].set_ylabel
        name_values("mean ± SD", fontsize=8)
    if in_rows:
        name_rows(grid[0], texts, range(len(texts)), 0.2, width=4.5)
        grid[0].set_ylim(len(texts) - 0.5, -0.5)
    elif record.axis:
        figure.supxlabel(axis_title(record.axis), fontsize=9)
    if len(record.variants) > 1:
        handles, names = grid[0].get_legend_handles_labels()
        _legend(figure, dict(zip(names, handles, strict=True)))
    return figure


def _legend(figure: Figure, handles: Mapping[str, Any]) -> None:
    room = figure.get_figwidth() - 0.6
    names = [shortened(name, room, 8.5) for name in handles]
    figure.legend(handles.values(), names, loc="outside upper left", ncols=legend_columns(names, room))


def _draw_variant(axes: Axes, record: Profile, metric: Metric, position: int, offset: float, in_rows: bool) -> None:
    name = record.variants[position]
    tint = colour(position)
    beside = 0.0 if in_rows else 0.07
    middles, means, sds, texts = [], [], [], []
    for index, (label, of_label) in enumerate(zip(record.labels, record.values[metric.column][position], strict=True)):
        values = of_label[np.isfinite(of_label)]
        if not values.size:
            continue
        middles.append(index + offset)
        means.append(values.mean())
        sds.append(values.std(ddof=1) if values.size >= MIN_UNITS else 0.0)
        texts.append(_point_in_words(metric, (name, label_text(label)), values))
        across = np.full(values.size, middles[-1] + beside)
        dots = (values, across) if in_rows else (across, values)
        axes.plot(*dots, ".", ms=3, color=tint, alpha=0.45)
    if not middles:
        return
    x, y = (means, middles) if in_rows else (middles, means)
    axes.errorbar(
        x, y, xerr=sds if in_rows else None, yerr=None if in_rows else sds, marker="o", ms=4.5, lw=1.3, elinewidth=1.3,
        capsize=2.5, color=tint, ls="-" if record.is_scale else "none", label=name or record.name,
    )  # fmt: skip
    tell_points(axes, x, y, texts)


def _point_in_words(metric: Metric, names: Sequence[str], values: Floats) -> str:
    """Describe a point: its configuration, mean, standard deviation and number of runs."""
    point = estimate(values)
    name = ", ".join(filter(None, names))
    return f"{name}: {metric.plain} {metric.with_spread(point.mean, point.sd)}, n = {point.n}"


def _other_label(axis: str, label: Any) -> str:
    return label if isinstance(label, str) else f"{axis_title(axis)} = {label_text(label)}"
