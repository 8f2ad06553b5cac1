"""The tasks of a config."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from clops_sweep.errors import UsageError, several
from clops_sweep.experiment.config import BY_DIFFICULTY, RunConfig
from clops_sweep.experiment.plugins.registry import SCENARIOS, STRATEGIES
from clops_sweep.experiment.plugins.values import count_of

if TYPE_CHECKING:
    from clops_sweep.data.catalog import DataKey
    from clops_sweep.data.frames import FrameSet
    from clops_sweep.data.scenarios import Scenario


def scenario_of(config: RunConfig, frames: FrameSet) -> Scenario:
    """Return the tasks of a config's scenario on its frames, in its task order.

    Raises:
        UsageError: data and scenario do not fit (see `build_scenario`), `first_tasks` is not below the number of tasks,
            the strategy does not support the scenario's outputs or its `head`, `memory_size` exceeds all training
            instances, an option exceeds what the memory holds, `curves="test"` despite a validation set,
            or `early_stopping` without one.
    """
    scenario = built_tasks(config, frames)
    _check_tasks(config, scenario)
    return scenario


def in_sequential_order(config: RunConfig) -> RunConfig:
    """Return a config with a known task order: an order by difficulty depends on unfinished runs."""
    return config.replace(task_order="sequential") if config.task_order in BY_DIFFICULTY else config


def with_distinct_tasks(configs: Iterable[RunConfig], *more: str) -> list[RunConfig]:
    """Return the first config of each choice of data and tasks, and of each value of some more fields or options.

    Args:
        configs: the configs.
        more: names of fields or options, such as `task_order`.
    """
    distinct: dict[tuple[Any, ...], RunConfig] = {}
    for config in configs:
        values = tuple(config.get(name) for name in more)
        distinct.setdefault((config.data_key, config.tasks_key, values), config)
    return list(distinct.values())


def with_tasks(
    configs: Iterable[RunConfig], frames: Mapping[DataKey, FrameSet]
) -> Iterator[tuple[RunConfig, Scenario]]:
    """Yield each config with its `scenario_of`; configs that share their tasks come one after another.

    Tasks are built once for all configs that share them, and only one scenario is in memory.

    Args:
        configs: the configs.
        frames: the frames of each `data_key`.

    Raises:
        UsageError: see `scenario_of`.
    """
    sharing: dict[tuple[Any, ...], list[RunConfig]] = {}
    for config in configs:
        key = config.data_key, config.tasks_key, config.task_order
        sharing.setdefault(key, []).append(config)
    for (data_key, *_), alike in sharing.items():
        scenario = built_tasks(alike[0], frames[data_key])
        for config in alike:
            _check_tasks(config, scenario)
            yield config, scenario


def built_tasks(config: RunConfig, frames: FrameSet) -> Scenario:
    """Return the tasks; they depend on `data_key`, `tasks_key` and `task_order` alone."""
    from clops_sweep.data.scenarios import build_scenario

    taken = SCENARIOS.declaration(config.scenario).fields
    options = {name: getattr(config, name) for name in taken} | config.options_of("scenario")
    function = SCENARIOS[config.scenario] if config.scenario in SCENARIOS.added else None
    scenario = build_scenario(
        frames,
        config.scenario,
        config.task_order,
        function=function,
        blurry=config.blurry,
        blur_seed=config.split_seed,
        **options,
    )
    if config.first_tasks is not None:
        if config.first_tasks >= len(scenario.tasks):
            raise UsageError(
                f"first_tasks = {config.first_tasks}: {config.scenario} of {config.dataset} has "
                f"{several(len(scenario.tasks), 'task')}; expected fewer, or leave it out to train on all"
            )
        scenario = replace(scenario, tasks=scenario.tasks[: config.first_tasks])
    return scenario


def _check_tasks(config: RunConfig, scenario: Scenario) -> None:
    """Check that strategy, head, limits and evaluation of a config fit its tasks.

    Raises:
        UsageError: see `scenario_of`.
    """
    declared = STRATEGIES.declaration(config.strategy)
    if config.head not in declared.heads:
        taken_heads = " or ".join(map(repr, declared.heads))
        raise UsageError(f"head = {config.head!r}: strategy {config.strategy!r} takes {taken_heads}")
    for what, needs_classes in (
        (f"strategy {config.strategy!r}", declared.per_class_outputs),
        (f"head = {config.head!r}", config.head == "per_class"),
    ):
        if needs_classes and (scenario.by_position or scenario.kind != "softmax"):
            has = "an output for each place in a task" if scenario.by_position else f"{scenario.kind} targets"
            raise UsageError(
                f"{what} needs one output a class, as class_il_union has, and {config.scenario!r} on "
                f"{config.dataset!r} has {has}"
            )
    _check_limits(config, scenario)
    if config.curves is not None and len(scenario.tasks[0].validation.rows):
        raise UsageError(
            f"curves = {config.curves!r}: dataset {config.dataset!r} has a validation set, and curves are of that; "
            "leave curves out"
        )
    without = [task.name for task in scenario.tasks if not len(task.validation.rows)]
    if config.early_stopping is not None and without:
        of = f"dataset {config.dataset!r}" if len(without) == len(scenario.tasks) else f"task {without[0]!r}"
        raise UsageError(
            f"early_stopping = {config.early_stopping}: {of} has no validation set, whose loss it watches; leave it out"
        )


def _check_limits(config: RunConfig, scenario: Scenario) -> None:
    """Raise UsageError for a value above what is used: it would be another run with the same numbers.

    Defaults may be larger. Of a memory with `memory_size`, `in_effect` knows some of the limits.
    """
    memory = capacity_of(config, training_instances(scenario)) or 0
    candidates = min(memory, config.get("aser_candidates") or memory)
    epochs = config.epochs_per_task * len(scenario.tasks)
    most = {"aser_neighbours": candidates + config.batch_size, "aser_per_class": memory + config.batch_size}
    most |= {"early_stopping": epochs - 1} if config.strategy == "multitask" else {}
    most |= {} if config.get("memory_size") else {"agem_batch_size": memory, "aser_candidates": memory}
    for name, limit in most.items():
        value = config.get(name)
        if value is None:
            continue
        default = config.default_of(name)
        least = default is not None and default >= limit
        if value != default and (value > limit or (value == limit and least)):
            held = f"the memory holds {memory:,} and a batch {config.batch_size:,}"
            why = f"multitask trains {epochs} epochs" if name == "early_stopping" else held
            words = "less than" if least else "at most"
            raise UsageError(f"{name} = {value}: {why}; expected {words} {limit}, or leave it out")


def training_instances(scenario: Scenario) -> int:
    """Return the number of training instances of all tasks."""
    return sum(len(task.train.rows) for task in scenario.tasks)


def capacity_of(config: RunConfig, instances: int) -> int | None:
    """Return the capacity of a memory of fixed size in instances; None for a strategy without one.

    Args:
        config: a config with `memory_size` or `memory_fraction`, if its strategy has such a memory.
        instances: training instances of all tasks.

    Raises:
        UsageError: the memory exceeds the training instances of all tasks.
    """
    size, fraction = config.get("memory_size"), config.get("memory_fraction")
    if size is None:
        return None if fraction is None else count_of(fraction, instances)
    if size > instances:
        raise UsageError(f"memory_size = {size}: expected at most {instances}, the training instances of all tasks")
    return int(size)
