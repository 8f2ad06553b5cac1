"""The tasks of a config."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clops_sweep.errors import UsageError
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import SCENARIOS, STRATEGIES
from clops_sweep.experiment.plugins.values import count_of

if TYPE_CHECKING:
    from clops_sweep.data.frames import FrameSet
    from clops_sweep.data.scenarios import Scenario


def scenario_of(config: RunConfig, frames: FrameSet) -> Scenario:
    """Return the tasks of a config's scenario on its frames, in its task order.

    Raises:
        UsageError: data and scenario do not fit (see `build_scenario`), the strategy does not support the scenario's
            outputs or its `head`, `memory_size` exceeds all training instances, `curves="test"` despite a validation
            set, or `early_stopping` without one.
    """
    from clops_sweep.data.scenarios import build_scenario

    taken = SCENARIOS.declaration(config.scenario).fields
    options = {name: getattr(config, name) for name in taken} | config.options_of("scenario")
    function = SCENARIOS[config.scenario] if config.scenario in SCENARIOS.added else None
    scenario = build_scenario(frames, config.scenario, config.task_order, function=function, **options)
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
    capacity_of(config, training_instances(scenario))
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
    return scenario


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
