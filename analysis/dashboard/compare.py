"""The page that compares the runs of an experiment: what a reader has chosen, as charts and a list of runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from clops_sweep.store.run_store import RunStore

from ..axis_names import axis_title
from ..collect import Experiment, computed_on
from ..drawing.style import colour
from ..formats import plural
from ..metrics import metric_named
from ..report.planned import PlannedSection
from .charts import (
    MOST_AXES,
    MOST_COLOURS,
    MOST_POINTS,
    Chart,
    Choice,
    curves,
    history,
    means,
    parallel,
    scatter,
)
from .runs import RunsTable, filters, run_names

MOST_CURVES = 12
"""Most runs whose curves are compared."""

_BEST = 5
"""Runs whose curves are shown before a reader picks any."""

_VIEWS = (
    ("points", "a point for each run"),
    ("means", "means of each colour"),
    ("parallel", "parallel coordinates"),
)


def compare_page(
    section: PlannedSection, table: RunsTable, store: RunStore, given: Mapping[str, str]
) -> dict[str, Any]:
    """Return the variables of the page.

    Args:
        section: the experiment, with the study of a search.
        table: all its runs.
        store: the store, for learning curves.
        given: the parameters of the address.
    """
    experiment = section.experiment
    choice = Choice.of(given, table, experiment)
    shown = choice.of_table(table)
    picked = _picked(given, table)
    names = run_names(experiment, experiment.runs.iloc[shown.index])
    curves_of = _curves_shown(experiment, shown, choice, picked)
    rows = store.read("curves", list(curves_of)) if curves_of else pd.DataFrame()
    tasks = sorted(map(str, rows["task"].unique())) if len(rows) else []
    task = given.get("task", "") if given.get("task") in tasks else ""
    split = "test" if experiment.on_test else "validation"
    has_curves = len(rows) > 0 and experiment.measure in rows
    chart = _chart(shown, names, choice, picked, table.varied) if len(shown) else None
    chart_of_curves = curves(rows, curves_of, experiment.measure, split, task) if has_curves else None
    histories = history(section.study) if section.study is not None else []
    measured_axes = [column for column in (choice.x, choice.y) if column in table.measured]
    coloured = []
    for position, (run, name) in enumerate(curves_of.items()):
        coloured.append((run, name, colour(position)))
    return {
        "experiment": experiment.name,
        "choice": choice,
        "views": _VIEWS,
        "columns": _columns(table),
        "colours": [("none", "none"), *((name, axis_title(name)) for name in table.labels)],
        "filters": filters(table),
        "total": len(table.frame),
        "shown": len(shown),
        "whose": computed_on([experiment], measured_axes),
        "is_tuning": experiment.is_tuning,
        "chart": _as_json(chart),
        "axes": min(len(table.varied) + 1, MOST_AXES),
        "chart_alt": f"{plural(len(shown), 'run')}: {choice.y} against {choice.x}",
        "not_shown": _not_shown(table, shown, choice),
        "picked": picked,
        "cleared": {name: value for name, value in given.items() if name != "runs"},
        "curves_of": coloured,
        "curves": _as_json(chart_of_curves),
        "curves_alt": f"{experiment.measure} of {plural(len(curves_of), 'run')} after every epoch",
        "tasks": [("", "mean over tasks"), *((it, it) for it in tasks)],
        "task": task,
        "histories": [_as_json(of_study) for of_study in histories],
    }


def _as_json(chart: Chart | None) -> str:
    """Return a chart as JSON; empty without one."""
    return "" if chart is None else json.dumps(chart)


def _chart(
    shown: pd.DataFrame, names: Sequence[str], choice: Choice, picked: Sequence[str], labels: Sequence[str]
) -> Chart:
    """Return the chart of the chosen view."""
    if choice.view == "means":
        return means(shown, choice)
    if choice.view == "parallel":
        return parallel(shown, names, choice, labels)
    return scatter(shown, names, choice, picked)


def _picked(given: Mapping[str, str], table: RunsTable) -> list[str]:
    """Return the ids of the runs that a reader has picked, without those that the table lacks."""
    known = set(table.frame["run_id"]) - {""}
    return [run for run in dict.fromkeys(given.get("runs", "").split(",")) if run in known]


def _columns(table: RunsTable) -> list[tuple[str, str]]:
    """Return the columns of the axes with their titles: labels, then metrics."""
    labels = [(name, axis_title(name)) for name in table.labels]
    return [*labels, *((name, metric_named(name).plain) for name in table.measured)]


def _curves_shown(experiment: Experiment, shown: pd.DataFrame, choice: Choice, picked: Sequence[str]) -> dict[str, str]:
    """Return the runs whose curves are drawn, id to name: those picked, else the best five along the vertical axis."""
    if picked:
        rows = experiment.runs[experiment.runs["run_id"].isin(picked[:MOST_CURVES])]
    else:
        lower_is_better = choice.y not in experiment.measured or metric_named(choice.y).better == "lower"
        best = shown.sort_values(choice.y, ascending=lower_is_better, kind="stable")
        rows = experiment.runs.loc[best.index[:_BEST]]
    rows = rows.drop_duplicates("run_id")
    return dict(zip(rows["run_id"].tolist(), run_names(experiment, rows), strict=True))


def _not_shown(table: RunsTable, shown: pd.DataFrame, choice: Choice) -> list[str]:
    """Return sentences on the runs and columns that the chart leaves out."""
    sentences = []
    statuses = table.frame["status"].value_counts()
    unfinished = [f"{count:,} {status}" for status, count in statuses.items() if status != "finished"]
    if unfinished:
        sentences.append(f"Runs that have not finished ({', '.join(unfinished)}).")
    for column in dict.fromkeys((choice.x, choice.y)):
        if column in table.measured and (missing := int(np.isnan(shown[column].to_numpy(dtype=float)).sum())):
            sentences.append(f"{plural(missing, 'run')} without a value of {metric_named(column).plain}.")
    if len(shown) > MOST_POINTS and choice.view != "means":
        sentences.append(f"All but the first {MOST_POINTS:,} runs: choose fewer with the filters.")
    if choice.colour != "none" and shown[choice.colour].nunique() > MOST_COLOURS:
        sentences.append(f"The labels of {axis_title(choice.colour)} from the {MOST_COLOURS}th on, which share a grey.")
    if choice.view == "parallel" and len(table.varied) >= MOST_AXES:
        left_out = ", ".join(axis_title(name) for name in table.varied[MOST_AXES - 1 :])
        sentences.append(f"The axes {left_out}.")
    return sentences
