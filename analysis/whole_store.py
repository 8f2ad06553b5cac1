"""Search spaces that ask for what a store holds, for a report without a search-space file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import pandas as pd
from clops_sweep.analysis.selection import departures

from clops_sweep.experiment.columns import config_from_row
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.registry import unregistered
from clops_sweep.experiment.search_space import SearchSpace

_REPEATS = ("seed", "split_seed")


def spaces_in(runs: pd.DataFrame, say: Callable[[str], None]) -> list[SearchSpace]:
    """One search space for the runs of each data set, scenario and strategy.

    Its axes are the fields in which the runs differ, if there is a run at every place, else there is one axis with a
    name for each configuration. It asks for those runs alone.

    Args:
        runs: the store's table `runs`.
        say: told which runs are left out, since they use a strategy, acquisition or storage function that a
            search-space file has to register.
    """
    groups: dict[tuple[str, str, str], list[RunConfig]] = {}
    left_out: Counter[str] = Counter()
    for row in runs[list(RunConfig.model_fields)].to_dict("records"):
        fields = {str(name): value for name, value in row.items()}
        if missing := unregistered(fields):
            left_out[" and ".join(missing)] += 1
            continue
        config = config_from_row(fields)
        groups.setdefault((config.dataset, config.scenario, config.strategy), []).append(config)
    for what, count in left_out.items():
        runs_are = f"{count} runs are" if count > 1 else "1 run is"
        say(f"{runs_are} left out of the report: name the search-space file that registers {what}")
    return [_space(" ".join(group), configs) for group, configs in sorted(groups.items())]


def _space(name: str, configs: Sequence[RunConfig]) -> SearchSpace:
    present = frozenset(configs)
    values = {field: _distinct(configs, field) for field in RunConfig.model_fields}
    varied = {field: found for field, found in values.items() if len(found) > 1 and field not in _REPEATS}
    cells = {tuple(getattr(config, field) for field in varied) for config in configs}
    axes: dict[str, Sequence[Any] | Mapping[str, Mapping[str, Any]]] = dict(varied)
    if len(cells) < prod(len(found) for found in varied.values()):
        settings = [dict(zip(varied, cell, strict=True)) for cell in sorted(cells, key=repr)]
        axes = {"configuration": {_in_words(configs[0].replace(**each)): each for each in settings}}
    if len(values["split_seed"]) > 1:
        axes["split_seed"] = values["split_seed"]
    return SearchSpace(name, configs[0], axes, values["seed"], where=present.__contains__)


def _in_words(config: RunConfig) -> str:
    """A configuration by what of it is not as in the paper."""
    return ", ".join(f"{name} {getattr(config, name)}" for name in departures(config)) or "as in the paper"


def _distinct(configs: Sequence[RunConfig], field: str) -> list[Any]:
    found = {repr(value): value for value in (getattr(config, field) for config in configs)}
    numbers = all(isinstance(value, int | float) for value in found.values())
    return sorted(found.values(), key=None if numbers else repr)
