"""Experiments of the runs in a store, without a search-space file."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.splits.fold_names import fold_of
from clops_sweep.errors import UsageError
from clops_sweep.experiment.columns import config_columns, config_from_row
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.fields import REPLICATES, SPLIT_AXES, any_replicate
from clops_sweep.experiment.plugins.former import FORMER_OPTIONS
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import STRATEGIES, may_use
from clops_sweep.store.tables import RUNS

from .collect import FAMILY, Cell, Experiment, Family, editions, family_of, shared_versions, whole_hashes
from .editions import Edition, Preparations, Present
from .selection import fields_unlike_paper

_MOST_CELLS = 10_000

_Place = tuple[Any, ...]
"""A label on each axis."""


def config_of(row: dict[str, Any]) -> RunConfig | None:
    """Return the config of a row of `runs`; None if it is invalid or names an unregistered plug-in."""
    try:
        return config_from_row(row)
    except ValueError:  # includes UsageError
        return None


def stored_experiments(
    runs: pd.DataFrame,
    data_hashes: Collection[str] = (),
    *,
    beside: bool = False,
    present: Present = lambda dataset: None,
) -> tuple[list[Experiment], list[Experiment]]:
    """Return one experiment per data set, scenario and strategy, of one edition of the data; folds are separate.

    Its axes are the fields in which the runs differ, if every combination has a run; equivalent configurations share
    runs. Otherwise it has a single axis that names the configurations.

    Args:
        runs: the store's table `runs`.
        data_hashes: as in `collect`.
        beside: whether they stand beside experiments of search spaces, and are named accordingly.
        present: see `Preparations`.

    Returns:
        Experiments of runs with a valid config, and experiments of runs that name an unregistered plug-in.
    """
    wanted = whole_hashes(runs, data_hashes)
    known = _with_valid_config(runs)
    experiments = []
    for experiment in _experiments(runs[known], wanted, present, known=True, beside=beside):
        experiments.append(_gridded(experiment, shared=True))
    others = []
    for experiment in _experiments(runs[~known], wanted, present, beside=beside):
        gridded = _gridded(experiment, shared=False)
        others.append(replace(gridded, name=f"{gridded.name}, as stored"))
    return experiments, others


def _with_valid_config(runs: pd.DataFrame) -> NDArray[np.bool_]:
    """Return which rows have a valid config, bool [rows]."""
    fields = runs[config_columns(map(str, runs))]
    is_valid = []
    for row in fields.to_dict("records"):
        values = {str(name): value for name, value in row.items()}
        is_valid.append(config_of(values) is not None)
    return np.array(is_valid, dtype=bool)


def recorded_experiments(
    runs: pd.DataFrame, *, beside: bool = False, present: Present = lambda dataset: None
) -> list[Experiment]:
    """Return one experiment per data set, scenario and strategy of all runs, without validating their configs.

    Its axes are all columns in which the runs differ; combinations without a run are allowed, since a running sweep has
    many. Ten thousand runs take a second.

    Args:
        runs: the store's table `runs`.
        beside: as in `stored_experiments`.
        present: see `Preparations`.
    """
    return list(_experiments(runs, (), present, beside=beside))


def data_keys(experiments: Iterable[Experiment]) -> Iterator[DataKey]:
    """Return the prepared data that experiments were computed on."""
    for experiment in experiments:
        of_cells = experiment.runs[["cell", *SPLIT_AXES]].drop_duplicates()
        for row in of_cells.to_dict("records"):
            split = row["split"] if isinstance(row["split"], str) else None
            key = experiment.cells[row["cell"]].config.data_key
            yield key._replace(split_seed=int(row["split_seed"]), split=split)


def _experiments(
    runs: pd.DataFrame, wanted: Collection[str], present: Present, *, known: bool = False, beside: bool = False
) -> Iterator[Experiment]:
    folds = [f"{fold_of(fold)[1]} folds" if isinstance(fold, str) else "" for fold in runs["split"]]
    of_data = [runs["dataset"], runs["scenario"]]
    for names, rows in runs.groupby([*of_data, runs["strategy"], np.array(folds, dtype=object)], sort=True):
        name = " ".join(map(str, names)).strip() + ", other runs" * beside
        made = _experiment(name, rows, wanted, Preparations(rows, present), known=known)
        if made.cells:
            yield made


def _experiment(
    name: str, rows: pd.DataFrame, wanted: Collection[str], preparations: Preparations, *, known: bool
) -> Experiment:
    """Return one experiment with an axis for each field in which its runs differ; configs are validated if `known`."""
    rows_of_all = _without_idle(rows)
    rows, shown, left_aside = _newest(rows_of_all, wanted, preparations)
    replaced = _replaced(rows_of_all, rows, shown) if left_aside else 0
    options = _usable_options(rows) if known else _options(rows)
    fields = [*RunConfig.model_fields, *options]
    varied = _varied(rows, fields)
    of_runs: list[_Place] = []
    configs: dict[_Place, RunConfig] = {}
    for row in rows[list(dict.fromkeys((*fields, *varied)))].to_dict("records"):
        values = {str(name): value for name, value in row.items()}
        labels_of_run = tuple(stored_value(values[field]) for field in varied)
        of_runs.append(labels_of_run)
        if labels_of_run not in configs:
            configs[labels_of_run] = config_from_row(values) if known else _unvalidated(values, fields, options)
    cells = []
    for labels_of_run, config in configs.items():
        stored = dict(zip(varied, labels_of_run, strict=True))
        labels = _as_in_config(stored, config) if known else stored
        cells.append(Cell(labels, config, config))
    axes = {}
    for field in varied:
        axes[field] = _in_order({cell.labels[field] for cell in cells})
    number = {labels_of_run: position for position, labels_of_run in enumerate(configs)}
    frame = rows.assign(cell=[number[values_of_run] for values_of_run in of_runs])
    return Experiment(name, axes, tuple(cells), frame, tuple(shown), tuple(left_aside), replaced)


def _varied(rows: pd.DataFrame, fields: Iterable[str]) -> list[str]:
    """Return the fields in which runs differ; also the run id if they differ in no field."""
    varied = []
    for field in fields:
        if field not in REPLICATES and len(set(map(str, rows[field]))) > 1:
            varied.append(field)
    if rows.duplicated([*varied, *REPLICATES]).any():
        varied.append("run_id")  # invalid configs cannot be compared, so they are never merged
    return varied


def _unvalidated(row: Mapping[str, Any], fields: Iterable[str], options: Collection[str]) -> RunConfig:
    """Return the config of a row without validation; options that the run does not use are left out."""
    used = {}
    for field in fields:
        value = stored_value(row[field])
        if field not in options or _is_used(field, value):
            used[field] = value
    return RunConfig.model_construct(**used)


def _as_in_config(stored: Mapping[str, Any], config: RunConfig) -> dict[str, Any]:
    """Return labels with the config's values: pandas stores integers with gaps as float."""
    return {field: value if field == "run_id" else config.get(field) for field, value in stored.items()}


def _gridded(experiment: Experiment, *, shared: bool) -> Experiment:
    """Place the cells on a full grid, or on one axis if a combination has no run.

    Args:
        experiment: the experiment; options that a run does not use have the label None.
        shared: whether a combination may use the cell of an equivalent one, such as all acquisition functions at a = 1.
    """
    axes = _axes_of_grid(experiment)
    if prod(map(len, axes.values())) > _MOST_CELLS:
        return _on_one_axis(experiment)
    combinations = list(product(*axes.values()))
    sources = _sources(experiment, axes, combinations, shared=shared)
    if sources is None or set(sources) != set(range(len(experiment.cells))):
        return _on_one_axis(experiment)
    cells = []
    for combination, source in zip(combinations, sources, strict=True):
        labels = dict(zip(axes, combination, strict=True))
        cells.append(replace(experiment.cells[source], labels=labels))
    rows = experiment.runs.groupby("cell").indices
    frame = experiment.runs.iloc[np.concatenate([rows[source] for source in sources])]
    frame = frame.assign(cell=np.repeat(np.arange(len(cells)), [len(rows[source]) for source in sources]))
    return replace(experiment, axes=axes, cells=tuple(cells), runs=frame)


def _axes_of_grid(experiment: Experiment) -> dict[str, tuple[Any, ...]]:
    """Return the axes with several labels, without None of options, which other methods do not use."""
    axes = {}
    for axis, all_labels in experiment.axes.items():
        labels = tuple(label for label in all_labels if label is not None or axis not in OPTIONS)
        if len(labels) > 1:
            axes[axis] = labels
    return axes


def _sources(
    experiment: Experiment, axes: Iterable[str], combinations: Iterable[_Place], *, shared: bool
) -> list[int] | None:
    """Return the number of the cell for each combination of a grid; None if one has no cell.

    Args:
        experiment: the experiment.
        axes: axes of the grid.
        combinations: labels on these axes.
        shared: whether a combination may use the cell of an equivalent configuration.
    """
    of_place: dict[_Place, int] = {}
    of_identity: dict[str | None, int] = {}
    for number, cell in enumerate(experiment.cells):
        of_place[tuple(cell.labels[axis] for axis in axes)] = number
        if shared:
            of_identity[_identity(cell.config, {})] = number
    of_identity.pop(None, None)
    sources = []
    for labels in combinations:
        source = of_place.get(labels)
        if source is None and shared:
            changes = dict(zip(axes, labels, strict=True))
            source = of_identity.get(_identity(experiment.cells[0].config, changes))
        if source is None:
            return None
        sources.append(source)
    return sources


def _identity(config: RunConfig, changes: dict[str, Any]) -> str | None:
    """Return the identity of a configuration without its seeds; None if its values are not valid together."""
    try:
        return any_replicate(config.replace(**changes)).identity
    except UsageError:
        return None


def _on_one_axis(experiment: Experiment) -> Experiment:
    """Return a single axis that names each configuration by the fields that differ from the paper, or by all."""
    order = sorted(range(len(experiment.cells)), key=lambda number: _text_of_labels(experiment.cells[number]))
    in_order = [experiment.cells[number] for number in order]
    names = [_in_words(cell, _telling(cell)) for cell in in_order]
    if len(set(names)) < len(names):
        names = [_in_words(cell, experiment.axes) for cell in in_order]
    cells = [replace(cell, labels={"configuration": name}) for cell, name in zip(in_order, names, strict=True)]
    frame = experiment.runs.assign(cell=np.argsort(order)[experiment.runs["cell"].to_numpy(dtype=int)])
    return replace(experiment, axes={"configuration": tuple(names)}, cells=tuple(cells), runs=frame)


def _text_of_labels(cell: Cell) -> str:
    return repr(tuple(cell.labels.values()))


def _telling(cell: Cell) -> list[str]:
    """Return the axes on which a cell differs from the paper; `weight_seed` is not in the paper."""
    unlike = {*fields_unlike_paper(cell.config), "weight_seed"}
    telling = []
    for axis, label in cell.labels.items():
        if axis in unlike and (axis != "weight_seed" or label is not None):
            telling.append(axis)
    return telling


def _in_words(cell: Cell, axes: Iterable[str]) -> str:
    return ", ".join(f"{axis} {cell.labels[axis]}" for axis in axes) or "as in the paper"


def _is_used(option: str, value: Any) -> bool:
    return option in OPTIONS and value is not None


def _newest(
    rows: pd.DataFrame, wanted: Collection[str], preparations: Preparations
) -> tuple[pd.DataFrame, list[Edition], list[Edition]]:
    """Return the rows of the requested or newest edition of a data set, these editions, and the other editions.

    Args:
        rows: rows of `runs` of one data set.
        wanted: data hashes of editions to show instead of the newest.
        preparations: the preparations of the data set.
    """
    shown: list[Edition] = []
    left_aside: list[Edition] = []
    kept = [rows.iloc[:0]]
    known = editions(rows)
    hashes = rows["data_hash"].dropna().unique().tolist()
    asked_for = [data_hash for data_hash in hashes if data_hash in wanted]
    chosen = preparations.choose(str(rows["dataset"].iloc[0]), asked_for or hashes) if len(rows) else None
    of_chosen = rows["data_hash"].map(lambda data_hash: preparations.fits(data_hash, chosen)).to_numpy(dtype=bool)
    # for all patient splits: never a mixture of two versions of the method
    newest = shared_versions(rows[of_chosen]).max()
    members: dict[Family, list[int]] = {}
    for position, row in enumerate(rows[list(FAMILY)].to_dict("records")):
        members.setdefault(family_of({str(name): value for name, value in row.items()}), []).append(position)
    for family in sorted(members, key=lambda family: family.sort_key):
        of_family = rows.iloc[members[family]]
        newest_first = sorted(
            known.get(family, []),
            key=lambda edition: (not preparations.fits(edition[0], chosen), edition[0] not in wanted),
        )
        for rank, (data_hash, version) in enumerate(newest_first):
            of_edition = of_family[(of_family["data_hash"] == data_hash) & (shared_versions(of_family) == version)]
            is_shown = rank == 0 and (version == newest or data_hash in wanted)
            is_shown = is_shown and preparations.fits(data_hash, chosen)
            edition = Edition(*family, data_hash, version, len(of_edition), preparations.of(data_hash))
            (shown if is_shown else left_aside).append(edition)
            kept += [of_edition] if is_shown else []
    return pd.concat(kept[1:] or kept, ignore_index=True), shown, left_aside


def _replaced(rows: pd.DataFrame, kept: pd.DataFrame, shown: Iterable[Edition]) -> int:
    """Return how many configurations and seeds have runs on other data only than those shown."""
    settings = config_columns(map(str, rows))
    settings.remove("run_id")
    of_rows = pd.util.hash_pandas_object(rows[settings].astype(str), index=False)
    of_kept = pd.util.hash_pandas_object(kept[settings].astype(str), index=False)
    on_shown_data = rows["data_hash"].isin([edition.data_hash for edition in shown]).to_numpy()
    return int(of_rows[~on_shown_data & ~of_rows.isin(of_kept).to_numpy()].nunique())


def _usable_options(rows: pd.DataFrame) -> list[str]:
    """Return the columns that are options of the rows' strategies, or of other plug-ins.

    Rows of earlier versions may have values of options that their strategy uses no longer.
    """
    there = [name for name in OPTIONS if name in rows]
    strategies = rows["strategy"].unique()
    if not STRATEGIES.keys() >= set(strategies):
        return there
    usable = []
    for name in there:
        if any(may_use(name, {"strategy": strategy}) for strategy in strategies):
            usable.append(name)
    return usable


def _without_idle(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows in which a former option is missing where it had no effect."""
    for name, former in FORMER_OPTIONS.items():
        if name in rows:
            rows = rows.assign(**{name: rows[name].where(rows[name] != former.without, None)})
    return rows


def _options(rows: pd.DataFrame) -> list[str]:
    """Return the columns that are options of plug-ins: unlike counters, they do not vary with the seed.

    Registered options are known by name, and so are former ones.
    """
    registered = [*_usable_options(rows), *(name for name in FORMER_OPTIONS if name in rows)]
    by_name = {*RUNS.names, *OPTIONS, *FORMER_OPTIONS}
    added = [str(column) for column in rows if column not in by_name]
    if not added:
        return registered
    by_seed = [part for _, part in rows.groupby(list(REPLICATES), dropna=False)]
    for name in added:
        values_of_seeds = {frozenset(map(str, part[name])) for part in by_seed}
        if len(values_of_seeds) == 1:
            registered.append(name)
    return registered


def stored_value(stored: Any) -> Any:
    """Convert a value of a column: numbers to Python's own, JSON lists to tuples, missing values to None."""
    if stored is None or stored is pd.NA or stored != stored:  # nan differs from itself, so it cannot be a label
        return None
    if isinstance(stored, str) and stored.startswith("["):
        return _tuples(json.loads(stored))
    return stored.item() if hasattr(stored, "item") else stored


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _in_order(values: Collection[Any]) -> tuple[Any, ...]:
    numbers = all(isinstance(value, int | float) for value in values)
    return tuple(sorted(values) if numbers else sorted(values, key=repr))
