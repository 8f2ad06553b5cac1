"""Data for the template of each page."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from clops_sweep.errors import UsageError, one_line
from clops_sweep.experiment.columns import config_columns
from clops_sweep.store.launches import UnderWay
from clops_sweep.store.reading import rerun_command

from ..as_stored import stored_value
from ..collect import label_text
from ..drawing.style import colour
from ..failures import failures
from ..figures.curves import describe_learning_curves
from ..figures.heatmaps import Heatmap, Panel
from ..figures.optimization_history import describe_optimization_history, optimization_history
from ..figures.r_matrices import RMatrix, describe_r_matrices
from ..formats import DASH, duration
from ..metrics import metric_named
from ..search_trials import best_trials, best_trials_text
from ..selection import cell_name
from ..statistics import split_name
from .figures import (
    colours,
    compared_figure,
    curves_figure,
    history_figure,
    overlay_figure,
    parallel_figure,
    runs_figure,
)
from .instances import COLUMNS, instances_of, instances_table, shown_run, tracing
from .records.compare import Compared, best_of_each, comparison
from .records.overlay import MOST_RUNS, Overlay, describe_overlay, overlay
from .records.overview import Value, best_value, describe_history, ended_at, first_metric, progress, run_history
from .records.parallel import describe_parallel, parallel_coordinates
from .records.run_log import run_log
from .records.runs_table import Row, matching, runs_table
from .scene import Scene
from .snapshot import Snapshot
from .view import MOST_CELLS, View

Context = dict[str, Any]
"""Variables of a template."""

_LISTED = 10
"""Most configurations listed below the parallel coordinates."""

_MOST_FOUND = 20
"""Most runs listed by a text search."""

_STATUSES = ("finished", "running", "failed", "missing")

_MOST_LINES = 8
"""Most configurations whose curves are compared."""


def _overview(scene: Scene) -> Context:
    snapshot, metric = scene.snapshot, scene.asked.metric

    def make() -> Context:
        rows = []
        for it in progress(snapshot):
            experiment = snapshot.followed[it.name].experiment
            measured = snapshot.followed[it.name].metrics
            best = best_value(experiment, metric if metric in measured else first_metric(experiment))
            rows.append({"progress": it, "best": best and _best(snapshot, it.name, best)})
        failed = [(name, it) for name, of in snapshot.followed.items() for it in failures(of.experiment.runs)]
        return {"rows": rows, "failed": failed}

    return snapshot.once(("overview", metric), make) | _under_way(scene) | _history(scene)


def _best(snapshot: Snapshot, name: str, value: Value) -> Context:
    experiment = snapshot.followed[name].experiment
    key = experiment.run_ids(value.cell)[0]
    view = View(page="heatmap", experiment=name, metric=value.metric.column, cells=(key,))
    return _value(value) | {"name": cell_name(experiment.cells[value.cell]) or name, "address": view.address()}


def _value(value: Value) -> Context:
    """Return a mean with its interval for display."""
    metric, found = value.metric, value.interval
    interval, units = "", ""
    if found is not None and found.units is not None:
        units = f"{found.n} {found.units.kind}"
        if value.has_interval:
            interval = f"[{metric.text(found.low)}, {metric.text(found.high)}]"
    return {
        "metric": metric.plain,
        "mean": metric.text(value.estimate.mean),
        "sd": metric.text(value.estimate.sd) if math.isfinite(value.estimate.sd) else DASH,
        "n": value.estimate.n,
        "interval": interval,
        "units": units,
    }


def _history(scene: Scene) -> Context:
    if not scene.view.metric or not scene.followed.metrics:
        return {"history": None}
    record = run_history(scene.experiment, scene.view.metric)
    if not record.total:
        return {"history": None}
    texts = [
        f"{scene.run_name(run)}: {record.metric.text(value)}"
        for run, value in zip(record.run_ids, record.values, strict=True)
    ]
    click = View(page="run", experiment=scene.name).address() + "&run="
    return {
        "history": record,
        "figure": runs_figure(record, texts),
        "alt": describe_history(record),
        "click": click,
    }


def _under_way(scene: Scene) -> Context:
    """Return the running runs with their experiments, and the number of running runs of each experiment."""

    def make() -> dict[str, str]:
        found: dict[str, str] = {}
        for name, followed in scene.snapshot.followed.items():
            found |= dict.fromkeys(followed.experiment.runs["run_id"].tolist(), name)
        return found

    owners = scene.snapshot.once("owners", make) if scene.snapshot.under_way else {}
    return {
        "under_way": [_on_its_way(scene, it, owners.get(it.run_ids[0], "")) for it in scene.snapshot.under_way],
        "running_of": Counter(owners[run] for run in scene.snapshot.running if run in owners),
    }


def _on_its_way(scene: Scene, it: UnderWay, owner: str) -> Context:
    """Describe a running lockstep; a single run has its name from the experiment."""
    name, of = it.name.removeprefix(f"{owner}: "), None
    if owner and len(it.run_ids) == 1:
        of = Scene.of(View(page="runs", experiment=owner), scene.snapshot, scene.store)
    whole = it.tasks * it.epochs
    done = ((it.task - 1) * it.epochs + it.epoch) / whole if whole > 0 else 0.0
    return {
        "name": name if of is None else of.run_name(it.run_ids[0]),
        "experiment": owner,
        "address": View(page="run", experiment=owner, run=it.run_ids[0]).address(),
        "task": f"{it.task} of {it.tasks}" if it.tasks else "starting",
        "epoch": f"{it.epoch} of {it.epochs}" if it.tasks else DASH,
        "share": min(max(done, 0.0), 1.0),
        "left": duration(max(0.0, it.ends_at - time.time())) if it.ends_at else DASH,
    }


def time_text(seconds: float) -> str:
    """Format a time given in seconds since 1970."""
    if not math.isfinite(seconds):
        return DASH
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


# --- runs -------------------------------------------------------------------------------------------------------------


def _runs(scene: Scene) -> Context:
    view, columns = scene.view, shown_columns(scene)
    try:
        found = runs_table(
            scene.experiment, columns, condition=view.where, group=view.group, sort=view.sort, at=view.at
        )
    except UsageError as error:
        return {"columns": columns, "notice": one_line(error)}
    chosen = _chosen_runs(scene)
    lines = {key: colour(at) for at, key in enumerate(chosen)}
    statuses = Counter(map(partial(_status, scene), *(scene.experiment.runs[it] for it in ("run_id", "status"))))
    return {
        "columns": columns,
        "found": found,
        "axes": tuple(scene.experiment.axes),
        "rows": [_row(scene, row, lines) for row in found.rows],
        "statuses": ", ".join(f"{statuses[it]:,} {it}" for it in _STATUSES if it in statuses),
        "overlay": _overlay(scene, chosen),
        "clear": view.address(cells=()),
        "csv": view.address(),
    }


def _status(scene: Scene, run: str, status: str) -> str:
    """Return the status of a run, including running, which the store does not record."""
    return "running" if status == "missing" and run in scene.snapshot.running else status


def shown_columns(scene: Scene) -> tuple[str, ...]:
    """Return the chosen columns, else the headline metrics and seconds."""
    chosen = tuple(name for name in scene.view.show if name in scene.followed.metrics)
    usual = (*(f"test_{name}" if scene.experiment.on_test else name for name in scene.experiment.headline), "seconds")
    return chosen or tuple(name for name in usual if name in scene.followed.metrics)


def _chosen_runs(scene: Scene) -> dict[str, tuple[str, ...]]:
    """Return the finished runs of each selected row, by the run that identifies the row."""
    view, experiment = scene.view, scene.experiment
    finished = {run for cell in range(len(experiment.cells)) for run in experiment.run_ids(cell)}
    keys = [key for key in view.cells if key in finished]
    if not view.group:
        return {key: (key,) for key in keys}
    runs = experiment.runs[matching(experiment, view.where)]
    runs = runs[runs["status"] == "finished"]
    places = [tuple(repr(cell.labels[axis]) for axis in view.group) for cell in experiment.cells]
    found: dict[str, tuple[str, ...]] = {}
    for key in keys:
        cells = {at for at, place in enumerate(places) if place == places[scene.cells_of(key)[0]]}
        ids = tuple(map(str, runs.loc[runs["cell"].isin(cells), "run_id"]))
        if ids and ids not in found.values():
            found[key] = ids
    return found


def _overlay(scene: Scene, chosen: Mapping[str, tuple[str, ...]]) -> Context | None:
    """Return the curves of the selected rows in one figure."""
    if not chosen:
        return None
    measure = metric_named(scene.view.metric).measure or scene.experiment.measure
    curves = []
    for key, ids in chosen.items():
        cell = scene.cells_of(key)[0]
        name = _group_name(scene, cell) if scene.view.group else scene.run_name(key)
        curves.append((name, scene.rows("curves", cell, ids[:MOST_RUNS])))
    return _overlaid(overlay(measure, curves))


def _overlaid(record: Overlay) -> Context:
    drawn = {"figure": overlay_figure(record), "alt": describe_overlay(record)} if record.lines else {"figure": None}
    return drawn | {"without": record.without}


def _group_name(scene: Scene, cell: int) -> str:
    others = [axis for axis in scene.experiment.axes if axis not in scene.view.group]
    return cell_name(scene.experiment.cells[cell], others)


def _row(scene: Scene, row: Row, lines: Mapping[str, str]) -> Context:
    finished, all_runs = row.counts.get("finished", 0), sum(row.counts.values())
    counted = f"{finished}" if finished == all_runs else f"{finished}/{all_runs}"
    metrics = [metric_named(name) for name in shown_columns(scene)]
    group = scene.view.group
    ids = set(row.run_ids)
    key = next((run for cell in row.cells for run in scene.experiment.run_ids(cell) if run in ids), None)
    name = _group_name(scene, row.cells[0]) if group else scene.run_name(row.run_ids[0])
    status = _status(scene, row.run_ids[0], next(iter(row.counts))) if all_runs == 1 else counted
    selected = next((it for it in lines if it in ids), None)
    return {
        "name": name or scene.name,
        "run": "" if group or not row.run_ids[0] else row.run_ids[0],
        "address": View(page="run", experiment=scene.name, run=row.run_ids[0]).address() if not group else "",
        "labels": [label_text(label) for label in row.labels],
        "status": status,
        "ended": row.ended,
        "key": key,
        "select": "" if key is None else scene.view.address(cells=scene.view.with_cell(key, row.run_ids)),
        "colour": lines[selected] if selected else "",
        "values": [m.with_spread(it.mean, it.sd) if it.n else DASH for m, it in zip(metrics, row.values, strict=True)],
    }


# --- comparison -------------------------------------------------------------------------------------------------------


def _compare(scene: Scene) -> Context:
    """Return the selected configurations of all experiments; without a selection, the best of each experiment."""
    snapshot, asked = scene.snapshot, scene.asked
    metrics = tuple(dict.fromkeys(name for it in snapshot.followed.values() for name in it.metrics))
    metric = asked.metric if asked.metric in metrics else scene.view.metric
    experiments = {name: it.experiment for name, it in snapshot.followed.items() if metric in it.metrics}
    places = dict.fromkeys(it for key in asked.cells if (it := _place(snapshot, key)) and it[0] in experiments)
    chosen = [(name, experiments[name], cell) for name, cell in places]
    best = chosen or best_of_each(metric, list(experiments.items()))
    reference = _place(snapshot, asked.reference) if asked.reference else None
    found = comparison(metric, best, reference)
    names = [_called(it) for it in found]
    keys = [it.experiment.run_ids(it.value.cell)[0] for it in found]
    is_reference = next((key for key, it in zip(keys, found, strict=True) if it.is_reference), "")
    given = {"metric": metric, "metrics": metrics, "selected": len(chosen), "clear": scene.view.address(cells=())}
    if not found:
        return given | {"rows": [], "references": {}}
    shown = list(zip(keys, found, strict=True))[:_MOST_LINES]
    curves = [(_called(it), _curve_rows(scene, it)) for _, it in shown]
    return given | {
        "rows": [_compared(it, key) for key, it in zip(keys, found, strict=True)],
        "references": dict(zip(keys, names, strict=True)),
        "reference": is_reference,
        "figure": compared_figure(metric_named(metric), found, names),
        "alt": "; ".join(f"{name}: {_value(it.value)['mean']}" for name, it in zip(names, found, strict=True)),
        "overlay": _overlaid(overlay(metric_named(metric).measure or found[0].experiment.measure, curves)),
    }


def _compared(it: Compared, key: str) -> Context:
    found, metric = it.difference, it.value.metric
    difference = ""
    if found is not None and found.n:
        difference = f"{found.mean:+.3f}" if metric.decimals else metric.text(found.mean)
        if math.isfinite(found.low):
            difference += f" [{metric.text(found.low)}, {metric.text(found.high)}]"
    view = View(page="heatmap", experiment=it.name, metric=metric.column, cells=(key,))
    return _value(it.value) | {
        "experiment": it.name,
        "name": cell_name(it.experiment.cells[it.value.cell]) or it.name,
        "address": view.address(),
        "difference": difference,
        "is_reference": it.is_reference,
    }


def _called(it: Compared) -> str:
    name = cell_name(it.experiment.cells[it.value.cell])
    return f"{it.name}: {name}" if name else it.name


def _curve_rows(scene: Scene, it: Compared) -> pd.DataFrame:
    ids = it.experiment.run_ids(it.value.cell)[:MOST_RUNS]
    return scene.snapshot.once(("curves of", ids), lambda: scene.store.read("curves", list(ids)))


def _place(snapshot: Snapshot, run: str) -> tuple[str, int] | None:
    """Return the experiment of a finished run and the index of its configuration."""

    def make() -> dict[str, tuple[str, int]]:
        found: dict[str, tuple[str, int]] = {}
        for name, followed in snapshot.followed.items():
            experiment = followed.experiment
            for cell in range(len(experiment.cells)):
                for it in experiment.run_ids(cell):
                    found.setdefault(it, (name, cell))
        return found

    return snapshot.once("places", make).get(run)


# --- heatmap ----------------------------------------------------------------------------------------------------------


def _heatmap(scene: Scene) -> Context:
    record, (panel, labels) = scene.heatmap(), scene.slice()
    axes = list(dict.fromkeys((*scene.experiment.axes, scene.view.rows, scene.view.columns)))
    others = {
        axis: {scene.view.sliced(labels, axis, it): it for it in known} for axis, known in scene.other_axes.items()
    }
    given = {"axes": axes, "record": record, "others": others, "labels": labels, "panel": panel}
    if panel is None:
        return given
    chosen, (low, high) = scene.chosen(), record.limits
    inks = np.reshape(colours(panel.mean, record.limits, record.metric), panel.mean.shape)
    steps = [low + (high - low) * at / 20 for at in range(21)]
    cells = [
        [_cell(scene, record, panel, (row, column), str(inks[row, column]), chosen) for column in range(len(line))]
        for row, line in enumerate(panel.cells)
    ]
    links = [it for line in cells for it in line if it["address"] is not None]
    stop = next((it for it in links if "best" in it["kind"]), links[0] if links else None)
    for it in links:  # one tab stop for all cells
        it["first"] = it is stop
    return given | {
        "cells": cells,
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
        "sd": f"± {record.metric.text(sd)}" if math.isfinite(sd) else "",
        "n": f"n = {n}" if n == asked else f"n = {n} of {asked}",
        "ink": ink,
        "kind": " ".join(["best"] * best + ["chosen"] * is_chosen),
    }


def _behind(scene: Scene, cell: int) -> Context:
    """Return curves, R and runs of one configuration, or sentences on why they cannot be shown."""
    runs = scene.experiment.runs
    runs = runs[runs["cell"] == cell].sort_values(["split_seed", "split", "seed"])
    values = runs[scene.view.metric] if scene.view.metric in runs else [math.nan] * len(runs)
    columns = runs["run_id"], scene.experiment.replicates_of(runs), runs["status"]
    metric = metric_named(scene.view.metric)
    rows = [
        {
            "address": View(page="run", experiment=scene.name, run=run, cells=scene.view.cells).address(),
            "run": run,
            "replicate": f"seed {seed}, {split_name(split)}",
            "status": _status(scene, run, status),
            "value": metric.text(float(value)) if value == value and value is not None else DASH,
            "command": rerun_command(run, scene.store.files.anywhere),
        }
        for run, (split, seed), status, value in zip(*columns, values, strict=True)
    ]
    shown: Context = {"curves": None, "r": None, "notices": []}
    makers: dict[str, Callable[[Scene, int], Context]] = {"curves": _curves, "r": _r}
    if not scene.experiment.run_ids(cell):
        makers, shown["notices"] = {}, ["No run of this configuration is finished."]
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
    """Return R as a table: the score on each task (columns) after training on each task (rows)."""
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
    finished = {it for cell in range(len(scene.experiment.cells)) for it in scene.experiment.run_ids(cell)}
    listed = _found(scene, [it for it in scene.found() if it in finished] if view.find else [])
    if run is None:
        return listed | {"run": None}
    rows = instances_of(scene, run)
    found = instances_table(rows, task=view.task, sort=view.sort, at=view.at)
    given: Context = {"image": None}
    if view.instance >= 0 and len(rows):
        try:
            given["image"] = tracing(scene, run, view.instance)
        except UsageError as error:
            given["notice"] = one_line(error)
    return (
        given
        | listed
        | {
            "run": run,
            "run_name": scene.run_name(run),
            "of_run": View(page="run", experiment=scene.name, run=run, cells=view.cells).address(),
            "found": found,
            "tasks": {"": "all tasks", **{task: task for task in found.tasks}},
            "columns": COLUMNS,
            "rows": found.rows.to_dict("records"),
        }
    )


def _found(scene: Scene, runs: list[str]) -> Context:
    """Return the runs found by a text search, with their addresses on this page."""
    listed = [(scene.run_name(it), scene.view.address(run=it, find="", instance=-1, at=1)) for it in runs]
    return {"matches": listed[:_MOST_FOUND], "matched": len(listed), "of": len(scene.run_names())}


# --- one run ----------------------------------------------------------------------------------------------------------


def _run(scene: Scene) -> Context:
    """Return metrics, settings, error and log of a run of any status."""
    snapshot, view = scene.snapshot, scene.view
    run = view.run or _newest_run(scene)
    given = _found(scene, scene.found() if view.find else []) | {"run": run}
    if not run:
        return given
    under_way = next((it for it in snapshot.under_way if run in it.run_ids), None)
    row = snapshot.runs.loc[run].to_dict() if run in snapshot.runs.index else {}
    error = row.get("error")
    settings = {it: stored_value(row[it]) for it in config_columns(map(str, row)) if it in row and it != "run_id"}
    measured = [(metric_named(it), row[it]) for it in scene.followed.metrics if it in row]
    instances = View(page="instances", experiment=scene.name, run=run, cells=view.cells).address()
    return given | {
        "run_name": scene.run_name(run) if run in scene.run_names() else under_way.name if under_way else run,
        "status": row.get("status") or ("running" if under_way else "missing"),
        "under_way": _on_its_way(scene, under_way, scene.name) if under_way else None,
        "settings": {it: label_text(value) for it, value in settings.items() if value is not None},
        "measured": [(m.plain, m.text(float(it))) for m, it in measured if it is not None and it == it],
        "error": error if isinstance(error, str) else "",
        "log": run_log(scene.store, run),
        "commands": [f"clops-sweep logs {run}", rerun_command(run, scene.store.files.anywhere)],
        "instances": instances if row.get("status") == "finished" else "",
    }


def _newest_run(scene: Scene) -> str:
    """Return the run to show first: a running one, else the last that failed, else the last that ended."""
    if scene.snapshot.under_way:
        return scene.snapshot.under_way[0].run_ids[0]
    runs = scene.experiment.runs
    runs = runs[runs["status"] != "missing"]
    if runs.empty:
        return ""
    failed = runs[runs["status"] == "failed"]
    among = failed if len(failed) else runs
    return str(among["run_id"].to_numpy()[np.argmax(np.nan_to_num(ended_at(among)))])


# --- searches ---------------------------------------------------------------------------------------------------------


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
    """Return the chosen objective, else the first."""
    assert scene.followed.study is not None
    objectives = scene.followed.study.objectives
    return scene.view.metric if scene.view.metric in objectives else next(iter(objectives))


CONTEXTS: dict[str, Callable[[Scene], Context]] = {
    "overview": _overview,
    "runs": _runs,
    "compare": _compare,
    "heatmap": _heatmap,
    "parallel": _parallel,
    "run": _run,
    "instances": _instances,
    "search": _search,
}
