"""Heatmaps of paired differences: every variant minus the first, cell by cell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from clops_sweep.errors import UsageError

from ..collect import Experiment
from ..metrics import Metric
from ..statistics import splits_of
from ..tables.comparisons import Comparison, Comparisons
from .heatmaps import Heatmap, Panel, heatmap

SIGNIFICANT = 0.05


def difference_heatmap(
    experiment: Experiment, compared: Comparisons, metric: str = "auc", axes: tuple[str, str] | None = None
) -> Heatmap:
    """Return mean paired differences of one metric, one panel per variant except the first.

    `marked` cells have p < 0.05, corrected over all comparisons of the page. `n` is the number of pairs and `asked` the
    number requested; with several patient splits, a split with all its seeds is one pair.

    Args:
        experiment: the experiment.
        compared: `comparisons(experiment)`.
        metric: a column of `runs`.
        axes: the axes of rows and columns; both must be numeric.

    Raises:
        UsageError: the space has no variants to compare, or an axis is not numeric.
    """
    plain = heatmap(experiment, metric, axes)
    if not {plain.row_axis, plain.column_axis} <= set(experiment.number_axes):
        raise UsageError("differences between variants need two axes of numbers")
    rows = {row.cell: row for row in compared.rows if row.kind == "variant"}
    pairs = _pairs_asked(experiment)
    title_of: dict[int, str] = {}
    for panel in plain.panels:
        title_of |= dict.fromkeys(panel.cells.ravel().tolist(), panel.title)
    panels = [_panel(panel, rows, metric, pairs, title_of) for panel in plain.panels]
    kept = [panel for panel in panels if np.isfinite(panel.mean).any()]
    if not kept:
        raise UsageError(f"search space {experiment.name!r} has no two variants with common seeds")
    largest = max(float(np.nanmax(np.abs(panel.mean))) for panel in kept)
    limit = max(largest, 0.01)
    return replace(
        plain,
        metric=_difference(plain.metric),
        panels=tuple(kept),
        limits=(-limit, limit),
        references={},
    )


def _pairs_asked(experiment: Experiment) -> npt.NDArray[np.int64]:
    """Return the number of pairs of each cell if all runs were finished."""
    runs = experiment.runs
    splits = [str(experiment.distinct[split]) for split in splits_of(runs)]
    units = pd.Series(splits, runs.index) if len(set(splits)) > 1 else runs["seed"]
    of_cells = units.groupby(runs["cell"]).nunique()
    of_all_cells = of_cells.reindex(range(len(experiment.cells)), fill_value=0)
    return np.asarray(of_all_cells, dtype=np.int64)


def _panel(
    panel: Panel,
    rows: dict[int, Comparison],
    metric: str,
    pairs_asked: npt.NDArray[np.int64],
    title_of: dict[int, str],
) -> Panel:
    shape = panel.mean.shape
    mean = np.full(shape, np.nan)
    pairs = np.zeros(shape, dtype=np.int64)
    marked = np.zeros(shape, dtype=bool)
    baselines: dict[str, None] = {}  # each once, in order
    for position, cell in np.ndenumerate(panel.cells):
        row = rows.get(int(cell))
        if row is None:
            continue
        difference = row.differences[metric]
        mean[position] = difference.mean
        pairs[position] = difference.n
        marked[position] = row.corrected[metric] < SIGNIFICANT
        baselines[title_of[row.baseline_cell]] = None
    asked = np.where(panel.cells >= 0, pairs_asked[panel.cells], 0)
    return replace(
        panel,
        title=f"{panel.title} minus {' or '.join(baselines)}",
        mean=mean,
        sd=np.full(shape, np.nan),
        n=pairs,
        asked=asked,
        best=None,
        marked=marked,
    )


def _difference(metric: Metric) -> Metric:
    return replace(metric, plain=f"Difference in {metric.plain}", signed=True)
