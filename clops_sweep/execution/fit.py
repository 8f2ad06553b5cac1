"""Checks that data, scenario, strategy and network fit together, for plan and launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from clops_sweep.data.frames import VALIDATION, Encoded, FrameSet
from clops_sweep.data.scenarios.leaks import Seen
from clops_sweep.errors import UsageError, shown
from clops_sweep.execution.tried_networks import TriedNetworks
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.metrics import METRICS
from clops_sweep.experiment.spaces.grid import subject_of
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.experiment.spaces.selection import configs_at_bounds
from clops_sweep.experiment.tasks import scenario_of
from clops_sweep.learning.encoders.adapting import Signals, adapter
from clops_sweep.learning.encoders.encoders import taken_by_run
from clops_sweep.planning.request import Request
from clops_sweep.planning.requested_tasks import check_tuning, configs_of, in_sequential_order
from clops_sweep.planning.state import State

if TYPE_CHECKING:
    from clops_sweep.data.catalog import DataKey


def check_fit(state: State) -> Mapping[DataKey, FrameSet]:
    """Check all pending runs and trials on the data that are prepared on this machine, and return these data.

    Raises:
        UsageError: data, scenario, strategy and network of a run do not fit, a network cannot be trained, or a search
            would select on test data.
    """
    request = state.resolved
    for tuned in request.selection.tuned:
        check_tuning(request, tuned)
    _check_pretraining(request)
    to_compute = _to_compute(state)
    keys = list(dict.fromkeys(config.data_key for config in to_compute))
    for key in keys:
        request.data.check_encoder(key)
    prepared = {key for key in keys if request.data.data_hash(key) is not None}
    configs = [in_sequential_order(config) for config in to_compute if config.data_key in prepared]
    frames = request.frames(configs)
    TriedNetworks(request.data.root).check(configs, frames, keep_models=request.store.keep_models is not None)
    for space in _incomplete_searches(state):
        _check_validation(space, frames)
    for tuned in request.selection.tuned:
        for phase in tuned.phases:
            _check_validation(phase, frames)
    return frames


def _to_compute(state: State) -> list[RunConfig]:
    """Return the configs that a launch may compute; those at the bounds of searches and choices."""
    configs = [run.config for run in state.plan.of("pending", "waiting", "failed")]
    for tuned in state.resolved.selection.tuned:
        configs += tuned.reported_at_bounds
    for space in _incomplete_searches(state):
        configs += configs_at_bounds(space)
    return configs


def _incomplete_searches(state: State) -> list[SearchSpace]:
    return [search.space for search in state.searches if not search.complete]


def _check_pretraining(request: Request) -> None:
    """Check that runs fit their encoder, a run to come, and are not evaluated on what it will have seen.

    Raises:
        UsageError: the signals do not fit, or a person is evaluated and in the pretraining (see `check_leaks`).
    """
    distinct: dict[tuple[object, ...], tuple[RunConfig, RunConfig]] = {}
    for config in request.selection.configs:
        encoder = config.encoder
        if isinstance(encoder, RunConfig):
            distinct[config.data_key.signals, config.task_order, config.tasks_key, encoder] = config, encoder
    for config, encoder in distinct.values():
        _check_pretrained(request, config, encoder)


def _check_pretrained(request: Request, config: RunConfig, pretraining: RunConfig) -> None:
    """Check a run whose encoder is a run to come, if the data of both are prepared."""
    key = config.data_key.signals
    key_before = pretraining.data_key.signals
    if request.data.data_hash(key) is None or request.data.data_hash(key_before) is None:
        return
    frames = request.data.frames(key)
    frames_before = request.data.frames(key_before)
    name = shown(pretraining)
    if pretraining.encoder is None:
        adapter(name, taken_by_run(Signals.of(frames_before)), Signals.of(frames))
    scenario_before = scenario_of(in_sequential_order(pretraining), frames_before)
    seen = Seen.of(scenario_before, frames_before, ("train", "validation"))
    known = seen.recognised(frames, np.arange(len(frames)))
    no_digests = np.zeros(0, np.uint64)
    encoded = Encoded(name, "", "", known, no_digests, frames.channels, frames.samples, frames.unit)
    scenario_of(in_sequential_order(config), replace(frames, encoded=encoded))


def _check_validation(space: SearchSpace, frames: Mapping[DataKey, FrameSet]) -> None:
    """Check that a search has a validation set to select on."""
    if not any(name in METRICS for name in space.objectives):
        return
    for key in {config.data_key for config in configs_of(space)} & frames.keys():
        if not (frames[key].split == VALIDATION).any():
            raise UsageError(
                f"{subject_of(space.name)}: dataset {key.dataset!r} has no validation set, and a search does not "
                "choose on test data; give its base config validation=0.2, a share of the training people"
            )
