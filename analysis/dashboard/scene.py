"""Scenes: a view resolved on a snapshot, with defaults for everything not chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import pandas as pd

from clops_sweep.errors import UsageError
from clops_sweep.experiment.metrics import MEASURES
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import TableName

from ..collect import Cell, Experiment, label_text
from ..figures.curves import LearningCurves, learning_curves
from ..figures.heatmaps import Heatmap, Panel, heatmap
from ..figures.r_matrices import RMatrix, r_matrix
from ..figures.task_titles import TaskTitles
from ..metrics import metric_named
from ..selection import cell_name
from ..statistics import split_name
from .records.overview import progress
from .snapshot import Followed, Snapshot
from .view import View, slice_of

_MOST_ASKED = 60
"""Most configurations of which a run is read to find instances."""

_LEAST_OF_ID = 4
"""Least number of characters to find a run by its id."""

NO_AXIS = "(no other axis)"
"""The second axis of a heatmap of an experiment with fewer than two axes."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A view resolved on a snapshot: experiment, metric, axes and panel exist.

    Attributes:
        view: the view, with existing names only.
        asked: the requested view.
        snapshot: the snapshot.
        store: the store, for the other tables of a run.
        name: name of the experiment.
        followed: the experiment.
    """

    view: View
    asked: View
    snapshot: Snapshot
    store: RunStore
    name: str
    followed: Followed

    @classmethod
    def of(cls, view: View, snapshot: Snapshot, store: RunStore) -> Scene | None:
        """Return the scene of a view; None without any experiment."""
        names = list(snapshot.followed)
        if view.page == "search":
            names = [name for name in names if snapshot.followed[name].study is not None]
        if not names:
            return None
        name = view.experiment if view.experiment in names else names[0]
        if view.page == "overview" and view.experiment not in names:
            name = snapshot.once("newest", lambda: _newest(snapshot))
        if view.page == "instances" and view.experiment not in names:
            name = next((it for it in names if with_instances(it, snapshot, store)), names[0])
        followed = snapshot.followed[name]
        metrics = followed.metrics
        wanted = view.metric, f"test_{view.metric}"
        metric = next((it for it in (*wanted, *metrics) if it in metrics), followed.experiment.headline[0])
        axes = list(with_two_axes(followed.experiment).axes)
        scales = [axis for axis in followed.experiment.number_axes if axis in axes]
        scales.sort(key=lambda axis: -len(followed.experiment.axes[axis]))
        preferred = [*scales, *(axis for axis in axes if axis not in scales)]
        rows = view.rows if view.rows in axes else next(axis for axis in preferred if axis != view.columns)
        columns = view.columns if view.columns in axes and view.columns != rows else None
        columns = columns or next(axis for axis in preferred if axis != rows)
        group = tuple(axis for axis in view.group if axis in followed.experiment.axes)
        filled = replace(view, metric=metric, rows=rows, columns=columns, group=group)
        return cls(filled, view, snapshot, store, name, followed)

    @classmethod
    def empty(cls, view: View, snapshot: Snapshot, store: RunStore) -> Scene:
        """Return the scene of a store in which no run has ended."""
        nothing = pd.DataFrame({name: [] for name in ("cell", "split_seed", "split", "seed", "run_id", "status")})
        return cls(view, view, snapshot, store, "", Followed(Experiment("", {}, (), nothing), None, ()))

    @property
    def experiment(self) -> Experiment:
        """The experiment that is shown."""
        return self.followed.experiment

    def heatmap(self) -> Heatmap:
        """All panels of the heatmap."""
        axes = (self.view.rows, self.view.columns)
        key = "heatmap", self.name, self.view.metric, axes
        return self.snapshot.once(key, lambda: heatmap(with_two_axes(self.experiment), self.view.metric, axes))

    @property
    def other_axes(self) -> dict[str, tuple[str, ...]]:
        """The axes of a heatmap that are neither rows nor columns, with their labels."""
        axes = {axis: labels for axis, labels in self.experiment.axes.items() if len(labels) > 1}
        shown = self.view.rows, self.view.columns
        return {axis: tuple(map(label_text, labels)) for axis, labels in axes.items() if axis not in shown}

    def slice(self) -> tuple[Panel | None, dict[str, str]]:
        """The panel shown, and its label on each other axis.

        If no run has all chosen labels, the label chosen last counts most. Of equal panels, the one with the most
        finished cells is shown. None if the experiment has no cell.
        """
        last_first = self.view.slice[::-1]

        def rank(it: tuple[Panel, dict[str, str]]) -> tuple[list[bool], int]:
            has = {slice_of(*label) for label in it[1].items()}
            return [label in has for label in last_first], int((it[0].n > 0).sum())

        return max(self._panels(), key=rank, default=(None, {}))

    def panel(self) -> Panel | None:
        """The panel of `slice`."""
        return self.slice()[0]

    def _panels(self) -> list[tuple[Panel, dict[str, str]]]:
        """The panels of the heatmap with their labels on the other axes."""

        def make() -> list[tuple[Panel, dict[str, str]]]:
            cells, others = self.experiment.cells, self.other_axes
            found = [(panel, cells[int(panel.cells.max())]) for panel in self.heatmap().panels]
            return [(panel, {axis: label_text(cell.labels[axis]) for axis in others}) for panel, cell in found]

        return self.snapshot.once(("panels", self.name, self.view.metric, self.view.rows, self.view.columns), make)

    def cells_of(self, run: str) -> tuple[int, ...]:
        """Return the cells of a run; at a = 1, acquisition functions have one cell each but share a run."""
        return self._cells.get(run, ())

    def key_of(self, cell: int) -> str | None:
        """Return the key of a cell in addresses: its first finished run, which stays when others are added."""
        return next(iter(self.experiment.run_ids(cell)), None)

    def run_name(self, run: str) -> str:
        """Return the name of a run: its configuration and its seeds."""
        return self.run_names().get(run, run)

    def run_names(self) -> Mapping[str, str]:
        """Names of all runs by id."""

        def make() -> dict[str, str]:
            names = [self.name_of(cell) for cell in range(len(self.experiment.cells))]
            runs = self.experiment.runs.sort_values(["cell", "split_seed", "split", "seed", "run_id"])
            several_splits = len({split for split, _ in self.experiment.replicates}) > 1
            found: dict[str, str] = {}
            rows = zip(runs["cell"], runs["run_id"], self.experiment.replicates_of(runs), strict=True)
            for cell, run, (split, seed) in rows:
                found.setdefault(run, f"{names[cell]}, {f'{split_name(split)}, ' * several_splits}seed {seed}")
            return found

        return self.snapshot.once(("run names", self.name), make)

    def found(self) -> list[str]:
        """Return the runs that match every word of `find`, by a word of their name or the start of their id.

        Names that have two of the words side by side come first: "seed 1" before "a = 1, seed 0".
        """
        words = self.view.find.lower().replace(",", " ").split()
        names = {run: f" {name} ".lower().replace(",", "") for run, name in self.run_names().items() if run}
        found = [run for run, name in names.items() if all(f" {it}" in name or _begins(run, it) for it in words)]
        pairs = [f" {first} {second} " for first, second in pairwise(words)]
        return sorted(found, key=lambda run: -sum(pair in names[run] for pair in pairs))

    def chosen(self) -> list[int]:
        """The existing cells that the view names; if a run has several, that of the panel."""
        panel = self.panel() if self.view.page == "heatmap" else None
        shown = set() if panel is None else set(panel.cells.ravel().tolist())
        found = (sorted(self.cells_of(key), key=lambda cell: cell not in shown)[:1] for key in self.view.cells)
        return list(dict.fromkeys(cell for cells in found for cell in cells))

    def choose(self, cell: int, **changes: str) -> str | None:
        """Return the address of this view with a cell added or removed; None if it has no finished run."""
        key = self.key_of(cell)
        if key is None:
            return None
        return self.view.address(cells=self.view.with_cell(key, self.experiment.run_ids(cell)), **changes)

    def name_of(self, cell: int) -> str:
        """Return the name of a configuration."""
        return cell_name(self.experiment.cells[cell]) or self.name

    def curves(self, cell: int) -> LearningCurves:
        """Return the learning curves of a cell.

        Raises:
            UsageError: its runs have no curves, or trained different tasks.
        """
        measure = metric_named(self.view.metric).measure or self.experiment.measure
        rows = self.rows("curves", cell)
        if rows.empty:
            raise UsageError("these runs recorded no learning curves")
        split = "test" if self.experiment.on_test else "validation"
        rows = self.experiment.in_units(rows)
        return learning_curves(rows, self.name_of(cell), measure if rows[measure].notna().any() else "auc", split)

    def r_matrix(self, cell: int) -> RMatrix:
        """Return R of a cell on the split of the metric.

        Raises:
            UsageError: its runs have no R, or trained different tasks.
        """
        metric = self.view.metric
        split = "test" if metric.startswith("test_") or self.experiment.on_test else "validation"
        measure = metric_named(metric).measure or self.experiment.measure
        rows = self.rows("r_matrix", cell)
        if not (rows["split"] == split).any():
            raise UsageError(f"these runs recorded no R on the {split} split")
        known = measure in MEASURES and rows[measure].notna().any()
        return r_matrix(self.experiment.in_units(rows), self.name_of(cell), measure if known else "auc", split)

    def rows(self, table: TableName, cell: int, run_ids: tuple[str, ...] | None = None) -> pd.DataFrame:
        """Return rows of a table for finished runs of a cell, or for some of them, with task titles."""
        ids = self.experiment.run_ids(cell) if run_ids is None else run_ids

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


def with_instances(name: str, snapshot: Snapshot, store: RunStore) -> str | None:
    """Return the first run of an experiment with recorded instances. One run of each configuration is read."""
    experiment = snapshot.followed[name].experiment

    def make() -> str | None:
        firsts = [experiment.run_ids(cell)[:1] for cell in range(len(experiment.cells))]
        asked = [run for runs in firsts for run in runs][:_MOST_ASKED]
        have = set(store.read("instances", asked, ["run_id"])["run_id"]) if asked else set()
        return next((run for run in asked if run in have), None)

    return snapshot.once(("with instances", name), make)


def _newest(snapshot: Snapshot) -> str:
    """Return the experiment whose run ended last."""
    last = {it.name: it.last.timestamp() if it.last is not None else 0.0 for it in progress(snapshot)}
    return max(last, key=lambda name: last[name])


def _begins(run: str, word: str) -> bool:
    return len(word) >= _LEAST_OF_ID and run.startswith(word)


def with_two_axes(experiment: Experiment) -> Experiment:
    """Return an experiment with at least two axes, as a heatmap needs; axes with one label are added."""
    lacking = [NO_AXIS, f"{NO_AXIS} "][: max(0, 2 - len(experiment.axes))]
    if not lacking:
        return experiment
    added = dict.fromkeys(lacking, "all")
    cells = tuple(Cell({**cell.labels, **added}, cell.config, cell.written) for cell in experiment.cells)
    axes = {**experiment.axes, **dict.fromkeys(lacking, ("all",))}
    return replace(experiment, axes=axes, cells=cells)
