"""Names of lines at their right ends: each beside a piece of its own line, none over another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation, blended_transform_factory

from .labels import inches, shortened
from .style import spread
from .task_styles import TaskStyle

LINE_HEIGHT = 0.15
"""Inches from one name to the next, at least."""

_FONT_SIZE = 8.0
_START, _FAN, _SAMPLE, _GAP = 0.03, 0.17, 0.27, 0.05
BESIDE = _START + _FAN + _SAMPLE + _GAP
"""Inches between the axes and the names."""

_WIDEST = 2.2


def name_width(name: str) -> float:
    """Inches that a name takes, which is shortened where it is very long."""
    return min(inches(name, _FONT_SIZE), _WIDEST)


def name_lines(
    axes: Axes, names: Sequence[str], ends: Sequence[float], styles: Mapping[str, TaskStyle], height: float
) -> None:
    """Writes every name to the right of the axes, in the order of where the lines end, so that no two leaders cross.

    From the line's end a thin leader goes to a piece of the line itself, colour and dashes, and the name stands behind
    that piece: nothing runs through it.

    Args:
        axes: with their limits set.
        names: of the lines.
        ends: where each line ends.
        styles: by name.
        height: of the axes in inches; `LINE_HEIGHT` for each name is room enough.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    low, high = axes.get_ylim()
    inch = (high - low) / height
    places = spread(ends, LINE_HEIGHT * inch, low, high)
    # x in inches from the right edge of the axes, wherever the layout puts that; y in data.
    from_edge = figure.dpi_scale_trans + ScaledTranslation(1, 0, axes.transAxes)  # type: ignore[arg-type]
    beside = blended_transform_factory(from_edge, axes.transData)
    fan, sample, text = _START + _FAN, _START + _FAN + _SAMPLE, BESIDE
    for name, end, place in zip(names, ends, places, strict=True):
        look = styles[name]
        thin = Line2D([_START, fan], [end, place], color=look.colour, lw=0.8, transform=beside, clip_on=False)
        piece = Line2D(
            [fan, sample], [place, place], color=look.colour, ls=look.dash, lw=1.8, transform=beside, clip_on=False,
            solid_capstyle="butt",
        )  # fmt: skip
        for line in (thin, piece):
            axes.add_artist(line)
        shown = shortened(name, _WIDEST, _FONT_SIZE)
        axes.text(text, place, shown, transform=beside, ha="left", va="center", fontsize=_FONT_SIZE, color="#222222")
