"""Learning curves of runs and configurations, and the history of a search, as charts for Plotly.js."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import pandas as pd

from clops_sweep.experiment.axis_names import axis_title
from clops_sweep.search.records import StudyRecord

from ..drawing.style import colour
from ..figures.optimization_history import OptimizationHistory, optimization_history
from ..metrics import metric_named, words
from .chart_parts import ONLY, OTHER, Chart, epoch_axis, layout_of, number_axis, trace_of, value_text
from .line_styles import LineStyle, line_styles


def curves(
    rows: pd.DataFrame,
    names: Mapping[str, str],
    measure: str,
    split: str,
    task: str,
    styles: Sequence[LineStyle] = (),
) -> Chart:
    """Return the learning curves of some runs, a line each.

    Args:
        rows: rows of the table `curves`.
        names: run id to name.
        measure: the measure, a column of `rows`.
        split: the split, "validation" or "test".
        task: the task to show; empty for the mean over all tasks.
        styles: the style of each; without any, they differ by their positions.
    """
    of_task = rows if not task else rows[rows["task"] == task]
    traces = []
    ranked = line_styles([""] * len(names), [""])
    for style, (run, name) in zip(styles or ranked, names.items(), strict=True):
        by_epoch = of_task[of_task["run_id"] == run].groupby("epoch")[measure].mean()
        trace = _line(name, by_epoch, style)
        trace["customdata"] = [run] * len(by_epoch)
        traces.append(trace)
    layout = layout_of("epoch", f"{split} {words(measure)}")
    layout["xaxis"] |= epoch_axis(of_task["epoch"])
    layout["showlegend"] = False
    return {"data": traces, "layout": layout}


def task_curves(rows: pd.DataFrame, measure: str, split: str) -> Chart:
    """Return the learning curves of one run, a line for each task; bands show which task is in training."""
    tasks = list(dict.fromkeys([*rows["training_task"], *rows["task"]]))
    traces = []
    styles = line_styles([""] * len(tasks), [""])
    for style, task in zip(styles, tasks, strict=True):
        by_epoch = rows[rows["task"] == task].set_index("epoch")[measure]
        traces.append(_line(str(task), by_epoch, style))
    layout = layout_of("epoch", f"{split} {words(measure)}")
    layout["xaxis"] |= epoch_axis(rows["epoch"])
    spans = rows.groupby("training_task", sort=False)["epoch"].agg(["min", "max"])
    bands = []
    for task, span in spans.iterrows():
        bands.append(_band(span["min"], span["max"], styles[tasks.index(task)].colour))
    layout["shapes"] = bands
    return {"data": traces, "layout": layout}


def _band(first: float, last: float, fill: str) -> Chart:
    """Return a band behind the epochs from the first to the last."""
    return {
        "type": "rect",
        "yref": "paper",
        "x0": first - 0.5,
        "x1": last + 0.5,
        "y0": 0,
        "y1": 1,
        "fillcolor": fill,
        "opacity": 0.1,
        "line": {"width": 0},
        "layer": "below",
    }


def history(study: StudyRecord) -> list[Chart]:
    """Return the history of each objective of a search; empty before the first complete trial."""
    if not study.of("complete"):
        return []
    return [_history(of_objective, study) for of_objective in optimization_history(study)]


def _history(record: OptimizationHistory, study: StudyRecord) -> Chart:
    by_number = {trial.number: trial for trial in study.trials}
    texts = []
    runs = []
    for number, value in zip(record.numbers.tolist(), record.values.tolist(), strict=True):
        trial = by_number[number]
        said = [f"trial {number}: {value:.4g}"]
        for name, label in trial.labels.items():
            said.append(f"{axis_title(name)}: {value_text(label)}")
        texts.append("<br>".join(map(escape, said)))
        runs.append(next(iter(trial.run_ids), None))
    points = trace_of("complete trials", record.numbers, record.values, hovertext=texts, hoverinfo="text")
    points["marker"] = {"color": ONLY, "size": 8}
    points["customdata"] = runs
    best = {"color": colour(1), "shape": "hv"}
    traces = [points, trace_of("best so far", record.numbers, record.best, mode="lines", line=best)]
    if len(record.pruned_numbers):
        cross = {"color": OTHER, "symbol": "x"}
        traces.append(trace_of("pruned trials", record.pruned_numbers, record.pruned_values, marker=cross))
    layout = layout_of("trial", metric_named(record.objective).plain)
    layout["xaxis"] |= number_axis(trial.number for trial in study.trials) | {"type": "linear"}
    return {"data": traces, "layout": layout}


def _line(name: str, by_epoch: pd.Series, style: LineStyle) -> Chart:
    """Return a learning curve."""
    texts = [f"{escape(name)}<br>epoch {at}: {value:.3f}" for at, value in by_epoch.items()]
    return trace_of(name, by_epoch.index, by_epoch, mode="lines", line=style.line, hovertext=texts, hoverinfo="text")
