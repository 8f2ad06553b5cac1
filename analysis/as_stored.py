"""Runs under the names that the store has for everything: by plug-ins that nothing here registers, or all of them."""

from __future__ import annotations

import json
from collections.abc import Collection
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from clops_sweep.errors import UsageError
from clops_sweep.experiment.columns import config_columns, config_from_row
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.store.tables import RUNS

from .collect import FAMILY, Cell, Edition, Experiment, editions, family_of, whole_hashes

_REPLICATE = ["split_seed", "seed"]


def config_of(row: dict[str, Any]) -> RunConfig | None:
    """The config of a row of `runs`; None where it names a plug-in that nothing here registers."""
    try:
        return config_from_row(row)
    except UsageError:
        return None


def experiments_as_stored(runs: pd.DataFrame, data_hashes: Collection[str] = ()) -> list[Experiment]:
    """One experiment for each data set, scenario and strategy, of the runs whose config cannot be made here.

    Its axes are the columns in which the runs differ, if there is a run at every place, else there is one axis with a
    name for each configuration. It asks for those runs alone, of one edition of the data.

    Args:
        runs: the store's table `runs`; those of which `config_of` is a config are passed over.
        data_hashes: as in `collect`.
    """
    wanted = whole_hashes(runs, data_hashes)
    fields = runs[config_columns(map(str, runs))].to_dict("records")
    not_known = [config_of({str(name): value for name, value in row.items()}) is None for row in fields]
    runs = runs[np.array(not_known, dtype=bool)]
    grouped = runs.groupby(["dataset", "scenario", "strategy"], sort=True)
    made = (_experiment(f"{' '.join(map(str, names))}, as stored", rows, wanted) for names, rows in grouped)
    return [experiment for experiment in made if len(experiment.cells)]


def recorded_experiments(runs: pd.DataFrame) -> list[Experiment]:
    """One experiment for each data set, scenario and strategy of all runs, whatever is registered here.

    Its axes are all columns in which the runs differ, also where there is no run at some of their places: a sweep that
    is still under way has none at many. No config is checked, so that ten thousand runs take a second.

    Args:
        runs: the store's table `runs`.
    """
    grouped = runs.groupby(["dataset", "scenario", "strategy"], sort=True)
    made = (_experiment(" ".join(map(str, names)), rows, everywhere=False) for names, rows in grouped)
    return [experiment for experiment in made if len(experiment.cells)]


def _experiment(name: str, rows: pd.DataFrame, wanted: Collection[str] = (), *, everywhere: bool = True) -> Experiment:
    """One experiment; with `everywhere`, of one axis if there is no run at some place of the axes."""
    rows, shown, left_aside = _newest(rows, wanted)
    options = _options(rows)
    fields = [*RunConfig.model_fields, *options]
    varied = [it for it in fields if it not in _REPLICATE and len(set(map(str, rows[it]))) > 1]
    if rows.duplicated([*varied, *_REPLICATE]).any():
        varied.append("run_id")  # in what they differ is not known: they are never put together
    places: list[tuple[Any, ...]] = []
    configs: dict[tuple[Any, ...], RunConfig] = {}
    for row in rows[list(dict.fromkeys((*fields, *varied)))].to_dict("records"):
        places.append(tuple(_value(row[field]) for field in varied))
        if places[-1] not in configs:
            values = {field: _value(row[field]) for field in fields}
            unused = {it for it in options if it not in OPTIONS or values[it] is None}
            known = {it: value for it, value in values.items() if it not in unused}
            configs[places[-1]] = RunConfig.model_construct(**known)
    axes = {field: _in_order({place[at] for place in configs}) for at, field in enumerate(varied)}
    labels = [dict(zip(varied, place, strict=True)) for place in configs]
    if everywhere and len(configs) < prod(map(len, axes.values())):
        labels = [{"configuration": ", ".join(f"{field} {value}" for field, value in it.items())} for it in labels]
        axes = {"configuration": tuple(it["configuration"] for it in labels)}
    cells = tuple(Cell(label, config, config) for label, config in zip(labels, configs.values(), strict=True))
    number = {place: position for position, place in enumerate(configs)}
    frame = rows.assign(cell=[number[place] for place in places])
    return Experiment(name, axes, cells, frame, tuple(shown), tuple(left_aside))


def _newest(rows: pd.DataFrame, wanted: Collection[str]) -> tuple[pd.DataFrame, list[Edition], list[Edition]]:
    """The rows of the edition of each data that is wanted, else of the newest, these editions, and the others."""
    shown: list[Edition] = []
    left_aside: list[Edition] = []
    kept = [rows.iloc[:0]]
    known = editions(rows)
    for family, of_family in rows.groupby(list(FAMILY), sort=True, dropna=False):
        key = family_of(family)
        newest_first = sorted(known.get(key, []), key=lambda edition: edition[0] not in wanted)
        for place, (data_hash, version) in enumerate(newest_first):
            of_it = of_family[(of_family["data_hash"] == data_hash) & (of_family["semantics_version"] == version)]
            (left_aside if place else shown).append(Edition(*key, data_hash, version, len(of_it)))
            kept += [] if place else [of_it]
    return pd.concat(kept[1:] or kept, ignore_index=True), shown, left_aside


def _options(rows: pd.DataFrame) -> list[str]:
    """Columns that a plug-in has added as options: with every seed they hold the same values, which counts do not.

    Those that are registered here are known by their names.
    """
    added = [str(column) for column in rows if column not in RUNS.names and column not in OPTIONS]
    by_seed = [rows for _, rows in rows.groupby(_REPLICATE)] if added else []
    plain = [it for it in added if len({frozenset(map(str, part[it])) for part in by_seed}) == 1]
    return [*(name for name in OPTIONS if name in rows), *plain]


def _value(stored: Any) -> Any:
    """A value of a column: a number as Python's own, a list that stands there as JSON as a tuple, None for nothing."""
    if stored is None or stored is pd.NA or stored != stored:  # no two nan are one value of an axis
        return None
    if isinstance(stored, str) and stored.startswith("["):
        return _tuples(json.loads(stored))
    return stored.item() if hasattr(stored, "item") else stored


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _in_order(values: Collection[Any]) -> tuple[Any, ...]:
    numbers = all(isinstance(value, int | float) for value in values)
    return tuple(sorted(values) if numbers else sorted(values, key=str))
