"""Checks that data, scenario, strategy and network of a selection fit together: the same for plan and launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.experiment.spaces.selection import configs_at_bounds
from clops_sweep.planning.curriculum import BY_DIFFICULTY
from clops_sweep.planning.plan import Plan
from clops_sweep.planning.request import Request
from clops_sweep.search.standing import standings

if TYPE_CHECKING:
    from clops_sweep.data.catalog import DataKey
    from clops_sweep.data.frames import FrameSet


def check_fit(asked: Request, plan: Plan) -> None:
    """Check all runs and trials that are left, on the data that are prepared on this machine.

    Raises:
        UsageError: data, scenario, strategy and network of one do not fit, or a network cannot be trained.
    """
    left = [run.config for run in plan.of("pending", "waiting", "failed")]
    for standing in standings(asked):
        if standing.left:
            left += configs_at_bounds(standing.space)
    fitting_frames(asked, [_in_order(config) for config in left if asked.data_hash(config) is not None])


def fitting_frames(asked: Request, configs: Sequence[RunConfig]) -> Mapping[DataKey, FrameSet]:
    """The prepared data of some configs, after their networks have been tried on the shapes of these.

    Raises:
        UsageError: data, scenario, strategy and network do not fit, or a network cannot be trained.
    """
    frames = asked.frames(configs)
    if any(config.network in NETWORKS.added for config in configs):  # else this process does not need PyTorch
        from clops_sweep.learning.networks.module_probe import check_networks

        check_networks(configs, frames)
    return frames


def _in_order(config: RunConfig) -> RunConfig:
    """A config whose task order is known: an order by difficulty follows from runs that are not finished yet."""
    return config.replace(task_order="sequential") if config.task_order in BY_DIFFICULTY else config
