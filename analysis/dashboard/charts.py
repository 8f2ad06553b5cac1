"""Interactive charts as data for Plotly.js: runs, learning curves, and the history of a search.

A chart is a dictionary with `data` and `layout`, as Plotly.js takes them. Plotly reads some HTML in texts, so names of
a store are escaped. `customdata` holds the ids of runs: a click on a point opens its run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from clops_sweep.experiment.fields import REPLICATES
from clops_sweep.search.records import StudyRecord

from ..axis_names import axis_title
from ..collect import Experiment, label_text
from ..drawing.style import colour
from ..figures.optimization_history import OptimizationHistory, optimization_history
from ..metrics import metric_named, words
from .runs import RunsTable, kept_labels

Chart = dict[str, Any]
Values = Sequence[Any] | npt.NDArray[Any] | pd.Series | pd.Index

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

_BANDS = 5
"""Parts of the range of a metric that colours tell apart."""

_LEAST_DECADES = 1.0
"""Least range of positive numbers, as a power of ten, that gets a logarithmic axis."""

_OTHER = "#9a9a9a"
_VIRIDIS = ("#440154", "#3b528b", "#21918c", "#5ec962", "#d8c71a")
_VIEWS = ("points", "means", "parallel")


@dataclass(frozen=True)
class Choice:
    """What a reader has chosen of the runs of an experiment.

    Attributes:
        view: "points" (a point a run), "means" (over the runs of each colour) or "parallel" (a line a run).
        x: the column along the horizontal axis.
        y: the column along the vertical axis.
        colour: the column that colours tell apart; "none" for one colour.
        keep: the only label to show of some columns.
    """

    view: str
    x: str
    y: str
    colour: str
    keep: Mapping[str, str]

    @classmethod
    def of(cls, given: Mapping[str, str], table: RunsTable, experiment: Experiment) -> Choice:
        """Return the choice of an address; columns that the table lacks are replaced by defaults."""
        columns = [*table.labels, *table.measured]
        measure = next((name for name in _headline(experiment) if name in table.measured), columns[-1])
        varied = table.varied or columns
        numeric = [name for name in experiment.number_axes if name in varied]
        first = (numeric or varied)[0]
        others = [name for name in varied if name != first and name not in REPLICATES]
        return cls(
            view=_known(given.get("view", ""), _VIEWS, "points"),
            x=_known(given.get("x", ""), columns, first),
            y=_known(given.get("y", ""), columns, measure),
            colour=_known(given.get("colour", ""), ["none", *table.labels], (others or ["none"])[0]),
            keep=kept_labels(given, table),
        )

    def of_table(self, table: RunsTable) -> pd.DataFrame:
        """Return the finished runs of a table that have the labels to keep."""
        frame = table.only(self.keep).frame
        return frame[frame["status"] == "finished"]


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
        is_picked = rows["run_id"].isin(picked)
        marker = {
            "color": _OTHER if label == "others" else colour(position),
            "size": np.where(is_picked, 12, 8).tolist(),
            "line": {"color": "#111", "width": np.where(is_picked, 2, 0).tolist()},
        }
        trace = _trace(label, rows[choice.x], rows[choice.y], marker=marker)
        trace["customdata"] = rows["run_id"].tolist()
        trace["hovertext"] = [texts[at] for at in of_label]
        trace["hoverinfo"] = "text"
        traces.append(trace)
    return {"data": traces, "layout": _layout_of(shown, choice)}


def means(frame: pd.DataFrame, choice: Choice) -> Chart:
    """Return the mean of a column over the runs of each colour at each place, with its standard deviation."""
    labels = colour_labels(frame, choice.colour)
    traces = []
    for position, label in enumerate(dict.fromkeys(labels)):
        rows = frame[labels == label]
        values = pd.Series(_values(rows[choice.y]), index=rows.index)
        places = pd.Series(_values(rows[choice.x]), index=rows.index)
        by_place = pd.to_numeric(values, errors="coerce").groupby(places, sort=False).agg(["mean", "std", "count"])
        texts = [
            f"{escape(str(label))}<br>{_title(choice.x)}: {at}<br>{_title(choice.y)}: {row['mean']:.3f}"
            f" ± {row['std']:.3f}<br>{row['count']:.0f} runs"
            for at, row in by_place.iterrows()
        ]
        trace = _trace(label, by_place.index, by_place["mean"], mode="lines+markers", hovertext=texts, hoverinfo="text")
        trace["line"] = {"color": _OTHER if label == "others" else colour(position)}
        trace["error_y"] = {"type": "data", "array": _values(by_place["std"]), "thickness": 1.5}
        traces.append(trace)
    return {"data": traces, "layout": _layout_of(frame, choice)}


def parallel(frame: pd.DataFrame, names: Sequence[str], choice: Choice, columns: Sequence[str]) -> Chart:
    """Return parallel coordinates: an axis for each column and for the vertical one, a line for each run.

    Without a column for the colour, the lines are coloured by the fifth of the range of the vertical column.
    """
    shown = frame.head(MOST_POINTS)
    axes = [_axis(shown[column]) for column in (*columns[: MOST_AXES - 1], choice.y)]
    titles = [_title(column) for column in (*columns[: MOST_AXES - 1], choice.y)]
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
        trace = _trace(str(label), places, heights, mode="lines+markers", customdata=customdata)
        trace |= {"hovertext": hovertext, "hoverinfo": "text", "opacity": 0.7}
        trace |= {"line": {"color": colours[label], "width": 1.5}, "marker": {"color": colours[label], "size": 5}}
        traces.append(trace)
    layout = _layout("", "")
    layout["xaxis"] |= {"tickvals": list(range(len(axes))), "ticktext": titles, "range": [-0.15, len(axes) - 0.6]}
    layout["yaxis"] |= {"visible": False, "range": [-0.05, 1.05]}
    layout["legend"]["title"] = {"text": _title(choice.y if choice.colour == "none" else choice.colour)}
    layout["annotations"] = [
        {"x": place, "y": height, "text": text, "showarrow": False, "xanchor": "left", "xshift": 4, "bgcolor": "#fffc"}
        for place, axis in enumerate(axes)
        for height, text in axis.ticks
    ]
    return {"data": traces, "layout": layout}


def curves(rows: pd.DataFrame, names: Mapping[str, str], measure: str, split: str, task: str) -> Chart:
    """Return the learning curves of some runs, a line each.

    Args:
        rows: rows of the table `curves`.
        names: run id to name, in the order of the colours.
        measure: the measure, a column of `rows`.
        split: the split, "validation" or "test".
        task: the task to show; empty for the mean over all tasks.
    """
    of_task = rows if not task else rows[rows["task"] == task]
    traces = []
    for position, (run, name) in enumerate(names.items()):
        by_epoch = of_task[of_task["run_id"] == run].groupby("epoch")[measure].mean()
        trace = _line(name, by_epoch, position)
        trace["customdata"] = [run] * len(by_epoch)
        traces.append(trace)
    layout = _layout("epoch", f"{split} {words(measure)}")
    layout["showlegend"] = False
    return {"data": traces, "layout": layout}


def task_curves(rows: pd.DataFrame, measure: str, split: str) -> Chart:
    """Return the learning curves of one run, a line for each task; bands show which task is in training."""
    tasks = list(dict.fromkeys([*rows["training_task"], *rows["task"]]))
    traces = []
    for position, task in enumerate(tasks):
        by_epoch = rows[rows["task"] == task].set_index("epoch")[measure]
        traces.append(_line(str(task), by_epoch, position))
    layout = _layout("epoch", f"{split} {words(measure)}")
    spans = rows.groupby("training_task", sort=False)["epoch"].agg(["min", "max"])
    layout["shapes"] = [
        {
            "type": "rect",
            "yref": "paper",
            "x0": span["min"] - 0.5,
            "x1": span["max"] + 0.5,
            "y0": 0,
            "y1": 1,
            "fillcolor": colour(tasks.index(task)),
            "opacity": 0.1,
            "line": {"width": 0},
            "layer": "below",
        }
        for task, span in spans.iterrows()
    ]
    return {"data": traces, "layout": layout}


def history(study: StudyRecord) -> list[Chart]:
    """Return the history of each objective of a search; empty before the first complete trial."""
    if not study.of("complete"):
        return []
    return [_history(of_objective, study) for of_objective in optimization_history(study)]


def _history(record: OptimizationHistory, study: StudyRecord) -> Chart:
    by_number = {trial.number: trial for trial in study.trials}
    texts = []
    for number, value in zip(record.numbers.tolist(), record.values.tolist(), strict=True):
        labels = [f"{axis_title(name)}: {_text(label)}" for name, label in by_number[number].labels.items()]
        texts.append("<br>".join(map(escape, [f"trial {number}: {value:.4g}", *labels])))
    points = _trace("complete trials", record.numbers, record.values, hovertext=texts, hoverinfo="text")
    points["marker"] = {"color": colour(0), "size": 8}
    points["customdata"] = [next(iter(by_number[number].run_ids), None) for number in record.numbers.tolist()]
    best = {"color": colour(1), "shape": "hv"}
    traces = [points, _trace("best so far", record.numbers, record.best, mode="lines", line=best)]
    if len(record.pruned_numbers):
        cross = {"color": _OTHER, "symbol": "x"}
        traces.append(_trace("pruned trials", record.pruned_numbers, record.pruned_values, marker=cross))
    return {"data": traces, "layout": _layout("trial", metric_named(record.objective).plain)}


def _trace(name: str, x: Values, y: Values, mode: str = "markers", **more: object) -> Chart:
    """Return points or a line of a chart, with further settings of Plotly."""
    trace: Chart = {"type": "scatter", "mode": mode, "name": escape(name)}
    trace["x"] = _values(pd.Series(x))
    trace["y"] = _values(pd.Series(y))
    return trace | more


def _line(name: str, by_epoch: pd.Series, position: int) -> Chart:
    """Return a learning curve."""
    texts = [f"{escape(name)}<br>epoch {at}: {value:.3f}" for at, value in by_epoch.items()]
    line = {"color": colour(position), "width": 2}
    return _trace(name, by_epoch.index, by_epoch, mode="lines", line=line, hovertext=texts, hoverinfo="text")


@dataclass(frozen=True)
class _Axis:
    """An axis of parallel coordinates: the height of each run from 0 to 1, and its ticks (height, text)."""

    heights: list[float | None]
    ticks: list[tuple[float, str]]


def _axis(column: pd.Series) -> _Axis:
    """Return an axis for a column: numbers, or labels one above the other."""
    numbers, is_number = _numbers(column)
    scaled = pd.Series(numbers, dtype=float)
    is_logarithmic = is_number and _is_logarithmic(numbers)
    if is_logarithmic:
        scaled = scaled.map(math.log10, na_action="ignore")
    low, high = scaled.min(), scaled.max()
    heights = (scaled - low) / (high - low) if high > low else scaled - low + 0.5
    values = _values(column) if not is_number else [_text(number) for number in numbers]
    ticks = dict(zip(heights, map(str, values), strict=True))
    kept: list[tuple[float, str]] = []
    for height, text in sorted(ticks.items()):
        if math.isfinite(height) and (not kept or height - kept[-1][0] >= _TICK_DISTANCE):
            kept.append((height, text))
    return _Axis([height if math.isfinite(height) else None for height in heights], kept)


def _bands(column: pd.Series) -> tuple[np.ndarray[Any, Any], dict[str, str]]:
    """Return the band of each value of a column, and the colour of each band, from the lowest on."""
    numbers, is_number = _numbers(column)
    values = pd.Series(numbers, dtype=float)
    low, high = values.min(), values.max()
    if not is_number or not high > low:
        return np.full(len(values), "runs", dtype=object), {"runs": colour(0)}
    edges = np.linspace(low, high, _BANDS + 1)
    names = [f"{_text(edges[band])} to {_text(edges[band + 1])}" for band in range(_BANDS)]
    band_of = np.clip(np.digitize(values, edges) - 1, 0, _BANDS - 1)
    labels = np.array([names[band] for band in band_of], dtype=object)
    labels[values.isna().to_numpy()] = ""  # no line
    return labels, dict(zip(names, _VIRIDIS, strict=True))


def _numbers(column: pd.Series) -> tuple[list[float | None], bool]:
    """Return a column as numbers, and whether it holds numbers; labels are numbered in their order."""
    values = _values(column)
    numbers = pd.to_numeric(pd.Series(values, dtype=object), errors="coerce")
    if numbers.notna().any() and numbers.notna().sum() == sum(value is not None for value in values):
        return [number if math.isfinite(number) else None for number in numbers.tolist()], True
    place = {text: at for at, text in enumerate(dict.fromkeys(values))}
    return [float(place[value]) for value in values], False


def _is_logarithmic(numbers: Iterable[float | None]) -> bool:
    known = [number for number in numbers if number is not None]
    if len(set(known)) < 3 or min(known) <= 0:
        return False
    return math.log10(max(known) / min(known)) >= _LEAST_DECADES


def _headline(experiment: Experiment) -> list[str]:
    return [f"test_{name}" if experiment.on_test else name for name in experiment.headline]


def _known(name: str, columns: Sequence[str], default: str) -> str:
    return name if name in columns else default


def _title(column: str) -> str:
    """Return the name of a column in words: that of an axis with its symbol, or that of a metric."""
    title = axis_title(column)
    if column in REPLICATES or title != column.replace("_", " "):
        return escape(title)
    return escape(metric_named(column).plain)


def _hover_texts(frame: pd.DataFrame, names: Sequence[str], choice: Choice) -> list[str]:
    """Return what is shown beside the mouse for each run: its name, its values and the beginning of its id."""
    columns = list(dict.fromkeys((choice.x, choice.y)))
    titles = [_title(column) for column in columns]
    values = [[_text(value) for value in frame[column].tolist()] for column in columns]
    texts = []
    for at, run in enumerate(frame["run_id"].tolist()):
        lines = [f"{title}: {escape(of_column[at])}" for title, of_column in zip(titles, values, strict=True)]
        texts.append("<br>".join([escape(names[at]), *lines, f"run {escape(run[:8])}"]))
    return texts


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else label_text(value)


def _values(column: pd.Series) -> list[object]:
    """Return values for JSON: numbers, texts of labels, and None where a number is missing."""
    found: list[object] = []
    for value in column.tolist():
        if isinstance(value, int | float) and not isinstance(value, bool):
            found.append(value if math.isfinite(value) else None)
        else:
            found.append(escape(label_text(value)))
    return found


def _layout_of(frame: pd.DataFrame, choice: Choice) -> Chart:
    """Return the layout of a chart of two columns."""
    layout = _layout(_title(choice.x), _title(choice.y))
    numbers, is_number = _numbers(frame[choice.x])
    if not is_number:
        places = list(dict.fromkeys(_values(frame.sort_values(choice.x, kind="stable")[choice.x])))
        layout["xaxis"] |= {"type": "category", "categoryorder": "array", "categoryarray": places}
    elif _is_logarithmic(numbers):
        layout["xaxis"]["type"] = "log"
    layout["showlegend"] = choice.colour != "none"
    layout["legend"]["title"] = {"text": escape(axis_title(choice.colour)) if choice.colour != "none" else ""}
    return layout


def _layout(x: str, y: str) -> Chart:
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
