"""Search spaces that ask for what a store holds, for a report without a search-space file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence, Set
from itertools import product
from math import prod
from typing import Any

import pandas as pd

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.splits.fold_names import fold_of
from clops_sweep.errors import UsageError
from clops_sweep.experiment.columns import config_columns
from clops_sweep.experiment.config import RunConfig, names_of
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import unregistered
from clops_sweep.experiment.spaces.search_space import SearchSpace

from .as_stored import config_of
from .selection import departures

_REPEATS = ("seed", "split_seed", "split")
_MOST_CELLS = 10_000


def spaces_in(runs: pd.DataFrame, say: Callable[[str], None]) -> list[SearchSpace]:
    """One search space for the runs of each data set, scenario and strategy, and for folds one of their own.

    Its axes are the fields in which the runs differ, if there is a run at every place, else there is one axis with a
    name for each configuration. It asks for those runs alone.

    Args:
        runs: the store's table `runs`.
        say: called with a sentence on runs that use what a search-space file has to register: `as_stored` shows them.
    """
    groups: dict[tuple[str, ...], list[RunConfig]] = {}
    not_known: Counter[str] = Counter()
    for row in runs[config_columns(map(str, runs))].to_dict("records"):
        fields = {str(name): value for name, value in row.items()}
        config = config_of(fields)
        if config is None:
            not_known[_what_is_missing(fields)] += 1
            continue
        folds = (
            () if config.split is None else (f"{fold_of(config.split)[1]} folds",)
        )  # not compared with random splits
        groups.setdefault((config.dataset, config.scenario, config.strategy, *folds), []).append(config)
    for what, count in not_known.items():
        runs_are = f"{count} runs are" if count > 1 else "1 run is"
        say(f"{runs_are} shown by the names in the store alone: nothing here registers {what}")
    return [_space(" ".join(group), configs) for group, configs in sorted(groups.items())]


def _what_is_missing(fields: Mapping[str, Any]) -> str:
    missing = unregistered(fields)
    if fields["dataset"] not in DATASETS:
        missing.insert(0, f"dataset {fields['dataset']!r}")
    return " and ".join(missing) or f"scenario {fields['scenario']!r} of dataset {fields['dataset']!r}"


def _space(name: str, configs: Sequence[RunConfig]) -> SearchSpace:
    present = frozenset(config.identity for config in configs)
    values = {field: _distinct(configs, field) for field in names_of(configs)}
    varied = {field: found for field, found in values.items() if len(found) > 1 and field not in _REPEATS}
    axes: dict[str, Sequence[Any] | Mapping[str, Mapping[str, Any]]] = dict(varied)
    if not _everywhere(configs, varied, present):
        cells = {tuple(config.get(field) for field in varied) for config in configs}
        settings = [_given(dict(zip(varied, cell, strict=True))) for cell in sorted(cells, key=repr)]
        axes = {"configuration": {_in_words(configs[0].replace(**each), varied): each for each in settings}}
    if len(values["split_seed"]) > 1:
        axes["split_seed"] = values["split_seed"]
    if len(values["split"]) > 1:
        axes["split"] = values["split"]
    return SearchSpace(name, configs[0], axes, values["seed"], where=lambda config: config.identity in present)


def _everywhere(configs: Sequence[RunConfig], varied: Mapping[str, list[Any]], present: Set[str]) -> bool:
    """Whether there is a run at every place of the axes, be it one that it shares with others."""
    if prod(len(values) for values in varied.values()) > _MOST_CELLS:
        return False
    some = {tuple(getattr(config, field) for field in _REPEATS): config for config in configs}
    try:
        cells = [dict(zip(varied, cell, strict=True)) for cell in product(*varied.values())]
        return all(any(config.replace(**cell).identity in present for config in some.values()) for cell in cells)
    except UsageError:  # values that each are valid, but not together
        return False


def _given(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without the options that a run does not use."""
    return {name: value for name, value in settings.items() if name not in OPTIONS or value is not None}


def _in_words(config: RunConfig, varied: Container[str]) -> str:
    """A configuration by those of the fields that vary in which it is not as in the paper."""
    fields = [name for name in departures(config) if name in varied]
    return ", ".join(f"{name} {config.get(name)}" for name in fields) or "as in the paper"


def _distinct(configs: Sequence[RunConfig], field: str) -> list[Any]:
    found = {repr(value): value for value in (config.get(field) for config in configs)}
    if field in OPTIONS:
        found.pop("None", None)  # of runs that do not use it
    numbers = all(isinstance(value, int | float) for value in found.values())
    return sorted(found.values(), key=None if numbers else repr)
