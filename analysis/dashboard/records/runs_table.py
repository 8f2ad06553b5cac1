"""A table of the runs that meet a condition, single or grouped, in pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from clops_sweep.errors import UsageError
from clops_sweep.experiment.spaces.where import Where

from ...collect import Experiment, label_text
from ...formats import as_csv
from ...statistics import Estimate, estimate
from .overview import ended_at

_REPLICATE = ("split_seed", "split", "seed")

PAGE = 50
"""Rows per page."""


@dataclass(frozen=True)
class Row:
    """A run, or a group of runs with equal labels on the grouping axes.

    Attributes:
        labels: labels on the axes, then split seed and seed of a single run.
        counts: number of its runs by status.
        values: value of every column shown.
        ended: end of its last run in seconds since 1970; NaN if unknown.
        cells: indices of its configurations.
        run_ids: ids of its runs.
    """

    labels: tuple[Any, ...]
    counts: Mapping[str, int]
    values: tuple[Estimate, ...]
    ended: float
    cells: tuple[int, ...]
    run_ids: tuple[str, ...]


@dataclass(frozen=True)
class RunsTable:
    """A page of a table.

    Attributes:
        label_names: names of the labels of its rows.
        columns: names of their values.
        rows: rows of the page.
        total: number of rows on all pages.
        runs: number of runs that meet the condition.
        at: number of the page, from 1.
        pages: number of pages.
    """

    label_names: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    total: int
    runs: int
    at: int
    pages: int


def matching(experiment: Experiment, condition: str) -> npt.NDArray[np.bool_]:
    """Return which rows of an experiment's `runs` meet a condition on its columns and axes; all if it is empty.

    Raises:
        UsageError: the condition is invalid, or its values cannot be compared.
    """
    if not condition.strip():
        return np.ones(len(experiment.runs), dtype=np.bool_)
    runs = experiment.runs
    where = Where(condition, {*map(str, runs), *experiment.axes})
    used = [name for name in runs if str(name) in condition]
    frame = runs[used].copy()
    for name in frame.select_dtypes("datetimetz"):
        frame[name] = frame[name].map(lambda at: None if pd.isna(at) else at.isoformat())
    labels = [cell.labels for cell in experiment.cells]
    cells = runs["cell"].to_numpy(dtype=int)
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records") if used else [{}] * len(runs)
    named = ({**row, **labels[cell]} for row, cell in zip(rows, cells, strict=True))
    return np.fromiter((where(it) for it in named), dtype=np.bool_, count=len(runs))


def runs_table(
    experiment: Experiment,
    columns: Sequence[str],
    *,
    condition: str = "",
    group: Sequence[str] = (),
    sort: str = "",
    at: int = 1,
) -> RunsTable:
    """Return a page of the runs of an experiment, or of means over them.

    Args:
        experiment: the experiment.
        columns: numeric columns of `runs`.
        condition: a condition on any columns, as `--where` takes it.
        group: axes to group by: a row has means and standard deviations over all other axes and seeds.
        sort: a label, a column, "status" or "ended", with a leading minus for descending order.
        at: number of the page, from 1; the last page if it is too high.

    Raises:
        UsageError: an invalid condition or an unknown column.
    """
    for column in columns:
        if column not in experiment.numeric_columns:
            raise UsageError(f"column {column!r}: expected a numeric column of runs")
    runs, names, groups, order = _sorted(experiment, condition, group, sort)
    pages = max(1, -(-len(order) // PAGE))
    at = min(max(at, 1), pages)
    shown = [groups[i] for i in order[(at - 1) * PAGE : at * PAGE].tolist()]
    rows = tuple(_rows(experiment, runs, shown, names, columns)) if shown else ()
    return RunsTable(names, tuple(columns), rows, len(groups), len(runs), at, pages)


def runs_csv(experiment: Experiment, *, condition: str = "", group: Sequence[str] = (), sort: str = "") -> str:
    """Return all rows of the table with all measured columns as CSV, in full precision.

    Raises:
        UsageError: the condition is invalid.
    """
    runs, names, groups, order = _sorted(experiment, condition, group, sort)
    columns = experiment.measured
    finished = (runs["status"] == "finished").to_numpy()
    measured = np.where(finished[:, None], runs[list(columns)].to_numpy(dtype=float), np.nan)
    cells, status, ids = runs["cell"].tolist(), runs["status"].tolist(), runs["run_id"].tolist()
    seeds = {name: runs[name].tolist() for name in _REPLICATE}
    parts = [f"{column}_{part}" for column in columns for part in ("mean", "sd", "n")] if group else columns
    lines: list[list[object]] = [[*(("runs", "finished") if group else ("run_id", "status")), *names, *parts]]
    for positions in (groups[at] for at in order.tolist()):
        first = int(positions[0])
        labels = experiment.cells[cells[first]].labels
        named = [label_text(labels[it]) if it in labels else seeds[it][first] for it in names]
        if group:
            found = [estimate(measured[positions, at]) for at in range(len(columns))]
            numbers: list[object] = [part for it in found for part in (_exact(it.mean), _exact(it.sd), it.n)]
            lines.append([len(positions), int(finished[positions].sum()), *named, *numbers])
        else:
            lines.append([ids[first], status[first], *named, *map(_exact, measured[first].tolist())])
    return as_csv(lines)


def _exact(value: float) -> object:
    return value if np.isfinite(value) else ""


def _sorted(
    experiment: Experiment, condition: str, group: Sequence[str], sort: str
) -> tuple[pd.DataFrame, tuple[str, ...], _Groups, npt.NDArray[np.int64]]:
    """Return the runs that meet a condition, the names of row labels, the runs of each row, and the rows' order."""
    runs = experiment.runs[matching(experiment, condition)]
    folds = runs["split"].notna().any()
    names = tuple(group) if group else (*experiment.axes, *(name for name in _REPLICATE if folds or name != "split"))
    groups = _groups(experiment, runs, group)
    return runs, names, groups, _order(experiment, runs, groups, names, sort)


_Groups = list[npt.NDArray[np.int64]]


def _groups(experiment: Experiment, runs: pd.DataFrame, group: Sequence[str]) -> _Groups:
    """Return the indices of the runs of each row."""
    if not group:
        return [np.array([position]) for position in range(len(runs))]
    places = [tuple(repr(cell.labels[axis]) for axis in group) for cell in experiment.cells]
    number = {place: i for i, place in enumerate(dict.fromkeys(places))}
    of_cell = np.array([number[place] for place in places], dtype=np.int64)
    codes = of_cell[runs["cell"].to_numpy(dtype=int)]
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order])) + 1
    return np.split(order, starts) if len(order) else []


def _order(
    experiment: Experiment, runs: pd.DataFrame, groups: _Groups, names: tuple[str, ...], sort: str
) -> npt.NDArray[np.int64]:
    """Return the sorted rows; rows without a value are last in both directions."""
    column, falling = sort.removeprefix("-"), sort.startswith("-")
    first = np.array([positions[0] for positions in groups], dtype=np.int64)
    if column in names:
        keys = _places(experiment, runs, column)[first]
    elif column in experiment.numeric_columns:
        values = runs[column].to_numpy(dtype=float)
        finished = (runs["status"] == "finished").to_numpy()
        values = np.where(finished & np.isfinite(values), values, np.nan)
        keys = values[first] if len(groups) == len(runs) else np.array([estimate(values[i]).mean for i in groups])
    elif column == "status":
        finished = (runs["status"] == "finished").to_numpy(dtype=float)
        failed = (runs["status"] == "failed").to_numpy(dtype=float)
        keys = np.array([finished[i].mean() + failed[i].mean() / 2 for i in groups])
    elif column == "ended":
        ended = ended_at(runs)
        keys = np.array([_last(ended[i]) for i in groups])
    else:
        return np.lexsort([_places(experiment, runs, name)[first] for name in reversed(names)])
    return np.argsort(np.where(np.isnan(keys), np.inf, -keys if falling else keys), kind="stable")


def _last(ended: npt.NDArray[np.float64]) -> float:
    known = ended[np.isfinite(ended)]
    return float(known.max()) if known.size else np.nan


def _places(experiment: Experiment, runs: pd.DataFrame, name: str) -> npt.NDArray[np.float64]:
    """Return the positions of runs on an axis, or the ranks of their seeds or folds."""
    if name not in experiment.axes:
        return pd.factorize(runs[name], sort=True)[0].astype(float)
    place = {repr(label): i for i, label in enumerate(experiment.axes[name])}
    of_cell = np.array([place[repr(cell.labels[name])] for cell in experiment.cells], dtype=float)
    places: npt.NDArray[np.float64] = of_cell[runs["cell"].to_numpy(dtype=int)]
    return places


def _rows(
    experiment: Experiment, runs: pd.DataFrame, shown: _Groups, names: tuple[str, ...], columns: Sequence[str]
) -> Iterator[Row]:
    """Return the rows of a page. Columns are read from the frame once: pandas would take a second row by row."""
    runs = runs.iloc[np.concatenate(shown)]
    cells, ids, status = (runs[name].tolist() for name in ("cell", "run_id", "status"))
    seeds = {name: runs[name].tolist() for name in _REPLICATE}
    finished = (runs["status"] == "finished").to_numpy()
    values = [np.where(finished, runs[column].to_numpy(dtype=float), np.nan) for column in columns]
    ended, end = ended_at(runs), 0
    for positions in shown:
        begin, end = end, end + len(positions)
        labels = experiment.cells[cells[begin]].labels
        yield Row(
            tuple(labels[name] if name in labels else seeds[name][begin] for name in names),
            Counter(map(str, status[begin:end])),
            tuple(estimate(of_column[begin:end]) for of_column in values),
            _last(ended[begin:end]),
            tuple(dict.fromkeys(map(int, cells[begin:end]))),
            tuple(map(str, ids[begin:end])),
        )
