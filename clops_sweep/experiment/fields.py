"""What config fields and options decide, from the facts that they state: equal training, equal cost, repetitions."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from clops_sweep.experiment.config import FACTS, RunConfig
from clops_sweep.experiment.facts import FieldFacts, stated_by
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import USERS

OF_TRAINING = tuple(name for name, facts in FACTS.items() if not facts.equal_training)
"""Fields that must be equal in runs that are trained equally: all that do not state the contrary."""

OF_COST = tuple(name for name, facts in FACTS.items() if not facts.equal_cost)
"""Fields that must be equal in runs that take about the same time: all that do not state the contrary."""


def facts_of(name: str) -> FieldFacts:
    """Return the facts of a field or option; the safe defaults for an option that is not registered."""
    if name in FACTS:
        return FACTS[name]
    return stated_by(OPTIONS[name]) if name in OPTIONS else FieldFacts()


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


def _deciding(options: dict[str, Any] | Any, without: Collection[str]) -> list[tuple[str, Any]]:
    """Return the options that decide whether training is equal, with their values."""
    items = options.items()
    return [(name, value) for name, value in items if name not in without and not facts_of(name).equal_training]
