"""A heatmap whose cells are links, and what is behind those that are chosen: curves, R and runs."""

from __future__ import annotations

import math

import numpy as np

from clops_sweep.errors import UsageError
from clops_sweep.store.run_store import rerun_command

from ...axis_names import axis_title
from ...collect import label_text
from ...drawing.style import readable_on
from ...figures.curves import describe_learning_curves
from ...figures.heatmaps import Heatmap, Panel
from ...figures.r_matrices import describe_r_matrices
from ...formats import DASH, plural
from ...metrics import metric_named
from ..figures import colours, curves_figure
from ..scene import Scene
from ..view import View
from .element import Element, element, hidden, link, notice
from .widgets import choice, experiment_choice, graph, metric_choice, rerun, table


def heatmap_controls(scene: Scene) -> tuple[Element, ...]:
    """Experiment, metric, axes and panel."""
    view, record, panel = scene.view, scene.heatmap(), scene.panel()
    axes = list(dict.fromkeys((*scene.experiment.axes, view.rows, view.columns)))
    titles = [panel.title for panel in record.panels]
    controls = [
        experiment_choice(scene.view, scene.name, list(scene.snapshot.followed)),
        metric_choice(view, scene.followed.metrics),
        choice(scene.view, "rows", "Rows", axes, view.rows, map(axis_title, axes)),
        choice(scene.view, "columns", "Columns", axes, view.columns, map(axis_title, axes)),
    ]
    if len(titles) > 1 and panel is not None:
        controls.append(choice(scene.view, "panel", "Panel", titles, panel.title))
    return tuple(controls)


def heatmap_page(scene: Scene) -> tuple[Element, ...]:
    """The panel that is chosen as a table of links, then what is behind the chosen cells."""
    panel = scene.panel()
    if panel is None:
        return (notice("This experiment has no run yet."),)
    chosen = scene.chosen()
    hint = (
        "A cell is a link: it shows that configuration's learning curves, R and runs below, once more leaves it out. "
        "A frame marks the best cell."
    )
    parts = [element("P", hint, className="muted"), _panel(scene, scene.heatmap(), panel, chosen)]
    parts.append(_scale(scene.heatmap()))
    parts.append(element("Div", *(_behind(scene, cell) for cell in chosen), className="chosen-cells"))
    return tuple(parts)


def _panel(scene: Scene, record: Heatmap, panel: Panel, chosen: list[int]) -> Element:
    title = (
        f"{record.metric.plain} by {axis_title(record.row_axis)} (rows) and {axis_title(record.column_axis)} (columns)"
    )
    caption = f"{title}{': ' + panel.title if panel.title else ''}"
    corner = element("Td", element("Span", axis_title(record.row_axis)), hidden(" by "), className="corner")
    header: list[Element | str] = [corner, *(label_text(label) for label in record.columns)]
    shown = colours(panel.mean, record.limits, record.metric)
    rows: list[list[Element | str]] = []
    for row, label in enumerate(record.rows):
        cells: list[Element | str] = [label_text(label)]
        for column in range(len(record.columns)):
            ink = shown[row * len(record.columns) + column]
            cells.append(_cell(scene, record, panel, (row, column), ink, chosen))
        rows.append(cells)
    return table(caption, header, rows, className="heatmap")


def _cell(
    scene: Scene, record: Heatmap, panel: Panel, at: tuple[int, int], background: str, chosen: list[int]
) -> Element:
    cell, n, asked = int(panel.cells[at]), int(panel.n[at]), int(panel.asked[at])
    mean, sd = float(panel.mean[at]), float(panel.sd[at])
    address = scene.choose(cell) if cell >= 0 else None
    if address is None or not math.isfinite(mean):
        text = "failed" if panel.failed[at] else DASH
        return element("Td", text, className="empty" if cell >= 0 else "nothing")
    place = f"{label_text(record.rows[at[0]])}, {label_text(record.columns[at[1]])}"
    said = f"{record.metric.with_spread(mean, sd)}, n = {n} of {asked}"
    best, is_chosen = panel.best == at, cell in chosen
    name = " ".join(["best"] * best + ["chosen"] * is_chosen)
    text = record.metric.text(mean)
    whole = f"{text} at {place}: {said}{', best of the panel' if best else ''}{', chosen' if is_chosen else ''}"
    inside = link(text, address, whole, title=f"{place}: {said}", id=f"cell-{scene.key_of(cell)}")
    count = element("Small", f"n = {n} of {asked}", **{"aria-hidden": "true"}) if n < asked else None
    return element(
        "Td", inside, count, style={"background": background, "color": readable_on(background)}, className=name
    )


def _scale(record: Heatmap) -> Element:
    """The colours' scale, from the lowest to the highest."""
    low, high = record.limits
    steps = colours([low + (high - low) * at / 20 for at in range(21)], record.limits, record.metric)
    bar = element("Span", className="bar", style={"background": f"linear-gradient(to right, {', '.join(steps)})"})
    ends = [element("Span", record.metric.text(value)) for value in record.limits]
    return element("P", ends[0], bar, ends[1], element("Span", f"({record.metric.formula})"), className="scale")


def _behind(scene: Scene, cell: int) -> Element:
    """One configuration: its values, curves, R and runs."""
    name = scene.name_of(cell)
    experiment = scene.experiment
    runs = experiment.runs[experiment.runs["cell"] == cell].sort_values(["split_seed", "seed"])
    leave = link("leave out", scene.choose(cell) or scene.view.address(), f"leave out {name}")
    parts: list[Element] = [element("H2", name), element("P", leave, className="muted")]
    for make in (_curves, _r):
        try:
            parts.append(make(scene, cell))
        except UsageError as error:
            parts.append(notice(f"{error}."))
    metric = metric_named(scene.view.metric)
    rows = []
    for run_id, seed, split, status, value in zip(
        *(runs[column] for column in ("run_id", "seed", "split_seed", "status")),
        runs[scene.view.metric] if scene.view.metric in runs else [math.nan] * len(runs),
        strict=True,
    ):
        run = str(run_id)
        known = status != "missing"
        to_instances = View(page="instances", experiment=scene.name, run=run, cells=scene.view.cells).address()
        rows.append(
            [
                link(f"seed {seed}, split {split}", to_instances, f"seed {seed}, split {split}, its instances")
                if status == "finished"
                else f"seed {seed}, split {split}",
                str(status),
                metric.text(float(value)) if value == value and value is not None else DASH,
                rerun(rerun_command(run, scene.store.files.anywhere)) if known else DASH,
            ]
        )
    title = f"{plural(len(rows), 'run')} of {name}"
    parts.append(table(title, ("run", "status", metric.plain, "command"), rows))
    return element("Section", *parts, aria_label=name)


def _curves(scene: Scene, cell: int) -> Element:
    record = scene.curves(cell)
    key = scene.key_of(cell)
    return graph(curves_figure(record), describe_learning_curves([record]), f"curves-{key}")


def _r(scene: Scene, cell: int) -> Element:
    """R as a table: after training on each task (rows), how good the run is on each (columns)."""
    record = scene.r_matrix(cell)
    metric = metric_named(record.metric)
    known = record.mean[np.isfinite(record.mean)]
    limits = (min(float(known.min()), 0.5), float(known.max())) if known.size else (0.0, 1.0)
    rows: list[list[Element | str]] = []
    for place, trained in enumerate(record.trained):
        inks = colours(record.mean[place], limits, metric)
        cells: list[Element | str] = [trained]
        for column, ink in enumerate(inks):
            value = record.mean[place, column]
            text = metric.with_spread(float(value), float(record.sd[place, column])) if math.isfinite(value) else DASH
            style = {"background": ink, "color": readable_on(ink)} if math.isfinite(value) else {}
            frame = "best" if column == place and len(record.trained) > 1 else ""
            shown = metric.text(float(value)) if math.isfinite(value) else DASH
            cells.append(element("Td", shown, title=text, style=style, className=frame))
        rows.append(cells)
    found = table(
        "R: trained on (rows), evaluated on (columns)", ("trained on", *record.evaluated), rows, className="heatmap"
    )
    return element("Div", found, hidden(describe_r_matrices([record])))
