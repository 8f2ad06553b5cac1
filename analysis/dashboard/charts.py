"""Charts of single runs for Plotly.js: points, and parallel coordinates.

`customdata` holds the ids of runs: a click on a point opens its run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape, unescape
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd

from clops_sweep.experiment.axis_names import axis_title

from ..collect import label_text
from ..drawing.style import colour
from .chart_parts import (
    ONLY,
    OTHER,
    Chart,
    as_numbers,
    column_title,
    is_logarithmic,
    json_values,
    layout_of,
    number_axis,
    score_axis,
    trace_of,
    value_text,
)
from .choice import Choice

MOST_POINTS = 10_000
"""Most runs of a chart: a browser draws them as SVG in about 1.5 s.

The WebGL charts of Plotly (scattergl, parcoords) are faster but compile code from text, which the server's content
security policy forbids.
"""

MOST_COLOURS = 12
"""Most values of a column that colours tell apart."""

MOST_AXES = 10
"""Most axes of parallel coordinates."""

_TICK_DISTANCE = 0.08
"""Least distance between two labels at an axis of parallel coordinates, as a part of its height."""

_CHARACTER = 0.018
"""Width of a character as a part of a horizontal axis: 6.3 of 350 pixels."""

_LONGEST_TICK = 26
"""Most characters of a label at a horizontal axis."""

_BANDS = 5
"""Parts of the range of a metric that colours tell apart."""

_VIRIDIS = ("#440154", "#3b528b", "#21918c", "#5ec962", "#d8c71a")


def colour_labels(frame: pd.DataFrame, column: str) -> np.ndarray[Any, Any]:
    """Return the label of each row that its colour stands for; from the twelfth label on, "others"."""
    if column == "none":
        return np.full(len(frame), "runs", dtype=object)
    labels = frame[column].map(label_text).to_numpy(dtype=object)
    kept = list(dict.fromkeys(labels))
    if len(kept) <= MOST_COLOURS:
        return labels
    told_apart = set(kept[: MOST_COLOURS - 1])
    return np.array([label if label in told_apart else "others" for label in labels], dtype=object)


def scatter(frame: pd.DataFrame, names: Sequence[str], choice: Choice, picked: Sequence[str]) -> Chart:
    """Return a scatter of two columns, a trace for each colour.

    Args:
        frame: finished runs, a row each.
        names: the names of the runs.
        choice: the columns.
        picked: ids of the runs whose curves are shown; they have a ring.
    """
    shown = frame.head(MOST_POINTS)
    labels = colour_labels(shown, choice.colour)
    texts = _hover_texts(shown, names, choice)
    traces = []
    for position, label in enumerate(dict.fromkeys(labels)):
        of_label = np.flatnonzero(labels == label)
        rows = shown.iloc[of_label]
        shade = OTHER if label == "others" else colour(position)
        if choice.colour == "none":
            shade = ONLY
        is_picked = rows["run_id"].isin(picked)
        marker = {
            "color": shade,
            "size": np.where(is_picked, 12, 8).tolist(),
            "line": {"color": "#111", "width": np.where(is_picked, 2, 0).tolist()},
        }
        trace = trace_of(label, rows[choice.x], rows[choice.y], marker=marker)
        trace["customdata"] = rows["run_id"].tolist()
        trace["hovertext"] = [texts[at] for at in of_label]
        trace["hoverinfo"] = "text"
        traces.append(trace)
    return {"data": traces, "layout": layout_of_columns(shown, choice)}


def parallel(frame: pd.DataFrame, names: Sequence[str], choice: Choice, columns: Sequence[str]) -> Chart:
    """Return parallel coordinates: an axis for each column and for the vertical one, a line for each run.

    Without a column for the colour, the lines are coloured by the fifth of the range of the vertical column. `meta` of
    the layout has `narrow`, the layout for the screen of a phone: its axes lie one below the other, so x and y of all
    points change places.
    """
    shown = frame.head(MOST_POINTS)
    axes = [_axis(shown[column]) for column in (*columns[: MOST_AXES - 1], choice.y)]
    titles = [column_title(column) for column in (*columns[: MOST_AXES - 1], choice.y)]
    if choice.colour == "none":
        labels, colours = _bands(shown[choice.y])
    else:
        labels = colour_labels(shown, choice.colour)
        colours = {label: colour(position) for position, label in enumerate(dict.fromkeys(labels))}
    texts = _hover_texts(shown, names, choice)
    runs = shown["run_id"].tolist()
    traces = []
    for label in colours:
        heights: list[float | None] = []
        customdata: list[str | None] = []
        hovertext: list[str] = []
        for at in np.flatnonzero(labels == label).tolist():
            heights += [*(axis.heights[at] for axis in axes), None]  # a gap before the next run
            customdata += [runs[at]] * len(axes) + [None]
            hovertext += [texts[at]] * len(axes) + [""]
        places = [*range(len(axes)), len(axes)] * (len(heights) // (len(axes) + 1))
        trace = trace_of(str(label), places, heights, mode="lines+markers", customdata=customdata)
        trace |= {"hovertext": hovertext, "hoverinfo": "text", "opacity": 0.7}
        trace |= {"line": {"color": colours[label], "width": 1.5}, "marker": {"color": colours[label], "size": 5}}
        traces.append(trace)
    layout = layout_of("", "")
    layout["xaxis"] |= {"tickvals": list(range(len(axes))), "ticktext": titles, "range": [-0.15, len(axes) - 0.6]}
    layout["yaxis"] |= {"visible": False, "range": [-0.05, 1.05]}
    layout["legend"]["title"] = {"text": column_title(choice.y if choice.colour == "none" else choice.colour)}
    layout["annotations"] = []
    for number, axis in enumerate(axes):
        for height, text in axis.ticks:
            layout["annotations"].append(_tick(text, x=number, y=height, xanchor="left", xshift=4))
    layout["meta"] = {"narrow": _narrow_layout(axes, titles, layout["legend"])}
    return {"data": traces, "layout": layout}


def _narrow_layout(axes: Sequence[_Axis], titles: Sequence[str], legend: Chart) -> Chart:
    """Return the layout of parallel coordinates whose axes are horizontal, the first one at the top."""
    layout = layout_of("", "")
    layout["xaxis"] |= {"visible": False, "range": [-0.03, 1.03]}
    layout["yaxis"] |= {"tickvals": list(range(len(axes))), "showticklabels": False, "fixedrange": True}
    layout["yaxis"]["range"] = [len(axes) - 0.4, -0.6]
    layout["margin"] = {"l": 5, "r": 5, "t": 40, "b": 5}
    layout["legend"] = legend | {"title": legend["title"] | {"side": "top"}}
    layout["annotations"] = []
    for number, (axis, title) in enumerate(zip(axes, titles, strict=True)):
        heading = _tick(f"<b>{title}</b>", x=0, y=number, xanchor="left", yanchor="bottom", yshift=5, xref="paper")
        layout["annotations"].append(heading)
        for height, text, anchor in _side_by_side(axis.values):
            layout["annotations"].append(_tick(text, x=height, y=number, xanchor=anchor, yanchor="top", yshift=-5))
    return layout


def _tick(text: str, **more: object) -> Chart:
    """Return a text of a chart on a white ground."""
    return {"text": text, "showarrow": False, "font": {"size": 11}, "bgcolor": "#fffc"} | more


def _side_by_side(values: Mapping[float, str]) -> list[tuple[float, str, str]]:
    """Return the place, text and anchor of the labels of a horizontal axis that do not cover each other.

    The first and the last one stay within the axis.
    """
    labels: list[tuple[float, str, str]] = []
    end = -math.inf
    for middle, text in sorted(values.items()):
        short = shorten(unescape(text), _LONGEST_TICK, placeholder="…")
        width = len(short) * _CHARACTER
        anchor = "center"
        begin = middle - width / 2
        if begin < 0:
            anchor, begin = "left", middle
        elif middle + width / 2 > 1:
            anchor, begin = "right", middle - width
        if begin >= end:
            labels.append((middle, escape(short), anchor))
            end = begin + width + _CHARACTER
    return labels


@dataclass(frozen=True)
class _Axis:
    """An axis of parallel coordinates.

    Attributes:
        heights: the place of each run on the axis, 0 to 1.
        values: the text of each place.
    """

    heights: list[float | None]
    values: Mapping[float, str]

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The places with their texts that do not cover each other on a vertical axis, the lowest first."""
        kept: list[tuple[float, str]] = []
        for height, text in sorted(self.values.items()):
            if not kept or height - kept[-1][0] >= _TICK_DISTANCE:
                kept.append((height, text))
        return kept


def _axis(column: pd.Series) -> _Axis:
    """Return an axis for a column: numbers, or labels one above the other."""
    numbers, is_number = as_numbers(column)
    scaled = pd.Series(numbers, dtype=float)
    if is_number and is_logarithmic(numbers):
        scaled = scaled.map(math.log10, na_action="ignore")
    low, high = scaled.min(), scaled.max()
    heights = (scaled - low) / (high - low) if high > low else scaled - low + 0.5
    values = json_values(column) if not is_number else [value_text(number) for number in numbers]
    texts = {}
    for height, value in zip(heights, values, strict=True):
        if math.isfinite(height):
            texts[height] = str(value)
    return _Axis([height if math.isfinite(height) else None for height in heights], texts)


def _bands(column: pd.Series) -> tuple[np.ndarray[Any, Any], dict[str, str]]:
    """Return the band of each value of a column, and the colour of each band, from the lowest on."""
    numbers, is_number = as_numbers(column)
    values = pd.Series(numbers, dtype=float)
    low, high = values.min(), values.max()
    if not is_number or not high > low:
        return np.full(len(values), "runs", dtype=object), {"runs": colour(0)}
    edges = np.linspace(low, high, _BANDS + 1)
    names = [f"{value_text(edges[band])} to {value_text(edges[band + 1])}" for band in range(_BANDS)]
    band_of = np.clip(np.digitize(values, edges) - 1, 0, _BANDS - 1)
    labels = np.array([names[band] for band in band_of], dtype=object)
    labels[values.isna().to_numpy()] = ""  # no line
    return labels, dict(zip(names, _VIRIDIS, strict=True))


def _hover_texts(frame: pd.DataFrame, names: Sequence[str], choice: Choice) -> list[str]:
    """Return what is shown beside the mouse for each run: its name, its values and the beginning of its id."""
    columns = list(dict.fromkeys((choice.x, choice.y)))
    titles = [column_title(column) for column in columns]
    values = [[value_text(value) for value in frame[column].tolist()] for column in columns]
    texts = []
    for at, run in enumerate(frame["run_id"].tolist()):
        lines = [f"{title}: {escape(of_column[at])}" for title, of_column in zip(titles, values, strict=True)]
        texts.append("<br>".join([escape(names[at]), *lines, f"run {escape(run[:8])}"]))
    return texts


def layout_of_columns(frame: pd.DataFrame, choice: Choice) -> Chart:
    """Return the layout of a chart of two columns."""
    layout = layout_of(column_title(choice.x), column_title(choice.y))
    layout["yaxis"] |= score_axis(choice.y, as_numbers(frame[choice.y])[0])
    numbers, is_number = as_numbers(frame[choice.x])
    if not is_number:
        places = list(dict.fromkeys(json_values(frame.sort_values(choice.x, kind="stable")[choice.x])))
        layout["xaxis"] |= {"type": "category", "categoryorder": "array", "categoryarray": places}
    else:
        layout["xaxis"] |= number_axis(numbers)
    layout["showlegend"] = choice.colour != "none"
    layout["legend"]["title"] = {"text": escape(axis_title(choice.colour)) if choice.colour != "none" else ""}
    return layout
