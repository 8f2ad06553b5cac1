"""What a view means on a snapshot: names found, and what is not chosen filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd

from clops_sweep.errors import UsageError
from clops_sweep.experiment.metrics import MEASURES
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import TableName

from ..collect import Cell, Experiment
from ..figures.curves import LearningCurves, learning_curves
from ..figures.heatmaps import Heatmap, Panel, heatmap
from ..figures.r_matrices import RMatrix, r_matrix
from ..figures.task_titles import TaskTitles
from ..metrics import metric_named
from ..selection import cell_name
from .snapshot import Followed, Snapshot
from .view import View

NO_AXIS = "(no other axis)"
"""The second axis of a heatmap of an experiment with fewer than two axes."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A view of a snapshot in which everything is there: experiment, metric, axes and panel.

    Attributes:
        view: the view, with names that are there.
        snapshot: what it is a view of.
        store: where the rest of a run is read.
        name: the experiment's.
        followed: the experiment.
    """

    view: View
    snapshot: Snapshot
    store: RunStore
    name: str
    followed: Followed

    @classmethod
    def of(cls, view: View, snapshot: Snapshot, store: RunStore) -> Scene | None:
        """The scene of a view; None where there is no experiment at all."""
        names = list(snapshot.followed)
        if view.page == "search":
            names = [name for name in names if snapshot.followed[name].study is not None]
        if not names:
            return None
        name = view.experiment if view.experiment in names else names[0]
        followed = snapshot.followed[name]
        metrics = followed.metrics
        wanted = view.metric, f"test_{view.metric}"
        metric = next((it for it in (*wanted, *metrics) if it in metrics), followed.experiment.headline[0])
        axes = list(with_two_axes(followed.experiment).axes)
        scales = [axis for axis in followed.experiment.number_axes if axis in axes]
        preferred = [*scales, *(axis for axis in axes if axis not in scales)]
        rows = view.rows if view.rows in axes else next(axis for axis in preferred if axis != view.columns)
        columns = view.columns if view.columns in axes and view.columns != rows else None
        columns = columns or next(axis for axis in preferred if axis != rows)
        group = tuple(axis for axis in view.group if axis in followed.experiment.axes)
        filled = replace(view, metric=metric, rows=rows, columns=columns, group=group)
        return cls(filled, snapshot, store, name, followed)

    @property
    def experiment(self) -> Experiment:
        """What is looked at."""
        return self.followed.experiment

    def heatmap(self) -> Heatmap:
        """All panels of the heatmap."""
        axes = (self.view.rows, self.view.columns)
        key = "heatmap", self.name, self.view.metric, axes
        return self.snapshot.once(key, lambda: heatmap(with_two_axes(self.experiment), self.view.metric, axes))

    def panel(self) -> Panel | None:
        """The panel that is chosen, else the first that has the most; None where the experiment has no cell."""
        found = self.heatmap()
        chosen = [panel for panel in found.panels if panel.title == self.view.panel]
        if chosen:
            return chosen[0]
        return max(found.panels, key=lambda panel: int((panel.n > 0).sum()), default=None)

    def cells_of(self, run: str) -> tuple[int, ...]:
        """The cells that a run belongs to: at a = 1 acquisition functions are one run, and have a cell each."""
        return self._cells.get(run, ())

    def key_of(self, cell: int) -> str | None:
        """How an address names a cell: by its first finished run, so that the name stays when others are added."""
        return next(iter(self.experiment.run_ids(cell)), None)

    def chosen(self) -> list[int]:
        """The cells that the view names, as far as they are there; of several of one run, that of the panel."""
        panel = self.panel() if self.view.page == "heatmap" else None
        shown = set() if panel is None else set(panel.cells.ravel().tolist())
        found = (sorted(self.cells_of(key), key=lambda cell: cell not in shown)[:1] for key in self.view.cells)
        return list(dict.fromkeys(cell for cells in found for cell in cells))

    def choose(self, cell: int, **changes: str) -> str | None:
        """The address of this view with a cell chosen, or no longer chosen; None if it has no finished run."""
        key = self.key_of(cell)
        if key is None:
            return None
        return self.view.address(cells=self.view.with_cell(key, self.experiment.run_ids(cell)), **changes)

    def name_of(self, cell: int) -> str:
        """A configuration in words."""
        return cell_name(self.experiment.cells[cell]) or self.name

    def curves(self, cell: int) -> LearningCurves:
        """The learning curves of a cell.

        Raises:
            UsageError: its runs have none, or trained different tasks.
        """
        measure = metric_named(self.view.metric).measure or self.experiment.measure
        rows = self._rows("curves", cell)
        split = "test" if self.experiment.on_test else "validation"
        return learning_curves(rows, self.name_of(cell), measure if rows[measure].notna().any() else "auc", split)

    def r_matrix(self, cell: int) -> RMatrix:
        """R of a cell on the split of the metric.

        Raises:
            UsageError: its runs have none, or trained different tasks.
        """
        metric = self.view.metric
        split = "test" if metric.startswith("test_") or self.experiment.on_test else "validation"
        measure = metric_named(metric).measure or self.experiment.measure
        rows = self._rows("r_matrix", cell)
        known = measure in MEASURES and rows[measure].notna().any()
        return r_matrix(rows, self.name_of(cell), measure if known else "auc", split)

    def _rows(self, table: TableName, cell: int) -> pd.DataFrame:
        """Rows of a table of the finished runs of a cell, tasks by what they hold."""
        ids = self.experiment.run_ids(cell)
        if not ids:
            raise UsageError(f"{self.name_of(cell)}: no finished run")

        def read() -> pd.DataFrame:
            rows = self.store.read(table, list(ids))
            return TaskTitles(self.snapshot.frames).named(rows, self.experiment, cell)

        return self.snapshot.once((table, ids), read)

    @property
    def _cells(self) -> Mapping[str, tuple[int, ...]]:
        def make() -> dict[str, tuple[int, ...]]:
            runs, found = self.experiment.runs, dict[str, tuple[int, ...]]()
            for run, cell in zip(runs["run_id"], runs["cell"], strict=True):
                found[run] = (*found.get(run, ()), int(cell))
            return found

        return self.snapshot.once(("cells", self.name), make)


def with_two_axes(experiment: Experiment) -> Experiment:
    """An experiment that a heatmap can be made of: axes of one place are added until there are two."""
    lacking = [NO_AXIS, f"{NO_AXIS} "][: max(0, 2 - len(experiment.axes))]
    if not lacking:
        return experiment
    added = dict.fromkeys(lacking, "all")
    cells = tuple(Cell({**cell.labels, **added}, cell.config, cell.written) for cell in experiment.cells)
    axes = {**experiment.axes, **dict.fromkeys(lacking, ("all",))}
    return replace(experiment, axes=axes, cells=cells)
