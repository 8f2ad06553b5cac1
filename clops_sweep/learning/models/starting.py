"""The stored model that a run starts from: its weights, if they fit the run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.scenarios import Scenario
from clops_sweep.data.scenarios.leaks import Seen
from clops_sweep.errors import UsageError, listed, several
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.experiment.tasks import with_tasks
from clops_sweep.learning.models.model_facts import ModelFacts, facts_in
from clops_sweep.learning.networks.multitask import joint_scenario

if TYPE_CHECKING:
    import torch

    from clops_sweep.data.catalog import DataKey


def starting_weights(config: RunConfig, frames: FrameSet, scenario: Scenario) -> dict[str, torch.Tensor]:
    """Return the weights of the stored model that a run starts from.

    Args:
        config: the config of the run.
        frames: its frames, which carry the model.
        scenario: its tasks, as its network has outputs for them.

    Raises:
        UsageError: the model has another network, other classes or other frames.
    """
    from safetensors.torch import load

    assert frames.start_model is not None
    check_start(config, frames, scenario)
    weights: dict[str, torch.Tensor] = load(frames.start_model.model)
    return weights


def check_starts(configs: Iterable[RunConfig], frames: Mapping[DataKey, FrameSet]) -> None:
    """Check, before any run, the models that runs start from.

    Raises:
        UsageError: a model has another network, other classes or other frames than a run.
    """
    starting = [config for config in configs if config.start_from is not None]
    for config, scenario in with_tasks(starting, frames):
        if STRATEGIES[config.strategy].joint:
            scenario = joint_scenario(scenario)
        check_start(config, frames[config.data_key], scenario)


def check_start(config: RunConfig, frames: FrameSet, scenario: Scenario) -> None:
    """Check that the stored model that a run starts from has its network, classes and frames.

    Raises:
        UsageError: they differ.
    """
    start = frames.start_model
    assert start is not None
    stored = facts_in(start.model, f"model of {start.run}")
    ours = ModelFacts.of(config, frames, scenario, len(scenario.tasks), Seen.nothing(frames.name))
    differing = [*_differing(stored, ours)]
    if differing:
        raise UsageError(
            f"dataset {frames.name!r}: start_from = {start.run!r}: that model differs from this run in "
            f"{'; '.join(differing)}; expected the same network, classes in the same order, and frames"
        )


def _differing(stored: ModelFacts, ours: ModelFacts) -> Iterator[str]:
    """Yield what differs between a stored model and the network of a run, that of the model first."""
    if stored.network != ours.network:
        yield f"network {stored.network} and {ours.network}"
    options = json.loads(json.dumps([stored.network_options, ours.network_options]))
    for name in sorted({*options[0], *options[1]}):
        values = options[0].get(name), options[1].get(name)
        if values[0] != values[1]:
            yield f"{name} {values[0]} and {values[1]}"
    if (stored.encoder_hash, stored.lora_rank) != (ours.encoder_hash, ours.lora_rank):
        yield f"encoder {stored.encoder or 'none'} and {ours.encoder or 'none'}, or its weights or adapters"
    if stored.classes != ours.classes:
        yield f"classes {listed(stored.classes)} and {listed(ours.classes)}"
    if stored.kind != ours.kind:
        yield f"decisions {stored.kind} and {ours.kind}"
    if stored.channels != ours.channels:
        yield f"channels {listed(stored.channels)} and {listed(ours.channels)}"
    rates = [facts.sampling_rate or math.nan for facts in (stored, ours)]
    if not (math.isclose(*rates, rel_tol=1e-6) or stored.sampling_rate == ours.sampling_rate):
        yield f"sampling rate {rates[0]:g} and {rates[1]:g} Hz"
    if stored.samples != ours.samples:
        yield f"length {stored.samples:,} and {several(ours.samples, 'sample')}"
    if stored.normalize != ours.normalize:
        yield f"normalize {stored.normalize} and {ours.normalize}"
    if stored.normalize == "none" and stored.unit != ours.unit:
        yield f"unit {stored.unit} and {ours.unit}"
