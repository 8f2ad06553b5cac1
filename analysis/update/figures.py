"""Figures of an update report: flips by group of instances, reliability curves, and tracings of flips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from ..drawing.labels import shortened
from ..drawing.scale_bars import bar_length
from ..drawing.style import GRID, MUTED, colour, new_figure, styled
from ..drawing.svg import tell_points
from ..drawing.values_in_words import NamedValues
from ..statistics import MIN_UNITS
from .measures import Bin, Quantity, Slice
from .people import FlipTracing

_WRONG, _RIGHT = colour(1), colour(0)
_BECAME = {"wrong": "became wrong", "right": "became right"}
_APART = 0.13
"""Distance of an interval from the middle of its bar."""

_WIDTH, _NAMES = 5.8, 1.75
"""Width of figures and of the names beside rows in inches: readable on a phone without scrolling."""

_STRIP = 0.95


@dataclass(frozen=True)
class Flips:
    """The groups of instances of the figure of flips; `noun` is what an instance is in words."""

    slices: tuple[Slice, ...]
    noun: str = "instance"

    @property
    def named_values(self) -> NamedValues:
        """The share of each group that became wrong."""
        values = [(part.title(self.noun), part.right_to_wrong.value) for part in self.slices]
        return NamedValues("Became wrong", values, "lower", percent=True)


@dataclass(frozen=True)
class Reliability:
    """Reliability curves before and after."""

    before: tuple[Bin, ...]
    after: tuple[Bin, ...]

    @property
    def named_values(self) -> NamedValues:
        """The share that is right in the bin of highest confidence, before and after."""
        values = []
        for when, curve in (("before", self.before), ("after", self.after)):
            if curve:
                values.append((f"{when}, at a confidence of {curve[-1].confidence:.1%},", curve[-1].accuracy))
        return NamedValues("Share right in the bin of highest confidence", values, "higher", percent=True)


@styled
def draw_flips(record: Flips) -> Figure:
    """Draw two bars for each group of instances: the share that became wrong (left) and right (right).

    Groups of fewer than three people are grey.
    """
    slices = record.slices
    figure = new_figure(_WIDTH, 1.0 + 0.26 * len(slices))
    axes = figure.subplots()
    places = np.arange(len(slices))[::-1]
    wrong = [part.right_to_wrong for part in slices]
    right = [part.wrong_to_right for part in slices]
    is_small = [part.units < MIN_UNITS for part in slices]
    titles = [part.title(record.noun) for part in slices]
    _draw_side(axes, places, wrong, is_small, titles, -1)
    _draw_side(axes, places, right, is_small, titles, 1)
    axes.axvline(0, color="#444444", lw=0.8)
    axes.set_yticks(
        places,
        [f"{shortened(title, _NAMES, 8.5)} ({part.instances:,})" for title, part in zip(titles, slices, strict=True)],
    )
    axes.set_ylim(-0.7, len(slices) - 0.3)
    most = max([0.01, *_ends([*wrong, *right])])
    axes.set_xlim(-1.05 * most, 1.05 * most)
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):.1%}" if most < 0.05 else f"{abs(value):.0%}")
    axes.grid(axis="x", color=GRID, lw=0.6)
    axes.tick_params(axis="y", length=0)
    figure.legend(loc="outside upper left", ncols=2)
    return figure


def _draw_side(
    axes: Axes,
    places: np.ndarray,
    shares: Sequence[Quantity],
    is_small: Sequence[bool],
    titles: Sequence[str],
    sign: int,
) -> None:
    """Draw the bars of one side with their intervals: -1 became wrong, 1 became right."""
    shade = _WRONG if sign < 0 else _RIGHT
    label = _BECAME["wrong" if sign < 0 else "right"]
    values = sign * np.array([share.value for share in shares])
    bars = axes.barh(places, values, height=0.62, color=shade, alpha=0.85, label=label)
    for bar, small in zip(bars, is_small, strict=True):
        if small:
            bar.set_facecolor(GRID)
    for place, share in zip(places, shares, strict=True):
        if np.isfinite(share.low):
            height = place - sign * _APART  # both intervals may end at 0: at one height they would look like one
            ends = [sign * share.low, sign * share.high]
            axes.plot(ends, [height, height], color="black", lw=1.0, marker="|", ms=5, zorder=3)
    said = [f"{title}: {abs(value):.1%} {label}" for title, value in zip(titles, values, strict=True)]
    tell_points(axes, values, places.astype(float), said)


@styled
def draw_reliability(record: Reliability) -> Figure:
    """Draw the share of correct decisions over their confidence, and below it a histogram of the confidence."""
    figure = new_figure(5.6, 4.6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    above.plot([0, 1], [0, 1], color=MUTED, lw=0.8, dashes=(4, 2), label="calibrated")
    _draw_curve(above, below, record.before, "before", MUTED, "s")
    _draw_curve(above, below, record.after, "after", _RIGHT, "o")
    least = min([0.5, *(part.confidence for part in (*record.before, *record.after))])
    above.set(ylabel="share right", ylim=(0, 1.03), xlim=(least - 0.03, 1.02))
    below.set(xlabel="confidence of the decision", ylabel="share of\ndecisions", ylim=(0, None))
    for axes in (above, below):
        axes.grid(color=GRID, lw=0.6)
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    below.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    handles, names = above.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper left", ncols=3)
    return figure


def _draw_curve(above: Axes, below: Axes, curve: Sequence[Bin], label: str, shade: str, marker: str) -> None:
    confidence = np.array([part.confidence for part in curve])
    accuracy = np.array([part.accuracy for part in curve])
    counts = np.array([part.count for part in curve])
    above.plot(confidence, accuracy, color=shade, marker=marker, ms=4, lw=1.5, label=label)
    said = [f"{label}: {part.count:,} decisions, {part.accuracy:.1%} right" for part in curve]
    tell_points(above, confidence, accuracy, said)
    below.plot(confidence, counts / max(1, counts.sum()), color=shade, marker=marker, ms=3, lw=1.2)


@styled
def draw_tracing_of_flip(tracing: FlipTracing) -> Figure:
    """Draw the signal of a flip, channels one above another."""
    figure = new_figure(_WIDTH, 0.5 + _STRIP * max(1.0, 0.5 * len(tracing.channels)))
    axes = figure.subplots()
    _draw_strip(axes, tracing)
    axes.set_xlabel("sample" if tracing.seconds is None else "time, s")
    return figure


def _draw_strip(axes: Axes, tracing: FlipTracing) -> None:
    samples = tracing.signal.shape[-1]
    length = samples if tracing.seconds is None else tracing.seconds
    time = np.arange(samples) * length / samples
    span = float(np.ptp(tracing.signal)) or 1.0
    shade = _RIGHT if tracing.flip.became == "right" else _WRONG
    offsets = [-1.1 * span * position for position in range(len(tracing.channels))]
    for offset, values in zip(offsets, tracing.signal, strict=True):
        axes.plot(time, values - values.mean() + offset, color="#222222", lw=0.7)
    flip = tracing.flip
    title = f"{tracing.pseudonym}: {flip.label}; before {flip.before}, after {flip.after}"
    axes.set_title(shortened(title, _WIDTH - 0.6, 8.5), fontsize=8.5, fontweight="normal", loc="left", color=shade)
    names = [shortened(name, 0.6, 7.5) for name in tracing.channels]
    axes.set_yticks(offsets, names, fontsize=7.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, length)
    axes.grid(axis="x", color=GRID, lw=0.5)
    _draw_bar(axes, tracing, span)


def _draw_bar(axes: Axes, tracing: FlipTracing, span: float) -> None:
    """Draw a scale bar right of the signal; none if it is flat, or if its channels have several units."""
    length = bar_length(span)
    if not length or "," in tracing.unit:
        return
    low, high = axes.get_ylim()
    middle = (low + high) / 2
    beside = axes.get_yaxis_transform()
    ends = [middle - length / 2, middle + length / 2]
    axes.plot([1.015, 1.015], ends, color="#222222", lw=1.5, transform=beside, clip_on=False, solid_capstyle="butt")
    text = f"{length:g} {tracing.unit}"
    axes.text(1.025, middle, text, fontsize=7.5, va="center", rotation="vertical", transform=beside)
    axes.set_ylim(low, high)


def _ends(quantities: Sequence[Quantity]) -> list[float]:
    ends = []
    for quantity in quantities:
        ends += [end for end in (quantity.value, quantity.low, quantity.high) if np.isfinite(end)]
    return ends
