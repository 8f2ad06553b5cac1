"""The tasks of requested configs, on the data that are prepared on this machine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from clops_sweep.data.scenarios.leaks import check_leaks
from clops_sweep.data.scenarios.scarce import UncoveredTask
from clops_sweep.errors import UsageError, prefixed, several
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.spaces.grid import subject_of
from clops_sweep.experiment.spaces.search_space import SearchSpace, TunedSpace
from clops_sweep.experiment.spaces.selection import configs_at_bounds
from clops_sweep.experiment.spaces.tuning import TuneOn
from clops_sweep.experiment.tasks import scenario_of, with_distinct_tasks
from clops_sweep.planning.curriculum import BY_DIFFICULTY
from clops_sweep.planning.request import Request
from clops_sweep.planning.split_seeds import refused_seeds

if TYPE_CHECKING:
    from clops_sweep.data.frames import FrameSet
    from clops_sweep.data.scenarios import Scenario


def configs_of(space: SearchSpace) -> list[RunConfig]:
    """Return the configs of a space; for a search, those at its bounds."""
    return configs_at_bounds(space) or [request.config for request in space.requests()]


def tasks_of(request: Request, configs: Iterable[RunConfig]) -> list[tuple[Scenario, FrameSet]]:
    """Return the distinct tasks of some configs with their frames; configs whose data are not prepared are skipped.

    Raises:
        UsageError: data and scenario of a config do not fit; of split seeds that leave a task without a class, all are
            named (see `refused_seeds`).
    """
    prepared = [config for config in configs if request.data_hash(config) is not None]
    distinct = with_distinct_tasks(prepared, "task_order")
    kept = [(in_sequential_order(config), request.data.frames(config.data_key)) for config in distinct]
    try:
        return [(scenario_of(config, frames), frames) for config, frames in kept]
    except UncoveredTask as problem:
        of_keys = {config.data_key: frames for config, frames in kept}
        raise refused_seeds([config for config, _ in kept], of_keys, request.data) or problem from None


def in_sequential_order(config: RunConfig) -> RunConfig:
    """Return a config with a known task order: an order by difficulty depends on unfinished runs."""
    return config.replace(task_order="sequential") if config.task_order in BY_DIFFICULTY else config


def check_tuning(request: Request, tuned: TunedSpace) -> None:
    """Check that a space with a `TuneOn` is not tuned on what it reports.

    Raises:
        UsageError: it is tuned on all tasks, or on people or signals that are reported (see `check_leaks`).
    """
    tune_on = tuned.search.tune_on
    if not isinstance(tune_on, TuneOn):
        return
    with prefixed(subject_of(tuned.name)):
        reported = tasks_of(request, tuned.reported_at_bounds)
        dataset = tuned.undivided.base.dataset
        for scenario, _ in reported:
            tasks = len(scenario.tasks)
            if tune_on.tasks is not None and tasks <= tune_on.tasks:
                raise UsageError(
                    f"{tune_on}: {scenario.name} of {dataset} has {several(tasks, 'task')}, and all "
                    f"of them are reported; expected fewer to tune on, or tune_on='same'"
                )
        if tune_on.splits is None and tune_on.dataset is None:
            return
        tuned_on = tasks_of(request, [config for phase in tuned.phases for config in configs_of(phase)])
        for scenario, frames in reported:
            check_leaks(scenario, frames, tuned_on=tuned_on)
