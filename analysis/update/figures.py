"""Figures of an update report: flips by group of instances, and reliability curves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from ..drawing.labels import shortened
from ..drawing.style import GRID, MUTED, colour, new_figure, styled
from ..drawing.svg import tell_points
from .measures import Bin, Slice

_WRONG, _RIGHT = colour(1), colour(0)
_APART = 0.13
"""Distance of an interval from the middle of its bar."""


@styled
def draw_flips(slices: Sequence[Slice]) -> Figure:
    """Draw two bars for each group of instances: the share that became wrong (left) and right (right)."""
    figure = new_figure(7.4, 1.0 + 0.26 * len(slices))
    axes = figure.subplots()
    places = np.arange(len(slices))[::-1]
    for sign, shade, label, sides in (
        (-1, _WRONG, "right before, wrong after", [it.right_to_wrong for it in slices]),
        (1, _RIGHT, "wrong before, right after", [it.wrong_to_right for it in slices]),
    ):
        values = sign * np.array([it.value for it in sides])
        axes.barh(places, values, height=0.62, color=shade, alpha=0.85, label=label)
        for place, it in zip(places, sides, strict=True):
            if np.isfinite(it.low):
                # Both intervals may end at 0: at one height they would look like one.
                height = place - sign * _APART
                axes.plot(
                    [sign * it.low, sign * it.high], [height, height], color="black", lw=1.0, marker="|", ms=5, zorder=3
                )
        said = [f"{it.title}: {abs(value):.1%} {label}" for it, value in zip(slices, values, strict=True)]
        tell_points(axes, values, places.astype(float), said)
    axes.axvline(0, color="#444444", lw=0.8)
    names = [f"{shortened(it.title, 2.4, 8.5)} ({it.instances:,})" for it in slices]
    axes.set_yticks(places, names)
    axes.set_ylim(-0.7, len(slices) - 0.3)
    most = max([0.01, *(end for it in slices for q in (it.right_to_wrong, it.wrong_to_right) for end in _ends(q))])
    axes.set_xlim(-1.05 * most, 1.05 * most)
    axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):.1%}" if most < 0.05 else f"{abs(value):.0%}")
    axes.grid(axis="x", color=GRID, lw=0.6)
    axes.tick_params(axis="y", length=0)
    figure.legend(loc="outside upper left", ncols=2)
    return figure


@styled
def draw_reliability(curves: tuple[Sequence[Bin], Sequence[Bin]]) -> Figure:
    """Draw the share of correct decisions over their confidence, and below it a histogram of the confidence."""
    figure = new_figure(5.6, 4.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    above.plot([0, 1], [0, 1], color=MUTED, lw=0.8, dashes=(4, 2), label="calibrated")
    whole = [max(1, sum(it.count for it in curve)) for curve in curves]
    for curve, label, shade, marker, total in zip(
        curves, ("before", "after"), (MUTED, _RIGHT), "so", whole, strict=True
    ):
        x, y = (np.array([getattr(it, name) for it in curve]) for name in ("confidence", "accuracy"))
        above.plot(x, y, color=shade, marker=marker, ms=4, lw=1.5, label=label)
        tell_points(above, x, y, [f"{label}: {it.count:,} decisions, {it.accuracy:.1%} right" for it in curve])
        below.plot(x, [it.count / total for it in curve], color=shade, marker=marker, ms=3, lw=1.2)
    least = min([0.5, *(it.confidence for curve in curves for it in curve)])
    above.set(ylabel="share right", ylim=(0, 1.03), xlim=(least - 0.03, 1.02))
    below.set(xlabel="confidence of the decision", ylabel="share of\ndecisions", ylim=(0, None))
    for axes in (above, below):
        axes.grid(color=GRID, lw=0.6)
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    below.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    above.legend(loc="upper left")
    return figure


def _ends(quantity: object) -> list[float]:
    return [end for end in vars(quantity).values() if np.isfinite(end)]
