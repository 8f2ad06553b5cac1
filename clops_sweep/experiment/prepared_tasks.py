"""The tasks of configs on the data that are prepared on this machine, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from clops_sweep.data.catalog import LEAD, DataKey
from clops_sweep.data.preparing.other_split_seeds import fold_refusal, refusal_of, uncovered
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.data.scenarios.scarce import UncoveredTask
from clops_sweep.errors import UsageError
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.network_input import check_frames
from clops_sweep.experiment.tasks import (
    built_tasks,
    in_sequential_order,
    scenario_of,
    with_distinct_tasks,
    with_tasks,
)

if TYPE_CHECKING:
    from clops_sweep.data.frames import FrameSet
    from clops_sweep.data.scenarios import Scenario


def prepared_tasks(configs: Iterable[RunConfig], data: PreparedData) -> list[tuple[Scenario, FrameSet]]:
    """Return the distinct tasks of some configs with their frames; configs whose data are not prepared are skipped.

    Raises:
        UsageError: data and scenario of a config do not fit; of split seeds that leave a task without a class, all are
            named (see `refused_seeds`).
    """
    prepared = [config for config in configs if data.data_hash(config.data_key) is not None]
    distinct = [in_sequential_order(config) for config in with_distinct_tasks(prepared, "task_order")]
    frames = {config.data_key: data.frames(config.data_key) for config in distinct}
    try:
        return [(scenario_of(config, frames[config.data_key]), frames[config.data_key]) for config in distinct]
    except UncoveredTask as problem:
        raise refused_seeds(distinct, frames, data) or problem from None


def checked_frames(
    configs: Sequence[RunConfig],
    data: PreparedData,
    base_of: Callable[[RunConfig, Sequence[str]], RunConfig | None] | None = None,
) -> Mapping[DataKey, FrameSet]:
    """Return the prepared data of some configs, which fit their scenarios and networks.

    Args:
        configs: the configs.
        data: the prepared data.
        base_of: see `check_frames`.

    Raises:
        UsageError: the data of a config are not prepared or do not fit its scenario and network.
    """
    keys = dict.fromkeys(config.data_key for config in configs)
    frames = {key: data.frames(key) for key in keys}
    for config in configs:
        check_frames(config, frames[config.data_key], base_of)
    try:
        for _ in with_tasks(configs, frames):
            pass  # each is checked
    except UncoveredTask as problem:
        raise refused_seeds(configs, frames, data) or problem from None
    return frames


def refused_seeds(
    configs: Iterable[RunConfig], frames: Mapping[DataKey, FrameSet], data: PreparedData
) -> UsageError | None:
    """Return the error about all requested split seeds that leave a task without a class.

    None if there are no such seeds, or if the split is given. The error is about the first data set and scenario with
    such a seed, and names the seeds of `CANDIDATES` with which each part of the split has each class of each task.
    Their splits are kept in the prepared folder, as a launch keeps them.

    Args:
        configs: the requested configs.
        frames: the frames of each `data_key`.
        data: the prepared data, for other splits.
    """
    problems = dict[int, UncoveredTask]()
    first: RunConfig | None = None
    for config in with_distinct_tasks(configs):
        if first is not None and _without_seed(config) != _without_seed(first):
            continue
        problem = uncovered(partial(built_tasks, config), frames[config.data_key])
        if problem is not None:
            first = first or config
            problems.setdefault(config.split_seed, problem)
    if first is None:
        return None
    whole = frames[first.data_key]
    domain = first.domain if first.scenario == "domain_il" and first.domain != LEAD else None
    tasks_of = partial(built_tasks, first)
    if first.split is None:
        refusal = refusal_of(problems, whole, first.data_key, data, tasks_of, domain)
        return None if refusal is None else UsageError(refusal.sentence)
    return UsageError(fold_refusal(problems, whole, first.data_key, data, tasks_of, domain))


def _without_seed(config: RunConfig) -> tuple[object, ...]:
    return config.data_key._replace(split_seed=0), config.tasks_key
