"""Parts of charts for Plotly.js: traces, axes and texts.

A chart is a dictionary with `data` and `layout`, as Plotly.js takes them. Plotly reads some HTML in texts, so names of
a store are escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy.typing as npt
import pandas as pd

from clops_sweep.experiment.axis_names import axis_title
from clops_sweep.experiment.fields import REPLICATES

from ..collect import label_text
from ..metrics import metric_named

Chart = dict[str, Any]
Values = Sequence[Any] | npt.NDArray[Any] | pd.Series | pd.Index

OTHER = "#9a9a9a"
"""The colour of what has no colour of its own."""

ONLY = "#3d4450"
"""The colour of points if colours tell nothing apart: those of the curves beside them tell configurations apart."""

_LEAST_DISTANCE = 0.06
"""Least distance between two ticks, as a share of their axis."""

_LEAST_SPAN = 0.01
"""Least span of scores that fill an axis."""

_MOST_TICKS = 8
"""Most numbers that each have a tick."""

_LEAST_DECADES = 1.0
"""Least range of positive numbers, as a power of ten, that gets a logarithmic axis."""


def trace_of(name: str, x: Values, y: Values, mode: str = "markers", **more: object) -> Chart:
    """Return points or a line of a chart, with further settings of Plotly."""
    trace: Chart = {"type": "scatter", "mode": mode, "name": escape(name)}
    trace["x"] = json_values(pd.Series(x))
    trace["y"] = json_values(pd.Series(y))
    return trace | more


def as_numbers(column: pd.Series) -> tuple[list[float | None], bool]:
    """Return a column as numbers, and whether it holds numbers; labels are numbered in their order."""
    values = json_values(column)
    numbers = pd.to_numeric(pd.Series(values, dtype=object), errors="coerce")
    if numbers.notna().any() and numbers.notna().sum() == sum(value is not None for value in values):
        return [number if math.isfinite(number) else None for number in numbers.tolist()], True
    place = {text: at for at, text in enumerate(dict.fromkeys(values))}
    return [float(place[value]) for value in values], False


def is_logarithmic(numbers: Iterable[float | None]) -> bool:
    """Return whether numbers get a logarithmic axis."""
    known = [number for number in numbers if number is not None]
    if len(set(known)) < 3 or min(known) <= 0:
        return False
    return math.log10(max(known) / min(known)) >= _LEAST_DECADES


def number_axis(numbers: Iterable[float | None]) -> Chart:
    """Return the settings of an axis of numbers: a tick at each if they are few, logarithmic if they span a decade."""
    known = sorted({number for number in numbers if number is not None})
    axis: Chart = {}
    if is_logarithmic(known):
        axis["type"] = "log"
    if len(known) <= _MOST_TICKS:
        ticks = _apart(known, is_log=axis.get("type") == "log")
        axis |= {"tickvals": ticks, "ticktext": list(map(value_text, ticks))}
    return axis


def epoch_axis(epochs: Iterable[float]) -> Chart:
    """Return the settings of an axis of epochs: a tick at each of a few, which are whole numbers."""
    known = list(epochs)
    return {"dtick": 1} if known and max(known) - min(known) <= _MOST_TICKS else {}


def score_axis(column: str, numbers: Iterable[float | None]) -> Chart:
    """Return the settings of an axis of a column, which is wide enough to show that almost equal scores are so."""
    low, high = metric_named(column).limits
    known = [number for number in numbers if number is not None and math.isfinite(number)]
    if not known or not math.isfinite(high - low) or max(known) - min(known) >= _LEAST_SPAN:
        return {}
    middle = (max(known) + min(known)) / 2
    return {"range": [middle - _LEAST_SPAN, middle + _LEAST_SPAN]}


def _apart(numbers: Sequence[float], *, is_log: bool) -> list[float]:
    """Return ascending numbers without those whose texts would cover the one before on an axis from first to last."""
    places = [math.log10(number) for number in numbers] if is_log else list(numbers)
    kept: list[int] = []
    for position, place_on_axis in enumerate(places):
        if not kept or place_on_axis - places[kept[-1]] >= _LEAST_DISTANCE * (places[-1] - places[0]):
            kept.append(position)
    return [numbers[position] for position in kept]


def column_title(column: str) -> str:
    """Return the name of a column in words: that of an axis with its symbol, or that of a metric."""
    title = axis_title(column)
    if column in REPLICATES or title != column.replace("_", " "):
        return escape(title)
    return escape(metric_named(column).plain)


def value_text(value: object) -> str:
    """Format a value to show beside the mouse."""
    return f"{value:.4g}" if isinstance(value, float) else label_text(value)


def json_values(column: pd.Series) -> list[object]:
    """Return values for JSON: numbers, texts of labels, and None where a number is missing."""
    found: list[object] = []
    for value in column.tolist():
        if isinstance(value, int | float) and not isinstance(value, bool):
            found.append(value if math.isfinite(value) else None)
        else:
            found.append(escape(label_text(value)))
    return found


def layout_of(x: str, y: str) -> Chart:
    """Return the layout of a chart with the titles of its axes."""
    grid = {"gridcolor": "#e6e6e6", "zeroline": False, "automargin": True}
    return {
        "xaxis": {"title": {"text": x}, **grid},
        "yaxis": {"title": {"text": y}, **grid},
        "margin": {"l": 50, "r": 15, "t": 40, "b": 45},
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
        "font": {"family": "inherit", "size": 13},
        "plot_bgcolor": "#fff",
        "uirevision": "kept",
        "hovermode": "closest",
    }
