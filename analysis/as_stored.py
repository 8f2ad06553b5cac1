"""Experiments of the runs in a store, without a search-space file."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.splits.fold_names import fold_of
from clops_sweep.errors import UsageError
from clops_sweep.experiment.columns import config_columns, config_from_row
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.fields import REPLICATES, SPLIT_AXES, any_replicate
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import may_use
from clops_sweep.store.tables import RUNS

from .collect import FAMILY, Cell, Edition, Experiment, Family, editions, family_of, shared_versions, whole_hashes
from .selection import fields_unlike_paper

_MOST_CELLS = 10_000


def config_of(row: dict[str, Any]) -> RunConfig | None:
    """Return the config of a row of `runs`; None if it is invalid or names an unregistered plug-in."""
    try:
        return config_from_row(row)
    except ValueError:  # includes UsageError
        return None


def stored_experiments(
    runs: pd.DataFrame, data_hashes: Collection[str] = (), *, beside: bool = False
) -> tuple[list[Experiment], list[Experiment]]:
    """Return one experiment per data set, scenario and strategy, of one edition of the data; folds are separate.

    Its axes are the fields in which the runs differ, if every combination has a run; equivalent configurations share
    runs. Otherwise it has a single axis that names the configurations.

    Args:
        runs: the store's table `runs`.
        data_hashes: as in `collect`.
        beside: whether they stand beside experiments of search spaces, and are named accordingly.

    Returns:
        Experiments of runs with a valid config, and experiments of runs that name an unregistered plug-in.
    """
    wanted = whole_hashes(runs, data_hashes)
    fields = runs[config_columns(map(str, runs))].to_dict("records")
    known = np.array([config_of({str(name): it for name, it in row.items()}) is not None for row in fields], dtype=bool)
    found = [_gridded(it, shared=True) for it in _experiments(runs[known], wanted, known=True, beside=beside)]
    others = [_gridded(it, shared=False) for it in _experiments(runs[~known], wanted, beside=beside)]
    return found, [replace(it, name=f"{it.name}, as stored") for it in others]


def recorded_experiments(runs: pd.DataFrame, *, beside: bool = False) -> list[Experiment]:
    """Return one experiment per data set, scenario and strategy of all runs, without validating their configs.

    Its axes are all columns in which the runs differ; combinations without a run are allowed, since a running sweep has
    many. Ten thousand runs take a second.

    Args:
        runs: the store's table `runs`.
        beside: as in `stored_experiments`.
    """
    return list(_experiments(runs, (), beside=beside))


def data_keys(experiments: Iterable[Experiment]) -> Iterator[DataKey]:
    """Return the prepared data that experiments were computed on."""
    for experiment in experiments:
        of_cells = experiment.runs[["cell", *SPLIT_AXES]].drop_duplicates()
        for row in of_cells.to_dict("records"):
            split = row["split"] if isinstance(row["split"], str) else None
            key = experiment.cells[row["cell"]].config.data_key
            yield key._replace(split_seed=int(row["split_seed"]), split=split)


def _experiments(
    runs: pd.DataFrame, wanted: Collection[str], *, known: bool = False, beside: bool = False
) -> Iterator[Experiment]:
    folds = [f"{fold_of(it)[1]} folds" if isinstance(it, str) else "" for it in runs["split"]]
    of_data = [runs["dataset"], runs["scenario"]]
    for names, rows in runs.groupby([*of_data, runs["strategy"], np.array(folds, dtype=object)], sort=True):
        name = " ".join(map(str, names)).strip() + ", other runs" * beside
        made = _experiment(name, rows, wanted, known=known)
        if made.cells:
            yield made


def _experiment(name: str, rows: pd.DataFrame, wanted: Collection[str], *, known: bool) -> Experiment:
    """Return one experiment with an axis for each field in which its runs differ; configs are validated if `known`."""
    rows, shown, left_aside = _newest(rows, wanted)
    options = _usable_options(rows) if known else _options(rows)
    fields = [*RunConfig.model_fields, *options]
    varied = [it for it in fields if it not in REPLICATES and len(set(map(str, rows[it]))) > 1]
    if rows.duplicated([*varied, *REPLICATES]).any():
        varied.append("run_id")  # invalid configs cannot be compared, so they are never merged
    places: list[tuple[Any, ...]] = []
    configs: dict[tuple[Any, ...], RunConfig] = {}
    for row in rows[list(dict.fromkeys((*fields, *varied)))].to_dict("records"):
        places.append(tuple(stored_value(row[field]) for field in varied))
        if places[-1] not in configs:
            values = {field: stored_value(row[field]) for field in fields}
            used = {it: value for it, value in values.items() if it not in options or _is_used(it, value)}
            configs[places[-1]] = (
                config_from_row({str(it): value for it, value in row.items()})
                if known
                else RunConfig.model_construct(**used)
            )
    labels = [
        tuple(config.get(it) if known and it != "run_id" else value for it, value in zip(varied, place, strict=True))
        for place, config in configs.items()
    ]  # pandas stores integers with gaps as float; configs have integers
    axes = {field: _in_order({it[at] for it in labels}) for at, field in enumerate(varied)}
    cells = tuple(
        Cell(dict(zip(varied, it, strict=True)), config, config)
        for it, config in zip(labels, configs.values(), strict=True)
    )
    number = {place: position for position, place in enumerate(configs)}
    frame = rows.assign(cell=[number[place] for place in places])
    return Experiment(name, axes, cells, frame, tuple(shown), tuple(left_aside))


def _gridded(experiment: Experiment, *, shared: bool) -> Experiment:
    """Place the cells on a full grid, or on one axis if a combination has no run.

    Args:
        experiment: the experiment; options that a run does not use have the label None.
        shared: whether a combination may use the cell of an equivalent one, such as all acquisition functions at a = 1.
    """
    axes = {
        axis: labels
        for axis, labels in (
            (axis, tuple(it for it in labels if it is not None or axis not in OPTIONS))
            for axis, labels in experiment.axes.items()
        )
        if len(labels) > 1
    }
    of_place = {tuple(cell.labels[axis] for axis in axes): number for number, cell in enumerate(experiment.cells)}
    of_identity = {}
    if shared:
        of_identity = {_identity(cell.config, {}): number for number, cell in enumerate(experiment.cells)}
        of_identity.pop(None, None)
    sources: list[int] = []
    places = list(product(*axes.values())) if prod(map(len, axes.values())) <= _MOST_CELLS else []
    for place in places:
        source = of_place.get(place)
        if source is None and shared:
            source = of_identity.get(_identity(experiment.cells[0].config, dict(zip(axes, place, strict=True))))
        if source is None:
            break
        sources.append(source)
    if len(sources) < len(places) or set(sources) != set(range(len(experiment.cells))):
        return _on_one_axis(experiment)
    cells = tuple(
        replace(experiment.cells[source], labels=dict(zip(axes, place, strict=True)))
        for place, source in zip(places, sources, strict=True)
    )
    rows = experiment.runs.groupby("cell").indices
    frame = experiment.runs.iloc[np.concatenate([rows[source] for source in sources])]
    frame = frame.assign(cell=np.repeat(np.arange(len(cells)), [len(rows[source]) for source in sources]))
    return replace(experiment, axes=axes, cells=cells, runs=frame)


def _identity(config: RunConfig, changes: dict[str, Any]) -> str | None:
    """Return the identity of a configuration without its seeds; None if its values are not valid together."""
    try:
        return any_replicate(config.replace(**changes)).identity
    except UsageError:
        return None


def _on_one_axis(experiment: Experiment) -> Experiment:
    """Return a single axis that names each configuration by the fields that differ from the paper, or by all."""
    order = sorted(range(len(experiment.cells)), key=lambda at: repr(tuple(experiment.cells[at].labels.values())))
    found = [experiment.cells[at] for at in order]
    names = [_in_words(it, _telling(it)) for it in found]
    if len(set(names)) < len(names):
        names = [_in_words(it, experiment.axes) for it in found]
    cells = (replace(it, labels={"configuration": name}) for it, name in zip(found, names, strict=True))
    frame = experiment.runs.assign(cell=np.argsort(order)[experiment.runs["cell"].to_numpy(dtype=int)])
    return replace(experiment, axes={"configuration": tuple(names)}, cells=tuple(cells), runs=frame)


def _telling(cell: Cell) -> list[str]:
    """Return the axes on which a cell differs from the paper; `weight_seed` is not in the paper."""
    unlike = {*fields_unlike_paper(cell.config), "weight_seed"}
    return [
        axis for axis, label in cell.labels.items() if axis in unlike and (axis != "weight_seed" or label is not None)
    ]


def _in_words(cell: Cell, axes: Iterable[str]) -> str:
    return ", ".join(f"{axis} {cell.labels[axis]}" for axis in axes) or "as in the paper"


def _is_used(option: str, value: Any) -> bool:
    return option in OPTIONS and value is not None


def _newest(rows: pd.DataFrame, wanted: Collection[str]) -> tuple[pd.DataFrame, list[Edition], list[Edition]]:
    """Return the rows of the requested or newest edition of each data set, these editions, and the other editions."""
    shown: list[Edition] = []
    left_aside: list[Edition] = []
    kept = [rows.iloc[:0]]
    known = editions(rows)
    newest = shared_versions(rows).max()  # for all patient splits: never a mixture of two versions of the method
    members: dict[Family, list[int]] = {}
    for position, row in enumerate(rows[list(FAMILY)].to_dict("records")):
        members.setdefault(family_of({str(name): value for name, value in row.items()}), []).append(position)
    for family in sorted(members, key=lambda it: it.sort_key):
        of_family = rows.iloc[members[family]]
        newest_first = sorted(known.get(family, []), key=lambda edition: edition[0] not in wanted)
        for place, (data_hash, version) in enumerate(newest_first):
            of_it = of_family[(of_family["data_hash"] == data_hash) & (shared_versions(of_family) == version)]
            is_shown = place == 0 and (version == newest or data_hash in wanted)
            (shown if is_shown else left_aside).append(Edition(*family, data_hash, version, len(of_it)))
            kept += [of_it] if is_shown else []
    return pd.concat(kept[1:] or kept, ignore_index=True), shown, left_aside


def _usable_options(rows: pd.DataFrame) -> list[str]:
    """Return the columns that are options of the rows' strategies, or of other plug-ins.

    Rows of earlier versions may have values of options that their strategy uses no longer.
    """
    usable = []
    for name in OPTIONS:
        if name in rows and any(may_use(name, {"strategy": strategy}) for strategy in rows["strategy"].unique()):
            usable.append(name)
    return usable


def _options(rows: pd.DataFrame) -> list[str]:
    """Return the columns that are options of plug-ins: unlike counters, they do not vary with the seed.

    Registered options are known by name.
    """
    added = [str(column) for column in rows if column not in RUNS.names and column not in OPTIONS]
    by_seed = [rows for _, rows in rows.groupby(list(REPLICATES), dropna=False)] if added else []
    plain = [it for it in added if len({frozenset(map(str, part[it])) for part in by_seed}) == 1]
    return [*(name for name in OPTIONS if name in rows), *plain]


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
