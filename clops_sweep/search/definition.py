"""The definition of a study: what the values of its trials depend on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from clops_sweep.errors import OtherData, OtherDefinition, UsageError, option
from clops_sweep.experiment.config import SEMANTICS_VERSION
from clops_sweep.experiment.fields import BEFORE
from clops_sweep.experiment.spaces.optuna_search import OptunaSearch
from clops_sweep.experiment.spaces.search_space import SearchSpace, search_of
from clops_sweep.experiment.spaces.selection import configs_at_bounds

DEFINITION = "definition"
"""Attribute of a study."""

_DATA = "data."
"""What the names of content hashes begin with."""


def definition(space: SearchSpace, data_hashes: Mapping[str, str]) -> dict[str, Any]:
    """Return everything that the values of trials depend on, as JSON: equal definitions have comparable trials.

    The number of trials and the sampler are not part of it.
    """
    search = search_of(space)
    base = space.base.model_dump(mode="json", exclude={"seed", *search.parameters})
    described: dict[str, Any] = {}
    for name, value in base.items():
        described[f"base.{name}"] = value
    described["seeds"] = list(space.seeds)
    for axis, values in space.axes.items():
        described[f"axes.{axis}"] = values
    for name in search.parameters:
        described[f"parameters.{name}"] = _described(search, name)
    described["objectives"] = [list(objective) for objective in space.objectives.items()]
    described["pruning"] = vars(search.pruner) if search.pruner else None
    described["semantics_version"] = SEMANTICS_VERSION
    for config in configs_at_bounds(space):
        if config.revision:
            described[f"revision.{config.strategy}"] = config.revision
        if config.network_revision:
            described[f"revision.{config.network}"] = config.network_revision
    for name, content in data_hashes.items():
        described[f"{_DATA}{name}"] = content
    plain: dict[str, Any] = json.loads(json.dumps(described))
    return plain


def check_definition(
    space: SearchSpace, attributes: Mapping[str, Any], has_trials: bool, data_hashes: Mapping[str, str], where: str
) -> None:
    """Check that a study is continued with the definition that it was created from.

    Args:
        space: the search space.
        attributes: the user attributes of the study.
        has_trials: whether the study has trials.
        data_hashes: content hashes of the prepared data, by their names in the definition.
        where: the name of the journal.

    Raises:
        UsageError: another definition (`OtherDefinition`; `OtherData` if only the content of the data differs), or a
            study that another program created.
    """
    if DEFINITION not in attributes:
        if has_trials:
            raise UsageError(
                f"study {space.name!r} in {where} was created by another program; give the search space another name"
            )
        return
    then = attributes[DEFINITION]
    has_other_data = False
    for name, before, after in differences(then, definition(space, data_hashes)):
        if name.startswith(_DATA) and name in then:
            has_other_data = True
            continue
        raise OtherDefinition(
            f"{space.subject}: its study in {where} was made with {name} {before} and not {after}; "
            "a study keeps its definition (n_trials and sampler apart): give the space another name, for which runs of "
            f"this store are not computed again, or other {option('results')}",
            name,
            json.loads(before),
        )
    if has_other_data:
        raise OtherData(
            f"{space.subject}: its study in {where} was made on an earlier edition of the data, which have changed "
            "since: a launch is refused; give the space another name to tune on the present data, or take other "
            f"{option('results')}",
            "data",
            None,
        )


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the entries in which two definitions differ: name, and both values as JSON.

    Data that are not prepared on this machine are not compared.
    """
    for name in dict.fromkeys((*then, *now)):
        if name.startswith(_DATA) and name not in now:
            continue
        default = BEFORE.get(name.removeprefix("base."))  # of a field that was added since
        before = json.dumps(then.get(name, default))
        after = json.dumps(now.get(name, default))
        if before != after:
            yield name, before, after


def _described(search: OptunaSearch, name: str) -> Any:
    parameter = search.parameters[name]
    if isinstance(parameter, Mapping):
        return {label: dict(settings) for label, settings in parameter.items()}
    distribution = search.distributions[name]
    if isinstance(distribution, tuple):
        return {"CategoricalDistribution": {"choices": distribution}}
    bounds = {name: getattr(distribution, name) for name in ("low", "high", "log", "step")}
    return {type(distribution).__name__: bounds}
