"""The best configurations of a page with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..drawing.labels import name_rows
from ..drawing.style import GRID, colour, new_figure, styled
from ..drawing.svg import tell_points
from ..drawing.values_in_words import NamedValues
from ..metrics import metric_named
from ..statistics import PairedDifference

_WIDTH = 4.2
_NAMES = 1.7
"""Width of the names, in inches."""

_ROW = 0.44
"""Height of a row in inches: three lines of a name."""

_PANEL = 0.65
"""Height of a panel without its rows, in inches."""


@dataclass(frozen=True)
class BestMeans:
    """The means of configurations: `means[metric]` has one entry for each of `names`.

    It is None for a configuration of a search space that does not show the metric. `titles` has the headings of metrics
    in the table of the same values, if they have other names there.
    """

    names: tuple[str, ...]
    means: dict[str, tuple[PairedDifference | None, ...]]
    titles: Mapping[str, str] = field(default_factory=dict)

    def title(self, metric: str) -> str:
        """Return the name of a metric, as the table of the same values has it."""
        return self.titles.get(metric, metric_named(metric).plain)

    @property
    def named_values(self) -> NamedValues:
        """The mean of each configuration in the first metric."""
        metric, means = next(iter(self.means.items()))
        known = [(name, mean.mean) for name, mean in zip(self.names, means, strict=True) if mean is not None]
        return NamedValues(self.title(metric), known, metric_named(metric).better)


@styled
def draw_best(record: BestMeans) -> Figure:
    """Draw a panel for each metric, one below the other, with a row for each configuration that has it.

    A row has the mean and its interval; without an interval, the value of each unit. The figure is as narrow as a phone
    or a column of a journal.
    """
    shown = {}
    for metric, means in record.means.items():
        of_names = zip(record.names, means, strict=True)
        shown[metric] = [(name, mean) for name, mean in of_names if mean is not None]
    heights = [_ROW * len(rows) + _PANEL for rows in shown.values()]
    figure = new_figure(_WIDTH, sum(heights))
    subplots = figure.subplots(len(shown), 1, squeeze=False, height_ratios=heights)
    grid: Sequence[Axes] = [row[0] for row in subplots]
    for axes, (metric, rows) in zip(grid, shown.items(), strict=True):
        axes.grid(axis="x", color=GRID, lw=0.6)
        for height, (name, mean) in enumerate(rows):
            if mean.n:
                _draw_mean(axes, mean, height, f"{name}: {record.title(metric)} {mean.mean:.3f}")
        better = metric_named(metric).better
        direction = f" ({better} is better)" if better else ""
        axes.set_title(f"{record.title(metric)}{direction}", fontweight="normal")
        axes.tick_params(axis="y", length=0)
        axes.locator_params(axis="x", nbins=4)
        name_rows(axes, [name for name, _ in rows], range(len(rows)), _ROW, size=8, width=_NAMES)
        axes.set_ylim(len(rows) - 0.5, -0.5)
    return figure


def _draw_mean(axes: Axes, mean: PairedDifference, height: int, text: str) -> None:
    if np.isfinite(mean.low):
        axes.plot([mean.low, mean.high], [height, height], color=colour(0), lw=1.8)
    else:
        axes.plot(mean.of_units, [height] * len(mean.of_units), "o", ms=3.5, color=colour(0), mfc="white")
    axes.plot(mean.mean, height, "o", ms=5.5, color=colour(0))
    tell_points(axes, [mean.mean], [float(height)], [text])
