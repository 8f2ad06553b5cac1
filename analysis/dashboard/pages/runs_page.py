"""The table of runs: filtered, grouped, averaged over seeds, sorted."""

from __future__ import annotations

from clops_sweep.errors import UsageError

from ...axis_names import axis_title
from ...collect import label_text
from ...formats import DASH, plural
from ...metrics import metric_named
from ..runs_table import Row, RunsTable, runs_table
from ..scene import Scene
from .element import Element, element, link, notice
from .widgets import choices, entry, experiment_choice, pager, sorted_by, table


def shown_columns(scene: Scene) -> tuple[str, ...]:
    """The columns that are chosen, else the headline metrics and the seconds."""
    chosen = tuple(name for name in scene.view.show if name in scene.followed.metrics)
    usual = (*(f"test_{name}" if scene.experiment.on_test else name for name in scene.experiment.headline), "seconds")
    return chosen or tuple(name for name in usual if name in scene.followed.metrics)


def runs_controls(scene: Scene) -> tuple[Element, ...]:
    """Experiment, condition, grouping and columns."""
    view = scene.view
    return (
        experiment_choice(scene.view, scene.name, list(scene.snapshot.followed)),
        entry("where", "Only runs where", view.where, "auc > 0.8 and storage_fraction in [0.5, 1.0]"),
        choices("group", "Average over all but", scene.experiment.axes, view.group, "nothing: single runs"),
        choices("show", "Columns", scene.followed.metrics, shown_columns(scene), "the headline metrics"),
    )


def runs_page(scene: Scene) -> tuple[Element, ...]:
    """The table, with links that choose configurations."""
    view = scene.view
    try:
        found = runs_table(
            scene.experiment,
            shown_columns(scene),
            condition=view.where,
            group=view.group,
            sort=view.sort,
            at=view.at,
        )
    except UsageError as error:
        return (notice(f"{error}."),)
    axes = tuple(scene.experiment.axes)
    averaged = view.address(group=axes, at=1)
    grouped = (
        link("Show single runs", view.address(group=(), at=1), id="grouping")
        if view.group
        else link("Average over seeds", averaged, id="grouping")
        if axes
        else None
    )
    what = f"{plural(found.runs, 'run')} of {len(scene.experiment.runs):,}"
    rows = f" in {plural(found.total, 'row')}, mean ± standard deviation (n - 1)" if view.group else ""
    return (
        element("P", f"{what}{rows}. ", grouped, role="status"),
        _table(scene, found),
        *(it for it in [pager(view, found.at, found.pages, "the table of runs")] if it is not None),
    )


def _table(scene: Scene, found: RunsTable) -> Element:
    view = scene.view
    header = [
        *(sorted_by(view, name, axis_title(name), view.sort) for name in found.label_names),
        "runs" if view.group else "status",
        "look at",
        *(sorted_by(view, name, metric_named(name).plain, view.sort) for name in found.columns),
    ]
    chosen = set(scene.chosen())
    return table("Runs", header, [_row(scene, row, chosen) for row in found.rows], className="runs")


def _row(scene: Scene, row: Row, chosen: set[int]) -> list[Element | str]:
    metrics = [metric_named(name) for name in shown_columns(scene)]
    finished, all_runs = row.counts.get("finished", 0), sum(row.counts.values())
    status = (
        next(iter(row.counts)) if all_runs == 1 else f"{finished}" if finished == all_runs else f"{finished}/{all_runs}"
    )
    values = [
        metric.with_spread(it.mean, it.sd) if it.n else DASH for metric, it in zip(metrics, row.values, strict=True)
    ]
    target: Element | str = DASH
    if len(row.cells) == 1 and (address := scene.choose(row.cells[0])):
        name = scene.name_of(row.cells[0])
        target = (
            link("leave out", address, f"leave out {name}", id=f"look-{row.run_ids[0]}")
            if row.cells[0] in chosen
            else link(
                "curves", scene.view.address(page="heatmap", cells=_with(scene, row.cells[0])), f"curves of {name}"
            )
        )
    labels = [label_text(label) for label in row.labels] or [scene.name]
    return [*labels, status, target, *values]


def _with(scene: Scene, cell: int) -> tuple[str, ...]:
    key = scene.key_of(cell)
    return scene.view.with_cell(key, scene.experiment.run_ids(cell)) if key else scene.view.cells
