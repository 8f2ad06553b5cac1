"""Checks that data, scenario, strategy and network fit together, for plan and launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from clops_sweep.errors import UsageError
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.metrics import METRICS
from clops_sweep.experiment.network_input import is_tried
from clops_sweep.experiment.spaces.selection import configs_at_bounds
from clops_sweep.planning.curriculum import BY_DIFFICULTY
from clops_sweep.planning.plan import Plan
from clops_sweep.planning.request import Request
from clops_sweep.search.standing import standings

if TYPE_CHECKING:
    from clops_sweep.data.catalog import DataKey
    from clops_sweep.data.frames import FrameSet
    from clops_sweep.experiment.spaces.search_space import SearchSpace


def check_fit(asked: Request, plan: Plan) -> None:
    """Check all pending runs and trials on the data that are prepared on this machine.

    Raises:
        UsageError: data, scenario, strategy and network of a run do not fit, a network cannot be trained, or a search
            would select on test data.
    """
    left = [run.config for run in plan.of("pending", "waiting", "failed")]
    searches = [standing.space for standing in standings(asked) if standing.left]
    for space in searches:
        left += configs_at_bounds(space)
    for key in dict.fromkeys(config.data_key for config in left):
        asked.data.check_encoder(key)
    frames = fitting_frames(asked, [_in_order(config) for config in left if asked.data_hash(config) is not None])
    for space in searches:
        _check_validation(space, frames)


def _check_validation(space: SearchSpace, frames: Mapping[DataKey, FrameSet]) -> None:
    """Check that a search has a validation set to select on."""
    from clops_sweep.data.frames import VALIDATION

    assert space.search is not None
    if not any(name.removeprefix("test_") in METRICS for name in space.objectives):
        return
    for key in {config.data_key for config in configs_at_bounds(space)} & frames.keys():
        if not (frames[key].split == VALIDATION).any():
            raise UsageError(
                f"search space {space.name!r}: dataset {key.dataset!r} has no validation set, and a search does not "
                "choose on test data; give its base config validation=0.2, a share of the training people"
            )


def fitting_frames(asked: Request, configs: Sequence[RunConfig]) -> Mapping[DataKey, FrameSet]:
    """Return the prepared data of some configs, after trying their networks on the shapes of the data.

    Raises:
        UsageError: data, scenario, strategy and network do not fit, or a network cannot be trained.
    """
    frames = asked.frames(configs)
    if any(map(is_tried, configs)):  # else this process does not need PyTorch
        from clops_sweep.learning.networks.module_probe import check_networks

        check_networks(configs, frames)
    return frames


def _in_order(config: RunConfig) -> RunConfig:
    """Return a config with a known task order: an order by difficulty depends on unfinished runs."""
    return config.replace(task_order="sequential") if config.task_order in BY_DIFFICULTY else config
