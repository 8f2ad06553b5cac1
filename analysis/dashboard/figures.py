"""Plotly figures of records, as plain data."""

from __future__ import annotations

import html
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import Normalize, to_hex, to_rgb

from clops_sweep.store.rows import printable

from ..axis_names import axis_title
from ..drawing.style import DIVERGING, GRID, MUTED, SEQUENTIAL, colour
from ..drawing.task_styles import task_styles
from ..figures.curves import LearningCurves
from ..figures.importance import Importance
from ..figures.optimization_history import OptimizationHistory
from ..metrics import Metric, metric_named
from .records.compare import Compared
from .records.overlay import Overlay
from .records.overview import RunHistory
from .records.parallel import ParallelCoordinates

Figure = dict[str, Any]
_BINS = 24
"""Number of line colours: all lines of one colour are one path in the browser."""

_MOST_TICKS = 9
_EQUALS = "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"
"""Spaces at which names do not wrap."""
_ABOVE: Figure = {"orientation": "h", "y": 1.02, "yanchor": "bottom"}


def plain(text: str) -> str:
    """Escape text for Plotly, which interprets <b> and <a> as markup."""
    return html.escape(printable(text), quote=False)


def colours(values: Any, limits: tuple[float, float], metric: Metric) -> list[str]:
    """Return the colours of values, as in the report's heatmaps."""
    scale = mpl.colormaps[DIVERGING if metric.signed else SEQUENTIAL]
    return [to_hex(it) for it in scale(Normalize(*limits)(np.ravel(np.asarray(values, dtype=float))))]


def curves_figure(record: LearningCurves) -> Figure:
    """Draw a line per task with a band of one standard deviation, and a vertical line at the end of each task."""
    data: list[Figure] = []
    styles = task_styles(record.tasks)
    for position, task in enumerate(record.tasks):
        mean, sd = record.mean[position], np.nan_to_num(record.sd[position])
        name, ink = plain(task), styles[task].colour
        if sd.any():
            data.append(_band(record.epochs, mean, sd, ink, name))
        texts = [
            f"{name}<br>epoch {epoch}: {value:.3f}" + (f" ± {spread:.3f}" if spread else "")
            for epoch, value, spread in zip(record.epochs, mean, sd, strict=True)
        ]
        data.append(
            {"type": "scatter", "mode": "lines", "name": name, "x": _numbers(record.epochs), "y": _numbers(mean)}
            | {"line": {"color": ink, "width": 2}, "text": texts, "hoverinfo": "text"}
        )
    ends = [block.last + 0.5 for block in record.blocks[:-1]]
    layout = _layout(height=320, xaxis={"title": {"text": "epoch"}}, yaxis={"title": {"text": plain(record.quantity)}})
    layout["shapes"] = [
        {"type": "line", "x0": end, "x1": end, "y0": 0, "y1": 1, "yref": "paper"}
        | {"line": {"color": MUTED, "width": 1, "dash": "dot"}}
        for end in ends
    ]
    return {"data": data, "layout": layout | {"legend": _ABOVE}}


def parallel_figure(record: ParallelCoordinates, names: Sequence[str], keys: Sequence[str | None]) -> Figure:
    """Draw parallel coordinates; clicking a line selects its key.

    Args:
        record: the data.
        names: names of the configurations.
        keys: keys of the configurations in addresses.
    """
    columns = len(record.axes) + 1
    low, high = (float(record.values.min()), float(record.values.max())) if len(record.values) else (0.0, 1.0)
    reach = high - low or 1.0
    heights = np.column_stack([record.places, (record.values - low) / reach])
    bins = np.minimum(((record.values - low) / reach * _BINS).astype(int), _BINS - 1)
    limits = (-max(abs(low), abs(high), 1e-9), max(abs(low), abs(high), 1e-9)) if record.metric.signed else (low, high)
    data: list[Figure] = []
    quantity = plain(record.metric.plain)
    for number in np.unique(bins):
        lines = np.flatnonzero(bins == number).tolist()
        ink = colours([record.values[lines].mean()], limits, record.metric)[0]
        texts = [
            f"{plain(names[line])}<br>{quantity}: {record.metric.with_spread(it.mean, it.sd)} (n = {it.n})"
            for line in lines
            for it in [record.estimates[line]]
        ]
        data.append(
            {"type": "scatter", "mode": "lines", "showlegend": False, "hoverinfo": "text", "line": {"color": ink}}
            | {"x": [*range(columns), None] * len(lines), "opacity": 0.7}
            | {"y": [None if at is None else at for line in lines for at in (*heights[line].tolist(), None)]}
            | {"text": [text for text in texts for _ in range(columns + 1)]}
            | {"customdata": [keys[line] for line in lines for _ in range(columns + 1)]}
        )
    titles = [*map(axis_title, record.axes), record.metric.plain]
    layout = _layout(height=480, margin={"l": 60, "r": 60, "t": 90, "b": 30}, hovermode="closest")
    ticks = list(range(columns))
    words = 2 if columns < 8 else 1
    layout["xaxis"] = {"tickvals": ticks, "ticktext": [_lines(title, words) for title in titles], "tickangle": 0}
    layout["xaxis"] |= {"side": "top", "range": [-0.3, columns - 0.7], "showgrid": False, "fixedrange": True}
    layout["yaxis"] = {"visible": False, "range": [-0.05, 1.05], "fixedrange": True}
    layout["shapes"] = [
        {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": {"color": "#444444", "width": 1}} for x in ticks
    ]
    layout["annotations"] = [
        {"x": x, "y": y, "text": plain(text), "showarrow": False, "xanchor": "right", "xshift": -4}
        | {"font": {"size": 11}, "bgcolor": "rgba(255,255,255,0.8)"}
        for x, found in enumerate((*map(_ticks, record.labels), _scale(low, high, record.metric)))
        for y, text in found
    ]
    return {"data": data, "layout": layout}


def overlay_figure(record: Overlay) -> Figure:
    """Draw a line per run or configuration, with a band of one standard deviation over its runs."""
    data: list[Figure] = []
    for position, line in enumerate(record.lines):
        ink, name = colour(position), plain(f"{line.name} (n = {line.n})" if line.n > 1 else line.name)
        if np.isfinite(line.sd).any():
            data.append(_band(line.epochs, line.mean, np.nan_to_num(line.sd), ink, name))
        texts = [f"{name}<br>epoch {at}: {value:.3f}" for at, value in zip(line.epochs, line.mean, strict=True)]
        data.append(
            {"type": "scatter", "mode": "lines", "name": name, "x": _numbers(line.epochs), "y": _numbers(line.mean)}
            | {"line": {"color": ink, "width": 2}, "text": texts, "hoverinfo": "text"}
        )
    layout = _layout(height=340, xaxis={"title": {"text": "epoch"}}, yaxis={"title": {"text": plain(record.quantity)}})
    return {"data": data, "layout": layout | {"showlegend": True, "legend": _ABOVE}}


def runs_figure(record: RunHistory, texts: Sequence[str]) -> Figure:
    """Draw a dot per finished run, in the order of their ends, and the best so far as steps."""
    dots: Figure = {"type": "scatter", "mode": "markers", "name": "run", "marker": {"color": colour(0), "size": 5}}
    dots |= {"x": _numbers(record.numbers), "y": _numbers(record.values), "customdata": list(record.run_ids)}
    data = [dots | {"text": list(map(plain, texts)), "hoverinfo": "text"}]
    if record.best.size:
        best: Figure = {"type": "scatter", "mode": "lines", "name": "best run so far", "hoverinfo": "skip"}
        best |= {"line": {"color": "black", "shape": "hv", "width": 1.5}}
        data.append(best | {"x": _numbers(record.numbers), "y": _numbers(record.best)})
    quantity = plain(record.metric.plain)
    layout = _layout(height=300, xaxis={"title": {"text": "finished runs"}}, yaxis={"title": {"text": quantity}})
    if record.total < _MOST_TICKS:
        layout["xaxis"]["dtick"] = 1
    return {"data": data, "layout": layout | {"legend": _ABOVE}}


def compared_figure(metric: Metric, records: Sequence[Compared], names: Sequence[str]) -> Figure:
    """Draw a row per configuration: its runs as small dots, the mean and, if defined, the 95 % interval."""
    last = len(records) - 1
    x = [value for it in records for value in _numbers(it.values)]
    y = [last - at for at, it in enumerate(records) for _ in it.values]
    runs: Figure = {"type": "scatter", "mode": "markers", "name": "run", "x": x, "y": y, "hoverinfo": "x"}
    runs["marker"] = {"color": MUTED, "size": 5, "opacity": 0.5}
    means: Figure = {"type": "scatter", "mode": "markers", "name": "mean and 95 % interval", "hoverinfo": "text"}
    means["marker"] = {"color": colour(0), "size": 10, "symbol": "diamond"}
    found = [it.value.interval if it.value.has_interval else None for it in records]
    centres = [it.value.estimate.mean for it in records]
    above = [0.0 if it is None else it.high - mean for it, mean in zip(found, centres, strict=True)]
    below = [0.0 if it is None else mean - it.low for it, mean in zip(found, centres, strict=True)]
    means["error_x"] = {"type": "data", "symmetric": False, "array": _numbers(above), "arrayminus": _numbers(below)}
    means |= {"x": _numbers(centres), "y": [last - at for at in range(len(records))], "text": list(map(plain, names))}
    layout = _layout(height=130 + 44 * len(records), xaxis={"title": {"text": plain(metric.plain)}})
    lines = [wrap(name.replace(" = ", _EQUALS), 34) for name in names]  # not broken between "b =" and its value
    ticks = ["<br>".join(plain(line.replace(_EQUALS, " = ")) for line in of_name) for of_name in lines]
    layout["yaxis"] |= {"tickvals": [last - at for at in range(len(records))], "ticktext": ticks, "showgrid": False}
    layout["yaxis"]["range"] = [-0.6, last + 0.6]
    return {"data": [runs, means], "layout": layout | {"legend": _ABOVE}}


def history_figure(history: OptimizationHistory) -> Figure:
    """Draw a dot per complete trial, a cross per pruned trial, and the best so far as steps."""
    dots: Figure = {"type": "scatter", "mode": "markers", "name": "trial", "marker": {"color": colour(0), "size": 7}}
    best: Figure = {
        "type": "scatter",
        "mode": "lines",
        "name": "best so far",
        "line": {"color": "black", "shape": "hv"},
    }
    data = [
        dots | {"x": _numbers(history.numbers), "y": _numbers(history.values)},
        best | {"x": _numbers(history.numbers), "y": _numbers(history.best)},
    ]
    if history.pruned_numbers.size:
        crosses: Figure = {"type": "scatter", "mode": "markers", "name": "pruned, at its last task"}
        crosses |= {"marker": {"symbol": "x", "color": MUTED, "size": 6}}
        data.append(crosses | {"x": _numbers(history.pruned_numbers), "y": _numbers(history.pruned_values)})
    quantity = plain(metric_named(history.objective).plain)
    layout = _layout(height=320, xaxis={"title": {"text": "trial"}}, yaxis={"title": {"text": quantity}})
    return {"data": data, "layout": layout}


def importance_figure(record: Importance) -> Figure:
    """Draw a bar per axis, the most important on top."""
    bars: Figure = {"type": "bar", "orientation": "h", "marker": {"color": colour(0)}, "hoverinfo": "x"}
    bars |= {"x": _numbers(np.maximum(record.mean, 0)), "y": [plain(axis_title(axis)) for axis in record.axes]}
    bars |= {"error_x": {"type": "data", "array": _numbers(np.nan_to_num(record.sd)), "color": "#333333"}}
    quantity = f"share of the variance of {plain(record.metric.plain)}"
    layout = _layout(height=90 + 40 * len(record.axes), xaxis={"title": {"text": quantity}})
    layout["yaxis"] = {"autorange": "reversed", "automargin": True, "type": "category"}
    return {"data": [bars], "layout": layout}


def _band(epochs: Any, mean: Any, sd: Any, ink: str, name: str) -> Figure:
    """Return the band of one standard deviation around a line."""
    around = np.concatenate([epochs, epochs[::-1]])
    band = np.concatenate([mean + sd, (mean - sd)[::-1]])
    fill = f"rgba({','.join(str(round(255 * part)) for part in to_rgb(ink))},0.15)"
    return {"type": "scatter", "x": _numbers(around), "y": _numbers(band), "fill": "toself", "fillcolor": fill} | {
        "line": {"width": 0},
        "mode": "lines",
        "hoverinfo": "skip",
        "showlegend": False,
        "name": name,
    }


def _layout(**given: Any) -> Figure:
    axis = {"gridcolor": GRID, "zeroline": False, "automargin": True}
    for name in ("xaxis", "yaxis"):
        given[name] = axis | given.get(name, {})
    base: Figure = {"paper_bgcolor": "white", "plot_bgcolor": "white", "font": {"size": 13}}
    return base | {"margin": {"l": 60, "r": 20, "t": 20, "b": 50}, "hoverlabel": {"align": "left"}} | given


def _numbers(values: Any) -> list[float | None]:
    """Replace NaN by None for JSON."""
    return [float(value) if np.isfinite(value) else None for value in values]


def _lines(title: str, most: int) -> str:
    """Wrap a title after a number of words per line."""
    words = title.split()
    return "<br>".join(plain(" ".join(words[at : at + most])) for at in range(0, len(words), most))


def _ticks(labels: Sequence[str]) -> list[tuple[float, str]]:
    """Return positions and texts of the labels of an axis; if there are many, an evenly spaced selection."""
    last = len(labels) - 1
    shown = range(len(labels)) if last < _MOST_TICKS else np.unique(np.linspace(0, last, _MOST_TICKS).astype(int))
    return [(at / last, labels[at] if len(labels[at]) < 24 else labels[at][:22] + "…") for at in map(int, shown)]


def _scale(low: float, high: float, metric: Metric) -> list[tuple[float, str]]:
    return [(share, metric.text(low + share * (high - low))) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
