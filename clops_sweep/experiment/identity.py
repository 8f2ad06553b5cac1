"""Identity: what of a config its numbers depend on, as canonical JSON. Configs with the same one are one run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pydantic.fields import FieldInfo

from clops_sweep.experiment.plugins.declarations import DECLARED, OF_SCENARIOS, Fields
from clops_sweep.experiment.plugins.memory_methods import IN_PLACE_OF
from clops_sweep.experiment.plugins.registry import REGISTRIES, SCENARIOS, STRATEGIES

FOUNDING = frozenset(
    {
        *("scenario", "dataset", "strategy", "task_order", "epochs_per_task", "batch_size", "learning_rate"),
        *("normalize", "split_seed", "seed", "storage_fraction", "acquisition_fraction", "mc_samples", "acquisition"),
        *("acquire_every", "storage_function", "storage_order", "weight_replay", "replay_ratio"),
        *("beta_learning_rate", "beta_penalty", "perturbation_std"),
    }
)
"""The fields of version 0.2, which are part of an identity whatever they hold. No field is ever added to them."""

_OF_PLUGINS = DECLARED | OF_SCENARIOS

_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def identity_of(fields: Fields, infos: Mapping[str, FieldInfo]) -> str:
    """What of a config its numbers depend on, as canonical JSON.

    These are the fields that its scenario and strategy look at (see `declarations`), those that matter to every
    run, and the options of the plug-ins among them, whatever they hold. A field that is none of `FOUNDING` is left
    out while it has its default, so that one that is added later leaves the runs alone that are stored by then.

    Args:
        fields: the config's fields and options by name, as JSON has their values.
        infos: what is known of each field.
    """
    seen = {name: fields[name] for name in infos if name not in _OF_PLUGINS}
    seen |= SCENARIOS.declaration(fields["scenario"]).seen(fields)
    seen |= STRATEGIES.declaration(fields["strategy"]).seen(fields)
    order = fields["task_order"]
    if isinstance(order, list) and order == list(range(len(order))):
        seen["task_order"] = "sequential"
    if fields["weight_seed"] == fields["seed"]:
        seen["weight_seed"] = None
    replaced = [option for name, option in IN_PLACE_OF.items() if fields.get(name) is not None]
    kept = {n: v for n, v in seen.items() if n in FOUNDING or v != _default(infos[n], fields)}
    for kind, registry in REGISTRIES.items():
        if kind in seen:
            options = registry.options(seen[kind])
            kept |= {n: fields.get(n, it.default) for n, it in options.items() if n not in kept and n not in replaced}
    return _canonical(kept)


def around_seed(identity: str, fields: Fields) -> tuple[str, str] | None:
    """What stands before the seed and after it in the identity of every config that differs from one in it alone.

    None where more of an identity may depend on the seed, which is so with a seed of its own for the weights, or where
    it may become another: a plug-in from outside may look at any field, and be declared anew before anybody asks.

    Args:
        identity: of the one.
        fields: its fields by name.
    """
    if fields["weight_seed"] is not None:
        return None
    if not all(registry.is_built_in(fields[kind]) for kind, registry in REGISTRIES.items()):
        return None
    before, after = identity.split(f',"seed":{fields["seed"]},')  # within a text the quotes would be escaped
    return f'{before},"seed":', f",{after}"


def _default(info: FieldInfo, fields: Mapping[str, Any]) -> Any:
    """What a field holds that nobody has set; Pydantic looks anew each time at how it is found out."""
    found_out: Callable[[Fields], Any] | None = info.default_factory  # type: ignore[assignment]
    return info.default if found_out is None else found_out(fields)
