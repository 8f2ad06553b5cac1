"""What the page shows for an address, as HTML: text is text, and never markup, whatever it says."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from clops_sweep.errors import UsageError, one_line, reason
from clops_sweep.store.rows import printable
from clops_sweep.store.run_store import rerun_command

from ..axis_names import axis_title
from ..collect import label_text
from ..drawing.style import readable_on
from ..failures import failures
from ..figures.curves import describe_learning_curves
from ..figures.heatmaps import Heatmap, Panel
from ..figures.importance import describe_importance, importance
from ..figures.optimization_history import describe_optimization_history, optimization_history
from ..figures.r_matrices import RMatrix, describe_r_matrices
from ..formats import DASH, plural
from ..metrics import metric_named
from ..search_trials import best_trials, best_trials_text
from .figures import colours, curves_figure, history_figure, importance_figure, parallel_figure
from .instances import COLUMNS, instances_of, instances_table, shown_run, tracing
from .parallel import describe_parallel, parallel_coordinates
from .progress import progress
from .runs_table import Row, matching, runs_table
from .scene import Scene
from .snapshot import FollowedStore, Snapshot
from .view import MOST_CELLS, PAGES, View

Context = dict[str, Any]
"""What a template is rendered with."""

_KEPT_BY_PAGES = {"experiment", "metric", "rows", "columns", "panel", "cells", "where", "group", "show"}
"""What stays as it is when another page is gone to."""

_LISTED = 10
"""Configurations below the parallel coordinates."""

_MOST_RUNS_TO_CHOOSE = 200


class Pages:
    """The pages of a store that is followed.

    Args:
        followed: the store.
        name: of the store, as it may be printed.
        seconds: how often a browser asks for news.
    """

    def __init__(self, followed: FollowedStore, name: str = "", seconds: float = 3.0) -> None:
        self._followed = followed
        self._name, self._seconds = name, seconds

    def refresh(self) -> int:
        """Look whether the store has changed; the version of what is there."""
        return self._followed.refresh().version

    def show(self, query: str) -> str:
        """Return the page at an address."""
        view, snapshot = View.read(query), self._followed.snapshot
        given = {
            "name": self._name,
            "seconds": self._seconds,
            "version": snapshot.version,
            "problem": snapshot.problem,
            "counts": snapshot.runs["status"].value_counts().to_dict(),
            "view": view,
            "pages": {name: (title, _address_of_page(view, name, snapshot)) for name, title in PAGES.items()},
            "notice": "",
        }
        try:
            if view.page == "progress":
                return _rendered("progress", given | _progress(snapshot))
            scene = Scene.of(view, snapshot, self._followed.store)
            if scene is None:
                raise UsageError(f"there is no {'search' if view.page == 'search' else 'run'} here yet")
            return _rendered(view.page, given | {"view": scene.view, "scene": scene} | _CONTEXTS[view.page](scene))
        except (UsageError, OSError) as error:
            notice = one_line(error)
        except Exception as error:  # a store is input, and what is not shown would pass for what was there before
            logging.getLogger(__name__).exception("the page at %s", view.address())
            notice = f"this cannot be shown: {reason(error)}"
        return _rendered("notice", given | {"notice": notice})

    def importance(self, query: str) -> str:
        """Return which parameters matter for the objective of the search at an address."""
        scene = Scene.of(View.read(query), self._followed.snapshot, self._followed.store)
        if scene is None or scene.followed.study is None:
            return ""
        objective = objective_of(scene)

        def make() -> str:
            try:
                record = importance(scene.experiment, objective)
            except ValueError as error:  # UsageError is one
                return _rendered("importance", {"notice": one_line(error)})
            drawn = {"figure": importance_figure(record), "alt": describe_importance(record)}
            return _rendered("importance", {"notice": ""} | drawn)

        return scene.snapshot.once(("importance", scene.name, objective), make)


def _address_of_page(view: View, name: str, snapshot: Snapshot) -> str:
    kept = {field: getattr(view, field) for field in _KEPT_BY_PAGES}
    if kept["experiment"] not in snapshot.followed:
        kept["experiment"] = ""
    return replace(View(), **kept).address(page=name)


# --- one function for each page: what its template shows --------------------------------------------------------------


def _progress(snapshot: Snapshot) -> Context:
    found = [(name, it) for name, followed in snapshot.followed.items() for it in failures(followed.experiment.runs)]
    return {"experiments": progress(snapshot), "failed": found}


def _runs(scene: Scene) -> Context:
    view, columns = scene.view, shown_columns(scene)
    try:
        found = runs_table(
            scene.experiment, columns, condition=view.where, group=view.group, sort=view.sort, at=view.at
        )
    except UsageError as error:
        return {"columns": columns, "notice": one_line(error)}
    chosen, axes = set(scene.chosen()), tuple(scene.experiment.axes)
    return {"columns": columns, "found": found, "axes": axes, "rows": [_row(scene, row, chosen) for row in found.rows]}


def shown_columns(scene: Scene) -> tuple[str, ...]:
    """The columns that are chosen, else the headline metrics and the seconds."""
    chosen = tuple(name for name in scene.view.show if name in scene.followed.metrics)
    usual = (*(f"test_{name}" if scene.experiment.on_test else name for name in scene.experiment.headline), "seconds")
    return chosen or tuple(name for name in usual if name in scene.followed.metrics)


def _row(scene: Scene, row: Row, chosen: set[int]) -> Context:
    finished, all_runs = row.counts.get("finished", 0), sum(row.counts.values())
    counted = f"{finished}" if finished == all_runs else f"{finished}/{all_runs}"
    metrics = [metric_named(name) for name in shown_columns(scene)]
    target: Context = {}
    if len(row.cells) == 1 and scene.key_of(row.cells[0]) is not None:
        (cell,) = row.cells
        leave = cell in chosen
        text, address = ("leave out", scene.choose(cell)) if leave else ("curves", scene.choose(cell, page="heatmap"))
        said = f"{text}{' of' * (not leave)} {scene.name_of(cell)}"
        target = {"text": text, "address": address, "said": said, "id": f"look-{row.run_ids[0]}"}
    return {
        "labels": [label_text(label) for label in row.labels] or [scene.name],
        "status": next(iter(row.counts)) if all_runs == 1 else counted,
        "target": target,
        "values": [m.with_spread(it.mean, it.sd) if it.n else DASH for m, it in zip(metrics, row.values, strict=True)],
    }


def _heatmap(scene: Scene) -> Context:
    record, panel = scene.heatmap(), scene.panel()
    axes = list(dict.fromkeys((*scene.experiment.axes, scene.view.rows, scene.view.columns)))
    if panel is None:
        return {"axes": axes, "record": record, "panel": None}
    chosen, (low, high) = scene.chosen(), record.limits
    inks = np.reshape(colours(panel.mean, record.limits, record.metric), panel.mean.shape)
    steps = [low + (high - low) * at / 20 for at in range(21)]
    return {
        "axes": axes,
        "record": record,
        "panel": panel,
        "cells": [
            [_cell(scene, record, panel, (row, column), str(inks[row, column]), chosen) for column in range(len(line))]
            for row, line in enumerate(panel.cells)
        ],
        "scale": ", ".join(colours(steps, record.limits, record.metric)),
        "behind": [_behind(scene, cell) for cell in chosen],
    }


def _cell(scene: Scene, record: Heatmap, panel: Panel, at: tuple[int, int], ink: str, chosen: list[int]) -> Context:
    cell, n, asked = int(panel.cells[at]), int(panel.n[at]), int(panel.asked[at])
    mean, sd = float(panel.mean[at]), float(panel.sd[at])
    address = scene.choose(cell) if cell >= 0 else None
    if address is None or not math.isfinite(mean):
        text = "failed" if panel.failed[at] else DASH
        return {"address": None, "text": text, "kind": "empty" if cell >= 0 else "nothing"}
    place = f"{label_text(record.rows[at[0]])}, {label_text(record.columns[at[1]])}"
    value = f"{record.metric.with_spread(mean, sd)}, n = {n} of {asked}"
    best, is_chosen, text = panel.best == at, cell in chosen, record.metric.text(mean)
    return {
        "address": address,
        "text": text,
        "said": f"{text} at {place}: {value}{', best of the panel' * best}{', chosen' * is_chosen}",
        "title": f"{place}: {value}",
        "id": f"cell-{scene.key_of(cell)}",
        "count": f"n = {n} of {asked}" if n < asked else "",
        "ink": ink,
        "kind": " ".join(["best"] * best + ["chosen"] * is_chosen),
    }


def _behind(scene: Scene, cell: int) -> Context:
    """One configuration: its curves, R and runs, or sentences on what cannot be shown."""
    runs = scene.experiment.runs
    runs = runs[runs["cell"] == cell].sort_values(["split_seed", "seed"])
    values = runs[scene.view.metric] if scene.view.metric in runs else [math.nan] * len(runs)
    columns = (runs[column] for column in ("run_id", "seed", "split_seed", "status"))
    metric = metric_named(scene.view.metric)
    rows = [
        {
            "address": View(page="instances", experiment=scene.name, run=run, cells=scene.view.cells).address(),
            "replicate": f"seed {seed}, split {split}",
            "status": status,
            "value": metric.text(float(value)) if value == value and value is not None else DASH,
            "command": rerun_command(run, scene.store.files.anywhere),
        }
        for run, seed, split, status, value in zip(*columns, values, strict=True)
    ]
    shown: Context = {"curves": None, "r": None, "notices": []}
    makers: dict[str, Callable[[Scene, int], Context]] = {"curves": _curves, "r": _r}
    for name, make in makers.items():
        try:
            shown[name] = make(scene, cell)
        except UsageError as error:
            shown["notices"].append(one_line(error))
    leave = scene.choose(cell) or scene.view.address()
    return shown | {"name": scene.name_of(cell), "key": scene.key_of(cell), "leave": leave, "runs": rows}


def _curves(scene: Scene, cell: int) -> Context:
    record = scene.curves(cell)
    return {"figure": curves_figure(record), "alt": describe_learning_curves([record])}


def _r(scene: Scene, cell: int) -> Context:
    """R as a table: after training on each task (rows), how good the run is on each (columns)."""
    record: RMatrix = scene.r_matrix(cell)
    metric = metric_named(record.metric)
    known = record.mean[np.isfinite(record.mean)]
    limits = (min(float(known.min()), 0.5), float(known.max())) if known.size else (0.0, 1.0)
    rows = []
    for place, trained in enumerate(record.trained):
        cells = []
        for column, ink in enumerate(colours(record.mean[place], limits, metric)):
            mean, sd = float(record.mean[place, column]), float(record.sd[place, column])
            there, is_frame = math.isfinite(mean), column == place and len(record.trained) > 1
            cells.append(
                {
                    "text": metric.text(mean) if there else DASH,
                    "title": metric.with_spread(mean, sd) if there else DASH,
                    "ink": ink if there else "",
                    "kind": "best" if is_frame else "",
                }
            )
        rows.append((trained, cells))
    return {"evaluated": record.evaluated, "rows": rows, "alt": describe_r_matrices([record])}


def _parallel(scene: Scene) -> Context:
    experiment = scene.experiment
    try:
        kept = matching(experiment, scene.view.where)
        cells = np.unique(experiment.runs["cell"].to_numpy(dtype=int)[kept]).tolist()
        record = parallel_coordinates(experiment, scene.view.metric, cells)
        if not record.cells:
            raise UsageError("no finished run meets the condition")
    except UsageError as error:
        return {"notice": one_line(error)}
    names = [scene.name_of(cell) for cell in record.cells]
    keys = [scene.key_of(cell) for cell in record.cells]
    best = [
        (names[at], scene.choose(record.cells[at], page="heatmap"), it)
        for at, it in reversed([*enumerate(record.estimates)][-_LISTED:])
    ]
    others = scene.view.address(page="heatmap", cells=scene.view.cells[1 - MOST_CELLS :])
    return {
        "record": record,
        "figure": parallel_figure(record, names, keys),
        "alt": describe_parallel(record, names),
        "click": f"{others}&cells=",
        "best": best,
    }


def _instances(scene: Scene) -> Context:
    view, run = scene.view, shown_run(scene)
    if run is None:
        return {"run": None}
    cells = list(dict.fromkeys((*scene.cells_of(run)[:1], *scene.chosen())))
    seeds = dict(zip(scene.experiment.runs["run_id"], scene.experiment.runs["seed"], strict=True))
    listed = [(it, run_id) for it in cells for run_id in scene.experiment.run_ids(it)][:_MOST_RUNS_TO_CHOOSE]
    rows = instances_of(scene, run)
    found = instances_table(rows, task=view.task, sort=view.sort, at=view.at)
    given: Context = {"image": None}
    if view.instance >= 0 and len(rows):
        try:
            given["image"] = tracing(scene, run, view.instance)
        except UsageError as error:
            given["notice"] = one_line(error)
    return given | {
        "run": run,
        "runs": {run_id: f"{scene.name_of(cell)}, seed {seeds[run_id]}" for cell, run_id in listed},
        "found": found,
        "tasks": {"": "all tasks", **{task: task for task in found.tasks}},
        "columns": COLUMNS,
        "rows": found.rows.to_dict("records"),
    }


def _search(scene: Scene) -> Context:
    record = scene.followed.study
    assert record is not None
    objective = objective_of(scene)
    given: Context = {
        "record": record,
        "objective": objective,
        "searches": [name for name, it in scene.snapshot.followed.items() if it.study is not None],
        "states": ", ".join(
            f"{len(record.of(state))} {state}" for state in ("complete", "pruned", "failed", "running")
        ),
    }
    try:
        (history,) = (it for it in optimization_history(record) if it.objective == objective)
    except UsageError as error:
        return given | {"notice": one_line(error)}
    best = best_trials_text(best_trials(record, scene.experiment), "trials", f"Best trials of {scene.name}")
    drawn = {"figure": history_figure(history), "alt": describe_optimization_history([history])}
    return given | drawn | {"best": best, "asked": scene.view.address()}


def objective_of(scene: Scene) -> str:
    """The objective that is chosen, else the first."""
    assert scene.followed.study is not None
    objectives = scene.followed.study.objectives
    return scene.view.metric if scene.view.metric in objectives else next(iter(objectives))


_CONTEXTS: dict[str, Callable[[Scene], Context]] = {
    "runs": _runs,
    "heatmap": _heatmap,
    "parallel": _parallel,
    "instances": _instances,
    "search": _search,
}


# --- HTML -------------------------------------------------------------------------------------------------------------


def _text(value: object) -> object:
    """Text without what a terminal or a reader would obey; markup, which a template has made, as it is."""
    return printable(value) if type(value) is str else value


def _value(value: object) -> str:
    """A value of a table of instances."""
    if value is None or value != value:
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4f}" if isinstance(value, float) else label_text(value)


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_text,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.globals |= {
    "DASH": DASH,
    "View": View,
    "axis_title": axis_title,
    "label_text": label_text,
    "metric_title": lambda name: metric_named(name).plain,
    "one_line": one_line,
    "plural": plural,
    "readable_on": readable_on,
    "value_text": _value,
    "short_hash": lambda text: f"{crc32(text.encode('utf-8', 'backslashreplace')):08x}",
}


def _rendered(template: str, given: Context) -> str:
    return _ENVIRONMENT.get_template(f"{template}.html.jinja").render(given)
