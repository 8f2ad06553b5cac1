"""The page that compares the runs of an experiment: what a reader has chosen, as charts and a list of runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from clops_sweep.experiment.axis_names import axis_title
from clops_sweep.store.run_store import RunStore

from ..collect import Experiment, computed_on, label_text
from ..formats import plural
from ..metrics import metric_named
from ..report.planned import PlannedSection
from .chart_parts import Chart
from .charts import MOST_AXES, MOST_COLOURS, MOST_POINTS, colour_labels, parallel, scatter
from .choice import VIEWS, Choice, headline_metrics
from .curve_charts import curves as curves_chart
from .curve_charts import history
from .line_styles import LineStyle, line_styles
from .means_charts import (
    MOST_BANDS,
    Configuration,
    colours_of_points,
    configurations,
    curve_styles,
    mean_curves,
    means_chart,
    shows_means,
)
from .runs import RunsTable, filters, run_names
from .side_by_side import side_by_side

MOST_CURVES = 12
"""Most runs whose curves are compared."""

BEST = 8
"""Most runs or configurations whose curves are shown before a reader picks any: as many as have distinct colours."""

_MOST_OF_ALL = 24
"""Most curves that are shown if a reader asks for all."""


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
    is_of_means = choice.view == "means" and shows_means(choice, experiment)
    points = configurations(experiment, shown, choice.y) if is_of_means else []
    chart = None
    if points:
        chart = means_chart(experiment, points, choice)
    elif len(shown):
        chart = _chart_of_runs(experiment, shown, choice, picked, table.varied)
    all_curves = given.get("curves") == "all"
    most = _MOST_OF_ALL if all_curves else BEST
    if is_of_means and not picked:
        curves = _curves_of_configurations(experiment, shown, points, choice, store, given, most)
    else:
        in_order = _colours_in_order(experiment, shown, points, choice)
        curves = _curves_of_runs(experiment, table, choice, picked, store, given, most, in_order)
    histories = history(section.study) if section.study is not None else []
    measured_axes = [column for column in (choice.x, choice.y) if column in table.measured]
    columns = _columns(table)
    titles_of_labels = [(name, axis_title(name)) for name in table.labels]
    metrics = headline_metrics(experiment, table)
    return {
        "experiment": experiment.name,
        "choice": choice,
        "axes_in_words": _axes_in_words(choice, dict(columns)),
        "views": VIEWS,
        "kept": _without(given, "view", "experiment"),
        "columns": columns,
        "colours": [("none", "none"), *titles_of_labels],
        "filters": filters(table),
        "total": len(table.frame),
        "shown": len(shown),
        "whose": computed_on([experiment], measured_axes),
        "is_tuning": experiment.is_tuning,
        "chart": _as_json(chart),
        "is_of_means": is_of_means,
        "axes": min(len(table.varied) + 1, MOST_AXES),
        "chart_alt": f"{plural(len(shown), 'run')}: {choice.y} against {choice.x}",
        "not_shown": _not_shown(table, shown, choice),
        "picked": picked,
        "side_by_side": side_by_side(experiment, picked[:MOST_CURVES], metrics),
        "cleared": _without(given, "runs"),
        "curves": curves,
        "all_curves": all_curves and not picked,
        "without_curves": _without(given, "curves"),
        "most_bands": MOST_BANDS,
        "histories": [_as_json(of_study) for of_study in histories],
    }


def _without(given: Mapping[str, str], *names: str) -> dict[str, str]:
    """Return the parameters of an address without some of them."""
    return {name: value for name, value in given.items() if name not in names}


@dataclass(frozen=True)
class Curves:
    """The learning curves of the page.

    Attributes:
        chart: the chart as JSON; empty without curves.
        keys: address, name and style of each line.
        has_symbols: whether the points of the chart above have the symbols of the styles.
        alt: the chart in words.
        tasks: the tasks to choose from, with their titles.
        task: the chosen task; empty for the mean over tasks.
        which: whose curves are shown, in words.
        more: the text of the link to more of them; empty without more.
    """

    chart: str = ""
    keys: tuple[tuple[str, str, LineStyle], ...] = ()
    has_symbols: bool = False
    alt: str = ""
    tasks: tuple[tuple[str, str], ...] = ()
    task: str = ""
    which: str = ""
    more: str = ""


def _curves_of_runs(
    experiment: Experiment,
    table: RunsTable,
    choice: Choice,
    picked: Sequence[str],
    store: RunStore,
    given: Mapping[str, str],
    most: int,
    in_order: Sequence[str],
) -> Curves:
    """Return the learning curves of the picked runs or, without any, of the best ones, `most` at most.

    Their colours are those of the chart above, whose labels are `in_order`.
    """
    runs = choice.of_table(table)
    names = _curves_shown(experiment, runs, choice, picked, most)
    rows = store.read("curves", list(names)) if names else pd.DataFrame()
    tasks, task = _tasks(rows, given)
    keys = [(f"/run?id={run}", name) for run, name in names.items()]
    styles = _styles_of_runs(table, list(names), choice, in_order)
    chart = None
    if len(rows) and experiment.measure in rows:
        chart = curves_chart(rows, names, experiment.measure, _split(experiment), task, styles)
    alt = f"{experiment.measure} of {plural(len(names), 'run')} after every epoch"
    which, more = _which(len(names), runs["run_id"].nunique(), "run", choice)
    return Curves(
        chart=_as_json(chart),
        keys=_with_styles(keys, styles),
        alt=alt,
        tasks=tasks,
        task=task,
        which=which,
        more=more,
    )


def _colours_in_order(
    experiment: Experiment, shown: pd.DataFrame, points: Sequence[Configuration], choice: Choice
) -> list[str]:
    """Return the labels of the colours of the chart above the curves, in the order of their colours."""
    if points:
        return colours_of_points(experiment, points, choice)[1]
    return list(dict.fromkeys(colour_labels(shown.head(MOST_POINTS), choice.colour)))


def _styles_of_runs(table: RunsTable, runs: Sequence[str], choice: Choice, in_order: Sequence[str]) -> list[LineStyle]:
    """Return the style of the curve of each run, in the colour of its point in the chart above.

    A picked run may have a label that filters keep out of that chart: it takes the next colour.
    """
    if choice.colour == "none":
        return line_styles([""] * len(runs), [""])
    label_of = table.frame.drop_duplicates("run_id").set_index("run_id")[choice.colour].map(label_text)
    labels = []
    for run in runs:
        label = label_of[run]
        if label not in in_order and "others" in in_order:
            label = "others"
        labels.append(label)
    return line_styles(labels, list(dict.fromkeys([*in_order, *labels])))


def _curves_of_configurations(
    experiment: Experiment,
    shown: pd.DataFrame,
    points: Sequence[Configuration],
    choice: Choice,
    store: RunStore,
    given: Mapping[str, str],
    most: int,
) -> Curves:
    """Return the mean learning curves of the best configurations, `most` at most, over the runs that are shown."""
    best = points[:most]
    styles = curve_styles(experiment, points, choice)[:most]
    runs = set(shown["run_id"])
    ids: list[str] = []
    for point in best:
        ids += [run for run in experiment.run_ids(point.cell) if run in runs]
    rows = store.read("curves", ids) if ids else pd.DataFrame()
    tasks, task = _tasks(rows, given)
    chart = None
    if len(rows) and experiment.measure in rows:
        chart = mean_curves(experiment, rows, best, experiment.measure, _split(experiment), task, styles)
    alt = f"Mean {experiment.measure} of {plural(len(best), 'configuration')} after every epoch"
    keys = [(point.address, f"{point.name} ({point.n})") for point in best]
    which, more = _which(len(best), len(points), "configuration", choice)
    return Curves(
        chart=_as_json(chart),
        keys=_with_styles(keys, styles),
        has_symbols=choice.colour in experiment.axes,
        alt=alt,
        tasks=tasks,
        task=task,
        which=which,
        more=more,
    )


def _which(shown: int, count: int, noun: str, choice: Choice) -> tuple[str, str]:
    """Return which of some runs or configurations have their curves shown, and the text of the link to more of them.

    Args:
        shown: the number of those that are shown, the best first.
        count: the number of all.
        noun: what they are.
        choice: the choice whose vertical axis ranks them.
    """
    if shown >= count:
        return f"all {plural(count, noun)}" if count > 1 else plural(count, noun), ""
    axis = "last" if choice.view == "parallel" else "vertical"
    which = f"the best {shown:,} of {plural(count, noun)} by the {axis} axis"
    if shown >= _MOST_OF_ALL:
        return f"{which}; choose fewer with the filters, or pick runs", ""
    return which, f"Show all {count:,}" if count <= _MOST_OF_ALL else f"Show the best {_MOST_OF_ALL}"


def _with_styles(
    keys: Sequence[tuple[str, str]], styles: Sequence[LineStyle]
) -> tuple[tuple[str, str, LineStyle], ...]:
    """Return address, name and style of lines."""
    return tuple((address, name, style) for (address, name), style in zip(keys, styles, strict=True))


def _tasks(rows: pd.DataFrame, given: Mapping[str, str]) -> tuple[tuple[tuple[str, str], ...], str]:
    """Return the tasks of curves with their titles, the mean over tasks first; and the chosen one."""
    if rows.empty:
        return (("", "mean over tasks"),), ""
    names = sorted(map(str, rows["task"].unique()))
    titles = [(name, name) for name in names]
    task = given.get("task", "")
    if task not in names:
        task = ""
    return (("", "mean over tasks"), *titles), task


def _split(experiment: Experiment) -> str:
    """Return the split whose curves the store has."""
    return "test" if experiment.on_test else "validation"


def _as_json(chart: Chart | None) -> str:
    """Return a chart as JSON; empty without one."""
    return "" if chart is None else json.dumps(chart)


def _chart_of_runs(
    experiment: Experiment, shown: pd.DataFrame, choice: Choice, picked: Sequence[str], labels: Sequence[str]
) -> Chart:
    """Return the chart of single runs: parallel coordinates if they are chosen, else points."""
    names = run_names(experiment, experiment.runs.iloc[shown.index])
    if choice.view == "parallel":
        return parallel(shown, names, choice, labels)
    return scatter(shown, names, choice, picked)


def _picked(given: Mapping[str, str], table: RunsTable) -> list[str]:
    """Return the ids of the runs that a reader has picked, without those that the table lacks."""
    known = set(table.frame["run_id"]) - {""}
    asked = given.get("runs", "").split(",")
    return [run for run in dict.fromkeys(asked) if run in known]


def _axes_in_words(choice: Choice, titles: Mapping[str, str]) -> str:
    """Return what the chart shows, in words."""
    words = titles[choice.y]
    if choice.view != "parallel":
        words += f" by {titles[choice.x]}"
    if choice.colour not in ("none", choice.x):
        words += f", coloured by {titles[choice.colour]}"
    return words


def _columns(table: RunsTable) -> list[tuple[str, str]]:
    """Return the columns of the axes with their titles: labels, then metrics."""
    labels = [(name, axis_title(name)) for name in table.labels]
    metrics = [(name, metric_named(name).plain) for name in table.measured]
    return [*labels, *metrics]


def _curves_shown(
    experiment: Experiment, shown: pd.DataFrame, choice: Choice, picked: Sequence[str], most: int
) -> dict[str, str]:
    """Return the runs whose curves are drawn, id to name: those picked, else the best along the vertical axis."""
    if picked:
        rows = experiment.runs[experiment.runs["run_id"].isin(picked[:MOST_CURVES])]
    else:
        lower_is_better = choice.y not in experiment.measured or metric_named(choice.y).better == "lower"
        best = shown.sort_values(choice.y, ascending=lower_is_better, kind="stable")
        rows = experiment.runs.loc[best.index].drop_duplicates("run_id").iloc[:most]
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
        if column not in table.measured:
            continue
        values = shown[column].to_numpy(dtype=float)
        missing = int(np.isnan(values).sum())
        if missing:
            title = metric_named(column).plain
            sentences.append(f"{plural(missing, 'run')} without a value of {title}.")
    if len(shown) > MOST_POINTS and choice.view != "means":
        sentences.append(f"All but the first {MOST_POINTS:,} runs: choose fewer with the filters.")
    if choice.colour != "none" and shown[choice.colour].nunique() > MOST_COLOURS:
        title = axis_title(choice.colour)
        sentences.append(f"The labels of {title} from the {MOST_COLOURS}th on, which share a grey.")
    if choice.view == "parallel" and len(table.varied) >= MOST_AXES:
        names = table.varied[MOST_AXES - 1 :]
        left_out = ", ".join(map(axis_title, names))
        sentences.append(f"The axes {left_out}.")
    return sentences
