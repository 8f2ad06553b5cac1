"""The tasks of requested configs, on the data that are prepared on this machine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.experiment.spaces.selection import configs_at_bounds
from clops_sweep.experiment.tasks import scenario_of, with_distinct_tasks
from clops_sweep.planning.curriculum import BY_DIFFICULTY
from clops_sweep.planning.request import Request

if TYPE_CHECKING:
    from clops_sweep.data.frames import FrameSet
    from clops_sweep.data.scenarios import Scenario


def configs_of(space: SearchSpace) -> list[RunConfig]:
    """Return the configs of a space; for a search, those at its bounds."""
    return configs_at_bounds(space) or [request.config for request in space.requests()]


def tasks_of(request: Request, configs: Iterable[RunConfig]) -> list[tuple[Scenario, FrameSet]]:
    """Return the distinct tasks of some configs with their frames; configs whose data are not prepared are skipped."""
    prepared = [config for config in configs if request.data_hash(config) is not None]
    distinct = with_distinct_tasks(prepared, "task_order")
    kept = [(in_sequential_order(config), request.data.frames(config.data_key)) for config in distinct]
    return [(scenario_of(config, frames), frames) for config, frames in kept]


def in_sequential_order(config: RunConfig) -> RunConfig:
    """Return a config with a known task order: an order by difficulty depends on unfinished runs."""
    return config.replace(task_order="sequential") if config.task_order in BY_DIFFICULTY else config
