"""Interactive charts as data for Plotly.js: a scatter of any two columns, learning curves, and the history of a search.

A chart is a dictionary with `data` and `layout`, as Plotly.js takes them. Plotly reads some HTML in texts, so names of
a store are escaped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
from .runs import RunsTable

Chart = dict[str, Any]

MOST_POINTS = 20_000
"""Most runs of a scatter: those that a browser draws and answers the mouse for without delay."""

MOST_COLOURS = 12
"""Most values of a column that colours tell apart."""

MOST_CURVES = 12
"""Most runs whose curves are compared."""

_MOST_SVG = 2_000
"""Most runs of a scatter that is drawn as SVG, which prints sharper than WebGL."""

_OTHER = "#9a9a9a"


@dataclass(frozen=True)
class Choice:
    """What a reader has chosen of the runs of an experiment.

    Attributes:
        x: the column along the horizontal axis.
        y: the column along the vertical axis.
        colour: the column that colours tell apart; empty for one colour.
        keep: the only label to show of some columns.
    """

    x: str
    y: str
    colour: str
    keep: Mapping[str, str]

    @classmethod
    def of(cls, given: Mapping[str, str], table: RunsTable, experiment: Experiment) -> Choice:
        """Return the choice of an address; columns that the table lacks are replaced by defaults."""
        columns = [*table.labels, *table.measured]
        measure = next((name for name in _headline(experiment) if name in table.measured), columns[-1])
        varied = [name for name in table.labels if len(table.frame[name].unique()) > 1] or columns
        numeric = [name for name in experiment.number_axes if name in varied]
        first = (numeric or varied)[0]
        others = [name for name in varied if name != first and name not in REPLICATES]
        return cls(
            x=_known(given.get("x", ""), columns, first),
            y=_known(given.get("y", ""), columns, measure),
            colour=_known(given.get("colour", ""), ["none", *table.labels], (others or ["none"])[0]),
            keep={name: given[f"only-{name}"] for name in table.labels if given.get(f"only-{name}")},
        )

    def of_table(self, table: RunsTable) -> pd.DataFrame:
        """Return the finished runs of a table that have the labels to keep."""
        frame = table.frame[table.frame["status"] == "finished"]
        for name, label in self.keep.items():
            frame = frame[frame[name].map(label_text) == label]
        return frame


def scatter(frame: pd.DataFrame, names: Sequence[str], choice: Choice, picked: Sequence[str]) -> Chart:
    """Return a scatter of two columns, a trace for each colour.

    Args:
        frame: finished runs, a row each.
        names: the names of the runs.
        choice: the columns.
        picked: ids of the runs whose curves are shown; they have a ring.
    """
    shown = frame.head(MOST_POINTS)
    labels = _colour_labels(shown, choice.colour)
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
        trace["type"] = "scattergl" if len(shown) > _MOST_SVG else "scatter"
        trace["customdata"] = rows["run_id"].tolist()
        trace["hovertext"] = [texts[at] for at in of_label]
        trace["hoverinfo"] = "text"
        traces.append(trace)
    layout = _layout(_title(choice.x), _title(choice.y))
    layout["showlegend"] = choice.colour != "none"
    layout["legend"]["title"] = {"text": escape(axis_title(choice.colour)) if choice.colour != "none" else ""}
    layout["dragmode"] = "zoom"
    return {"data": traces, "layout": layout}


def curves(rows: pd.DataFrame, names: Mapping[str, str], measure: str, split: str, task: str) -> Chart:
    """Return the learning curves of some runs, a line each.

    Args:
        rows: rows of the table `curves`.
        names: run id to name, in the order of the legend.
        measure: the measure, a column of `rows`.
        split: the split, "validation" or "test".
        task: the task to show; empty for the mean over all tasks.
    """
    of_task = rows if not task else rows[rows["task"] == task]
    traces = []
    for position, (run, name) in enumerate(names.items()):
        by_epoch = of_task[of_task["run_id"] == run].groupby("epoch")[measure].mean()
        texts = [f"{escape(name)}<br>epoch {at}: {value:.3f}" for at, value in by_epoch.items()]
        line = {"color": colour(position), "width": 2}
        traces.append(
            _trace(name, by_epoch.index, by_epoch, mode="lines", line=line, hovertext=texts, hoverinfo="text")
        )
    of = escape(task) if task else "mean over tasks"
    return {"data": traces, "layout": _layout("epoch", f"{split} {words(measure)}, {of}")}


def history(study: StudyRecord) -> list[Chart]:
    """Return the history of each objective of a search; empty before the first complete trial."""
    if not study.of("complete"):
        return []
    return [_history(of_objective) for of_objective in optimization_history(study)]


def _history(record: OptimizationHistory) -> Chart:
    best = {"color": colour(1), "shape": "hv"}
    traces = [
        _trace("complete trials", record.numbers, record.values, marker={"color": colour(0), "size": 8}),
        _trace("best so far", record.numbers, record.best, mode="lines", line=best),
    ]
    if len(record.pruned_numbers):
        cross = {"color": _OTHER, "symbol": "x"}
        traces.append(_trace("pruned trials", record.pruned_numbers, record.pruned_values, marker=cross))
    return {"data": traces, "layout": _layout("trial", metric_named(record.objective).plain)}


def _trace(name: str, x: npt.ArrayLike, y: npt.ArrayLike, mode: str = "markers", **more: object) -> Chart:
    """Return points or a line of a chart, with further settings of Plotly."""
    trace: Chart = {"type": "scatter", "mode": mode, "name": escape(name)}
    trace["x"] = _values(pd.Series(x))
    trace["y"] = _values(pd.Series(y))
    return trace | more


def _headline(experiment: Experiment) -> list[str]:
    return [f"test_{name}" if experiment.on_test else name for name in experiment.headline]


def _known(name: str, columns: Sequence[str], default: str) -> str:
    return name if name in columns else default


def _title(column: str) -> str:
    is_metric = column not in REPLICATES
    title = metric_named(column).plain if is_metric else axis_title(column)
    return escape(title if title != column else axis_title(column))


def _colour_labels(frame: pd.DataFrame, column: str) -> np.ndarray[Any, Any]:
    """Return the label of each row that its colour stands for; from the twelfth label on, "others"."""
    if column == "none":
        return np.full(len(frame), "runs", dtype=object)
    labels = frame[column].map(label_text).to_numpy(dtype=object)
    kept = list(dict.fromkeys(labels))
    if len(kept) <= MOST_COLOURS:
        return labels
    told_apart = set(kept[: MOST_COLOURS - 1])
    return np.array([label if label in told_apart else "others" for label in labels], dtype=object)


def _hover_texts(frame: pd.DataFrame, names: Sequence[str], choice: Choice) -> list[str]:
    """Return what is shown beside the mouse for each run: its name, its values and the beginning of its id."""
    columns = list(dict.fromkeys((choice.x, choice.y)))
    titles = [_title(column) for column in columns]
    values = [[_text(value) for value in frame[column].tolist()] for column in columns]
    texts = []
    for at, run in enumerate(frame["run_id"].tolist()):
        lines = [f"{title}: {escape(of_column[at])}" for title, of_column in zip(titles, values, strict=True)]
        texts.append("<br>".join([escape(names[at]), *lines, escape(run[:8])]))
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


def _layout(x: str, y: str) -> Chart:
    grid = {"gridcolor": "#e6e6e6", "zeroline": False, "automargin": True}
    return {
        "xaxis": {"title": {"text": x}, **grid},
        "yaxis": {"title": {"text": y}, **grid},
        "margin": {"l": 60, "r": 20, "t": 20, "b": 50},
        "legend": {"orientation": "h", "y": -0.25},
        "font": {"family": "inherit", "size": 13},
        "plot_bgcolor": "#fff",
        "uirevision": "kept",
        "hovermode": "closest",
    }
