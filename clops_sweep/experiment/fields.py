"""What config fields and options decide, from the facts that they state: equal training, equal cost, repetitions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from clops_sweep.data.catalog import DataKey
from clops_sweep.experiment.config import FACTS, RunConfig
from clops_sweep.experiment.facts import FIRST, FieldFacts, stated_by
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import SCENARIOS, USERS


def _stating(holds: Callable[[FieldFacts], bool]) -> tuple[str, ...]:
    """Return the fields whose facts have a property, in the order of `RunConfig`."""
    return tuple(name for name, facts in FACTS.items() if holds(facts))


SPLIT_AXES = _stating(lambda facts: facts.replicate and facts.prepared)
"""Fields whose values are patient splits: an axis over them repeats a configuration, as seeds do."""

REPLICATES = (*SPLIT_AXES, *_stating(lambda facts: facts.replicate and not facts.prepared))
"""Fields that only repeat a configuration: patient splits, then the seed."""

DRAWS = frozenset(_stating(lambda facts: facts.decides == "draw"))
"""Fields that decide a random draw: those that repeat a configuration, and the seed of the weights alone."""

SEEDS = frozenset(_stating(lambda facts: facts.is_seed))
"""Fields whose numbers are seeds."""

OF_DATA = _stating(lambda facts: facts.prepared)
"""Fields that the prepared frames depend on, as `RunConfig.data_key` has them."""

OF_TASKS = _stating(lambda facts: facts.decides in ("data", "tasks"))
"""Fields that decide what is learnt: the frames and the tasks."""

OF_TRAINING = _stating(lambda facts: not facts.equal_training)
"""Fields that must be equal in runs that are trained equally: all that do not state the contrary."""

OF_COST = _stating(lambda facts: not facts.equal_cost)
"""Fields that must be equal in runs that take about the same time: all that do not state the contrary."""

NOT_SEARCHED = {name: facts.not_searched for name, facts in FACTS.items() if facts.not_searched}
"""Fields that a search must not vary, with the reason."""

BEFORE = {name: facts.before for name, facts in FACTS.items() if facts.before is not FIRST}
"""Values of fields in runs that were stored before the fields existed."""

_FIRST_REPLICATE = {name: RunConfig.model_fields[name].default for name in REPLICATES}


def data_key_of_row(row: Mapping[str, Any]) -> DataKey:
    """Return the key of the frames that a stored run was computed on, as `RunConfig.data_key` is that of a config.

    Args:
        row: a row of `runs`, with the columns `OF_DATA` and `scenario`.
    """
    values: dict[str, Any] = {}
    for name in OF_DATA:
        values[name] = BEFORE.get(name) if is_missing(row[name]) else row[name]
    scenario = row["scenario"]
    if scenario in SCENARIOS and "split_within" not in SCENARIOS.declaration(scenario).fields:
        values["split_within"] = "people"
    values["split_seed"] = int(row["split_seed"])
    is_adapted = bool(values.pop("lora_rank"))
    return DataKey(**values, is_adapted=is_adapted)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, or nan as pandas reads null."""
    return value is None or value != value or type(value).__name__ == "NAType"


def facts_of(name: str) -> FieldFacts:
    """Return the facts of a field or option; the safe defaults for an option that is not registered."""
    if name in FACTS:
        return FACTS[name]
    return stated_by(OPTIONS[name]) if name in OPTIONS else FieldFacts()


def any_replicate(config: RunConfig) -> RunConfig:
    """Return the configuration that a config repeats: the same one for all seeds and patient splits."""
    return config.model_copy(update=_FIRST_REPLICATE)


def training_of(config: RunConfig, without: Collection[str] = ()) -> tuple[object, ...]:
    """Return the settings that runs of any strategies share if they are equally trained.

    These are fields, and the options of the plug-ins that are not strategies. Options that two strategies share are
    compared by `equally_trained`.

    Args:
        config: the config.
        without: fields and options that may differ, such as those that a search varies.
    """
    fields = tuple(getattr(config, name) for name in OF_TRAINING if name not in without)
    options: list[tuple[str, Any]] = []
    for kind in USERS:
        if kind != "strategy":
            options += _deciding(config.options_of(kind), without)
    return *fields, *options


def equally_trained(one: RunConfig, other: RunConfig, without: Collection[str] = ()) -> bool:
    """Return whether two configs are trained equally: they differ in their methods, draws and evaluation alone.

    An option that only one of them uses belongs to its method.

    Args:
        one: a config.
        other: another one, of any strategy.
        without: as in `training_of`.
    """
    if training_of(one, without) != training_of(other, without):
        return False
    ours = dict(_deciding(one.options, without))
    theirs = dict(_deciding(other.options, without))
    return all(ours[name] == theirs[name] for name in ours.keys() & theirs.keys())


def _deciding(options: Mapping[str, Any], without: Collection[str]) -> list[tuple[str, Any]]:
    """Return the options that decide whether training is equal, with their values."""
    deciding = []
    for name, value in options.items():
        if name not in without and not facts_of(name).equal_training:
            deciding.append((name, value))
    return deciding
