"""The best configurations of a page with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    """The means of configurations, a row each: `means[metric]` has one entry for each of `names`."""

    names: tuple[str, ...]
    means: dict[str, tuple[PairedDifference | None, ...]]

    @property
    def named_values(self) -> NamedValues:
        """The mean of each configuration in the first metric."""
        metric, means = next(iter(self.means.items()))
        known = [(name, mean.mean) for name, mean in zip(self.names, means, strict=True) if mean is not None]
        return NamedValues(metric_named(metric).plain, known, metric_named(metric).better)


@styled
def draw_best(record: BestMeans) -> Figure:
    """Draw a panel for each metric, one below the other, and a row for each configuration: its mean and interval.

    Without an interval, a row has the value of each unit. The figure is as narrow as a phone or a column of a journal.
    """
    count = len(record.names)
    panels = len(record.means)
    figure = new_figure(_WIDTH, (_ROW * count + _PANEL) * panels)
    grid: Sequence[Axes] = [row[0] for row in figure.subplots(panels, 1, squeeze=False)]
    for axes, (metric, means) in zip(grid, record.means.items(), strict=True):
        axes.grid(axis="x", color=GRID, lw=0.6)
        for height, (name, mean) in enumerate(zip(record.names, means, strict=True)):
            if mean is not None and mean.n:
                _draw_mean(axes, mean, height, f"{name}: {metric_named(metric).plain} {mean.mean:.3f}")
        axes.set_title(metric_named(metric).plain, fontweight="normal")
        axes.tick_params(axis="y", length=0)
        axes.locator_params(axis="x", nbins=4)
        name_rows(axes, list(record.names), range(count), _ROW, size=8, width=_NAMES)
        axes.set_ylim(count - 0.5, -0.5)
    return figure


def _draw_mean(axes: Axes, mean: PairedDifference, height: int, text: str) -> None:
    if np.isfinite(mean.low):
        axes.plot([mean.low, mean.high], [height, height], color=colour(0), lw=1.8)
    else:
        axes.plot(mean.of_units, [height] * len(mean.of_units), "o", ms=3.5, color=colour(0), mfc="white")
    axes.plot(mean.mean, height, "o", ms=5.5, color=colour(0))
    tell_points(axes, [mean.mean], [float(height)], [text])
