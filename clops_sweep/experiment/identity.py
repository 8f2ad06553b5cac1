"""Identity: everything that a run's numbers depend on, as canonical JSON. Configs of equal identity share one run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from clops_sweep.experiment.facts import FieldFacts
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import (
    OF_SCENARIOS,
    PAPER_NETWORK,
    REGISTRIES,
    SCENARIOS,
    STORAGE_FUNCTIONS,
    STRATEGIES,
    USERS,
)

_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def identity_of(fields: Mapping[str, Any], effective: Mapping[str, Any], facts: Mapping[str, FieldFacts]) -> str:
    """Return everything that a config's numbers depend on, as canonical JSON.

    These are its fields, except those that its scenario or stream does not use, and the options with an effect. None
    and values that a field states as left out do not appear, so that new fields do not change stored ids.

    Args:
        fields: the config's fields by name, as JSON values.
        effective: its options with an effect, by name; see `effective_options`.
        facts: the facts of its fields, by name.
    """
    unused = OF_SCENARIOS.difference(SCENARIOS.declaration(fields["scenario"]).fields)
    seen: dict[str, Any] = {}
    for name, value in fields.items():
        left_out = facts[name].left_out and value == facts[name].before
        if value is not None and name not in unused and not left_out:
            seen[name] = value
    for name in unused_by_stream(fields["stream"]):
        seen.pop(name, None)
    order = fields["task_order"]
    if isinstance(order, list) and order == list(range(len(order))):
        seen["task_order"] = "sequential"
    if fields["weight_seed"] == fields["seed"]:
        del seen["weight_seed"]
    return _canonical({**seen, **effective})


REVISED_BY = {
    "strategy": "",
    "network": PAPER_NETWORK,
    "norm": "batch",
    "precision": "float32",
    "optimizer": "adam",
    "weight_decay": 0.0,
    "epochs_per_task": 2,
    "lora_rank": 0,
    "stream": "epochs",
}
"""The fields that `network_revision_of` reads, with values for runs of a version that had no such field."""


def without_effect(fields: Mapping[str, Any], facts: Mapping[str, FieldFacts]) -> set[str]:
    """Return the fields that change no number of a run with these values, for built-in strategies.

    `adamw` without decay is Adam, and a single epoch has no schedule and no earlier epoch to return to. A head in
    closed form on the network `linear` is computed without training.
    """
    strategy, epochs = fields["strategy"], fields["epochs_per_task"]
    if STRATEGIES.is_custom(strategy):
        return set()
    declared = STRATEGIES.declaration(strategy)
    unused = set(declared.unused)
    if fields["optimizer"] == "adamw" and not fields["weight_decay"]:
        unused.add("optimizer")
    if epochs == 1 and strategy != "multitask":  # which trains as many epochs as there are tasks
        unused |= {"schedule", "early_stopping"}
    if declared.own_head and fields["network"] == "linear" and not fields["lora_rank"]:
        unused |= {name for name, of_field in facts.items() if of_field.of_steps}
        if fields["stream"] == "online":  # it predicts batches, the first before it has a head
            unused -= {"batch_size", "weight_seed"}
        if "projection_size" in declared.options:  # which is drawn with the initial weights
            unused -= {"weight_seed"}
    return unused


def network_revision_of(fields: Mapping[str, Any], facts: Mapping[str, FieldFacts]) -> int:
    """Return how often the numbers of a network alone have changed, in its steps by an optimiser.

    Since version 0.4 the native kernels compute networks other than the paper's, with other rounding and other dropout
    masks, and train the paper's by other optimisers than Adam without decay, with other rounding.
    """
    without = without_effect(fields, facts) if fields["strategy"] in STRATEGIES else set()
    if fields["precision"] != "float32" and "precision" not in without:
        return 0
    by_adam = "optimizer" in without or fields["optimizer"] == "adam"
    has_decay = fields["weight_decay"] > 0 and "weight_decay" not in without
    of_paper = fields["network"] == PAPER_NETWORK and fields["norm"] == "batch"
    return 0 if of_paper and by_adam and not has_decay else 1


def in_effect(fields: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values to use instead of those that change no number of a built-in strategy.

    An instance is visited `passes` times in a task, and no later acquisition or end of patience can happen. After a
    single pass beta has taken one step from 1, where its penalty has no gradient, and the built-in s, an area, is 0.
    No more instances are drawn than a memory of `memory_size` holds.
    """
    strategy = fields["strategy"]
    if STRATEGIES.is_custom(strategy):
        return {}
    passes = fields["steps_per_batch" if fields["stream"] == "online" else "epochs_per_task"]
    used: dict[str, Any] = {}
    if options.get("acquire_every", 0) > passes:
        used["acquire_every"] = passes
    patience = fields["early_stopping"]
    if patience is not None and strategy != "multitask" and 1 < passes <= patience:
        used["early_stopping"] = passes - 1
    if passes == 1 and options.get("storage_function") not in STORAGE_FUNCTIONS.added:
        used |= {name: OPTIONS[name].default for name in ("beta_penalty", "storage_function") if name in options}
        if options.get("storage_order") == "bottom":
            used["storage_order"] = "top"
    size = options.get("memory_size")
    if size:
        used |= _within_memory(size, fields["batch_size"], options)
    return {name: value for name, value in used.items() if value != options.get(name, fields.get(name))}


def _within_memory(size: int, batch: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options that draw instances, as if they drew no more than a memory of `size` holds."""
    used: dict[str, Any] = {}
    for name in ("agem_batch_size", "aser_candidates"):
        if name in options and options[name] >= size:
            used[name] = max(size, OPTIONS[name].default)
    drawn = min(size, options.get("aser_candidates", size))
    if round(options.get("replay_ratio", 0) * batch) >= drawn:
        used["replay_ratio"] = 1.0 if batch >= drawn else drawn / batch
    return used


def unused_by_stream(stream: str) -> tuple[str, ...]:
    """Return the fields that have no effect with this value of `stream`."""
    return ("epochs_per_task",) if stream == "online" else ("steps_per_batch", "prequential_window")


def effective_options(strategy: str, options: Mapping[str, Any], plugins: list[Any]) -> dict[str, Any]:
    """Return the options with an effect, including those of plug-ins that they name, and `strategy` if it changes.

    Args:
        strategy: name of the strategy.
        options: the options that the config uses, by name.
        plugins: the plug-ins in the fields `USERS`.

    Raises:
        ValueError: the options are invalid together.
    """
    effective: dict[str, Any] = {}
    for kind, plugin in zip(USERS, plugins, strict=True):
        declared = REGISTRIES[kind].declared(plugin)
        own = {name: options[name] for name in declared.options if name in options}
        if kind == "strategy":
            own = STRATEGIES.declaration(strategy).canonical(own)
        effective |= {name: value for name, value in own.items() if value is not None}
        for name, of_option in declared.naming:
            if name in own:
                effective |= {other: options[other] for other in REGISTRIES[of_option].options(own[name])}
    return effective
