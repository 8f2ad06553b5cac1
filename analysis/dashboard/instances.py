"""The instances of one run, in pages, and the tracing of one instance."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import pandas as pd

from clops_sweep.errors import UsageError

from ..drawing.style import as_png
from ..figures.task_titles import TaskTitles
from ..figures.tracings import describe_tracings, draw_tracings, tracing_of
from .scene import Scene, with_instances

PAGE = 25
"""Instances per page."""

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
    """Return a page of the instances of a run.

    Args:
        rows: rows of the store's table `instances` of one run.
        task: the task to show; all tasks if unknown.
        sort: one of `COLUMNS`, with a leading minus for descending order; hardest first if unknown.
        at: number of the page, from 1; the last page if it is too high.
    """
    tasks = tuple(map(str, dict.fromkeys(rows["task"])))
    chosen = rows[rows["task"] == task] if task in tasks else rows
    column = sort.removeprefix("-")
    column, falling = (column, sort.startswith("-")) if column in COLUMNS else ("s", False)
    ordered = chosen.sort_values([column, "instance"], ascending=[not falling, True], na_position="last", kind="stable")
    pages = max(1, -(-len(ordered) // PAGE))
    at = min(max(at, 1), pages)
    return InstancesTable(ordered.iloc[(at - 1) * PAGE : at * PAGE][list(COLUMNS)], tasks, len(ordered), at, pages)


def shown_run(scene: Scene) -> str | None:
    """Return the chosen run, else the first run of the chosen cells with instances, else the first with instances.

    Without such a run, the first finished one.
    """
    runs = scene.experiment.runs
    finished = set(runs.loc[runs["status"] == "finished", "run_id"])
    if scene.view.run in finished:
        return scene.view.run
    looked_at = [run for run in scene.view.cells if run in finished and len(instances_of(scene, run))]
    first = with_instances(scene.name, scene.snapshot, scene.store)
    return next(iter([*looked_at, *([first] if first else []), *sorted(finished)[:1]]), None)


def instances_of(scene: Scene, run: str) -> pd.DataFrame:
    """Return the instances of a run, with task titles."""

    def read() -> pd.DataFrame:
        rows = scene.store.read("instances", [run], ["run_id", *COLUMNS])
        return TaskTitles(scene.snapshot.frames).named(rows, scene.experiment, scene.cells_of(run)[0])

    return scene.snapshot.once(("instances", run), read)


@dataclass(frozen=True)
class Image:
    """A tracing as a data URI of a PNG, with a description in words."""

    source: str
    alt: str


def tracing(scene: Scene, run: str, instance: int) -> Image:
    """Draw the signal of an instance, as in the report.

    Raises:
        UsageError: the frames of the run are not available, or the run has no such instance.
    """
    data_hash = str(scene.snapshot.runs.loc[run, "data_hash"])
    frames = next((it for it in scene.snapshot.frames if it.data_hash == data_hash), None)
    if frames is None:
        raise UsageError("the prepared frames of this run are not available, so there is no tracing")
    record = tracing_of(instances_of(scene, run), instance, frames)
    png = scene.snapshot.once(("tracing", run, instance), lambda: as_png(draw_tracings([record])))
    return Image(f"data:image/png;base64,{base64.b64encode(png).decode()}", describe_tracings([record]))
