"""The instances of one run, and the tracing of the one that is chosen."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import pandas as pd

from clops_sweep.errors import UsageError

from ...collect import label_text
from ...drawing.style import as_png
from ...figures.task_titles import TaskTitles
from ...figures.tracings import describe_tracings, draw_tracings, tracing_of
from ...formats import DASH, plural
from ..scene import Scene
from .element import Element, element, link, notice
from .widgets import choice, experiment_choice, pager, sorted_by, table

PAGE = 25
"""Instances of a page."""

COLUMNS = ("instance", "task", "label", "patient", "s", "stored", "times_replayed")


@dataclass(frozen=True)
class InstancesTable:
    """A page of instances: `rows` have `COLUMNS`. `at` is the page, from 1, of `pages`; `total` counts instances."""

    rows: pd.DataFrame
    tasks: tuple[str, ...]
    total: int
    at: int
    pages: int


def instances_table(rows: pd.DataFrame, *, task: str = "", sort: str = "s", at: int = 1) -> InstancesTable:
    """A page of the instances of a run.

    Args:
        rows: rows of the store's table `instances`, of one run.
        task: of which task; all where it is none of theirs.
        sort: one of `COLUMNS`, with a minus before it for the highest first; the hardest first where it is none.
        at: the page, from 1; the last where there are not so many.
    """
    tasks = tuple(map(str, dict.fromkeys(rows["task"])))
    chosen = rows[rows["task"] == task] if task in tasks else rows
    column = sort.removeprefix("-")
    column, falling = (column, sort.startswith("-")) if column in COLUMNS else ("s", False)
    ordered = chosen.sort_values([column, "instance"], ascending=[not falling, True], na_position="last", kind="stable")
    pages = max(1, -(-len(ordered) // PAGE))
    at = min(max(at, 1), pages)
    return InstancesTable(ordered.iloc[(at - 1) * PAGE : at * PAGE][list(COLUMNS)], tasks, len(ordered), at, pages)


_ALL_TASKS = "all tasks"
_MOST_RUNS = 200


def shown_run(scene: Scene) -> str | None:
    """The run that is chosen, else the first of the first chosen configuration, else the first finished one."""
    runs = scene.experiment.runs
    finished = set(runs.loc[runs["status"] == "finished", "run_id"])
    candidates = [scene.view.run, *scene.view.cells, *sorted(finished)[:1]]
    return next((run for run in candidates if run in finished), None)


def instances_controls(scene: Scene) -> tuple[Element, ...]:
    """Experiment, run and task."""
    run = shown_run(scene)
    controls = [experiment_choice(scene.view, scene.name, list(scene.snapshot.followed))]
    if run is None:
        return tuple(controls)
    cells = list(dict.fromkeys((*scene.cells_of(run)[:1], *scene.chosen())))
    listed = [(it, run_id) for it in cells for run_id in scene.experiment.run_ids(it)][:_MOST_RUNS]
    seeds = dict(zip(scene.experiment.runs["run_id"], scene.experiment.runs["seed"], strict=True))
    texts = [f"{scene.name_of(it)}, seed {seeds[run_id]}" for it, run_id in listed]
    tasks = instances_table(_rows(scene, run)).tasks
    task = scene.view.task if scene.view.task in tasks else ""
    return (
        *controls,
        choice(scene.view, "run", "Run", [run_id for _, run_id in listed], run, texts),
        choice(scene.view, "task", "Task", ("", *tasks), task, (_ALL_TASKS, *tasks)),
    )


def instances_page(scene: Scene) -> tuple[Element, ...]:
    """The tracing that is chosen, then the table of instances."""
    run = shown_run(scene)
    if run is None:
        return (notice("No run of this experiment is finished yet."),)
    view = scene.view
    rows = _rows(scene, run)
    if rows.empty:
        return (notice("This run has recorded no instances."),)
    found = instances_table(rows, task=view.task, sort=view.sort, at=view.at)
    parts = [element("P", f"{plural(found.total, 'training instance')} of run {run}.", role="status")]
    if view.instance >= 0:
        parts.append(_tracing(scene, run, rows, view.instance))
    parts.append(_table(scene, found))
    page = pager(view, found.at, found.pages, "the table of instances")
    return (*parts, *([page] if page is not None else []))


def _rows(scene: Scene, run: str) -> pd.DataFrame:
    def read() -> pd.DataFrame:
        columns = ["run_id", *COLUMNS]
        rows = scene.store.read("instances", [run], columns)
        return TaskTitles(scene.snapshot.frames).named(rows, scene.experiment, scene.cells_of(run)[0])

    return scene.snapshot.once(("instances", run), read)


def _table(scene: Scene, found: InstancesTable) -> Element:
    view = scene.view
    header = [sorted_by(view, name, name.replace("_", " "), view.sort or "s") for name in COLUMNS]
    rows: list[list[Element | str]] = []
    for row in found.rows.to_dict("records"):
        instance = int(row["instance"])
        address = view.address(instance=-1 if instance == view.instance else instance)
        target = link(str(instance), address, f"{instance}, its tracing", id=f"instance-{instance}")
        rows.append([target, *(_text(row[name]) for name in COLUMNS[1:])])
    return table("Training instances", header, rows, className="runs")


def _text(value: object) -> str:
    if value is None or value != value:
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4f}" if isinstance(value, float) else label_text(value)


def _tracing(scene: Scene, run: str, rows: pd.DataFrame, instance: int) -> Element:
    """The signal of an instance, as the report draws it, where its frames are at hand."""
    data_hash = str(scene.snapshot.runs.loc[run, "data_hash"])
    frames = next((it for it in scene.snapshot.frames if it.data_hash == data_hash), None)
    if frames is None:
        return notice("The prepared frames of this run are not at hand, so there is no tracing.")
    try:
        record = tracing_of(rows, instance, frames)
    except UsageError as error:
        return notice(f"{error}.")
    png = scene.snapshot.once(("tracing", run, instance), lambda: as_png(draw_tracings([record])))
    source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    return element("Img", src=source, alt=describe_tracings([record]), className="tracing")
