"""Parallel coordinates of the configurations that meet a condition."""

from __future__ import annotations

import numpy as np

from clops_sweep.errors import UsageError

from ...collect import label_text
from ...formats import plural
from ..figures import parallel_figure
from ..parallel import ParallelCoordinates, parallel_coordinates
from ..runs_table import matching
from ..scene import Scene
from .element import Element, element, link, notice
from .widgets import entry, experiment_choice, graph, metric_choice

_LISTED = 10


def parallel_controls(scene: Scene) -> tuple[Element, ...]:
    """Experiment, metric and condition."""
    return (
        experiment_choice(scene.view, scene.name, list(scene.snapshot.followed)),
        metric_choice(scene.view, scene.followed.metrics),
        entry("where", "Only runs where", scene.view.where, "auc > 0.8 and storage_fraction in [0.5, 1.0]"),
    )


def parallel_page(scene: Scene) -> tuple[Element, ...]:
    """The figure, then the best of its lines as links."""
    experiment = scene.experiment
    try:
        kept = matching(experiment, scene.view.where)
        cells = np.unique(experiment.runs["cell"].to_numpy(dtype=int)[kept]).tolist()
        record = parallel_coordinates(experiment, scene.view.metric, cells)
    except UsageError as error:
        return (notice(f"{error}."),)
    if not record.cells:
        return (notice("No finished run meets the condition."),)
    names = [scene.name_of(cell) for cell in record.cells]
    keys = [scene.key_of(cell) for cell in record.cells]
    most = f"; shown: the best {len(record.cells):,}" if record.total > len(record.cells) else ""
    said = f"{plural(record.total, 'configuration')} with a finished run{most}. A click on a line looks at it closely."
    drawn = graph(parallel_figure(record, names, keys), describe_parallel(record, names), "parallel")
    best = [
        element(
            "Li",
            link(names[at], scene.view.address(page="heatmap", cells=scene.view.with_cell(keys[at] or ""))),
            f": {record.metric.text(record.estimates[at].mean)} (n = {record.estimates[at].n})",
        )
        for at in range(len(record.cells) - 1, max(-1, len(record.cells) - 1 - _LISTED), -1)
    ]
    heading = "Best" if record.metric.better else "Highest"
    return (element("P", said, role="status"), drawn, element("H2", heading), element("Ol", *best))


def describe_parallel(record: ParallelCoordinates, names: list[str]) -> str:
    """The figure in words."""
    low, high = record.metric.text(float(record.values.min())), record.metric.text(float(record.values.max()))
    axes = ", ".join(
        f"{axis} ({label_text(labels[0])} to {label_text(labels[-1])})"
        for axis, labels in zip(record.axes, record.labels, strict=True)
    )
    return (
        f"Parallel coordinates of {len(names)} configurations over {axes or 'no axis'}: {record.metric.plain} from "
        f"{low} to {high}. The best are listed below, all in the table of runs."
    )
