"""Direct labels of lines at their right ends, without overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation, blended_transform_factory

from .labels import inches, shortened
from .style import spread
from .task_styles import TaskStyle

LINE_HEIGHT = 0.15
"""Minimum distance between names in inches."""

_FONT_SIZE = 8.0
_START, _FAN, _SAMPLE, _GAP = 0.03, 0.17, 0.27, 0.05
BESIDE = _START + _FAN + _SAMPLE + _GAP
"""Distance between the axes and the names in inches."""

_WIDEST = 2.2


def name_width(name: str) -> float:
    """Return the width of a name in inches; very long names are shortened."""
    return min(inches(name, _FONT_SIZE), _WIDEST)


def name_lines(
    axes: Axes, names: Sequence[str], ends: Sequence[float], styles: Mapping[str, TaskStyle], height: float
) -> None:
    """Write the names of lines to the right of the axes, in the order of the lines' ends, so that no leaders cross.

    A thin leader connects the end of a line with a sample of its colour and dashes, followed by the name.

    Args:
        axes: the axes, with limits set.
        names: names of the lines.
        ends: y of the end of each line.
        styles: style by name.
        height: height of the axes in inches; `LINE_HEIGHT` per name suffices.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    low, high = axes.get_ylim()
    inch = (high - low) / height
    places = spread(ends, LINE_HEIGHT * inch, low, high)
    # x in inches from the right edge of the axes, y in data coordinates
    from_edge = figure.dpi_scale_trans + ScaledTranslation(1, 0, axes.transAxes)  # type: ignore[arg-type]
    beside = blended_transform_factory(from_edge, axes.transData)
    fan, sample, text = _START + _FAN, _START + _FAN + _SAMPLE, BESIDE
    for name, end, y in zip(names, ends, places, strict=True):
        look = styles[name]
        thin = Line2D([_START, fan], [end, y], color=look.colour, lw=0.8, transform=beside, clip_on=False)
        piece = Line2D(
            [fan, sample], [y, y], color=look.colour, ls=look.dash, lw=1.8, transform=beside, clip_on=False,
            solid_capstyle="butt",
        )  # fmt: skip
        for line in (thin, piece):
            axes.add_artist(line)
        shown = shortened(name, _WIDEST, _FONT_SIZE)
        axes.text(text, y, shown, transform=beside, ha="left", va="center", fontsize=_FONT_SIZE, color="#222222")
