"""Sizes of the memories of the requested runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.experiment.plugins.values import count_of
from clops_sweep.experiment.tasks import capacity_of, scenario_of, training_instances
from clops_sweep.planning.request import Request

if TYPE_CHECKING:
    from clops_sweep.data.scenarios import Scenario

_SIZES = ("memory_size", "memory_fraction", "storage_fraction")
"""Options that set the size of a memory: a fixed one, or a share of each task."""

_SIMILAR = 1.05
"""Factor between memories at most that still count as equal: shares of tasks are rounded task by task."""


@dataclass(frozen=True)
class Memories:
    """Memory sizes of the runs on one data set in one scenario.

    Attributes:
        dataset: name of the data set.
        scenario: name of the scenario.
        strategies: the methods with a memory.
        held: instances in the smallest and the largest memory after all tasks.
        of: training instances of all tasks, minimum and maximum over the splits.
        by_strategy: as `held`, by method.
    """

    dataset: str
    scenario: str
    strategies: tuple[str, ...]
    held: tuple[int, int]
    of: tuple[int, int]
    by_strategy: Mapping[str, tuple[int, int]]

    @property
    def differ(self) -> bool:
        """Whether some methods have larger memories than others."""
        smallest = [low for low, _ in self.by_strategy.values()]
        largest = [high for _, high in self.by_strategy.values()]
        return max(smallest) > min(smallest) * _SIMILAR or max(largest) > min(largest) * _SIMILAR

    @property
    def words(self) -> str:
        """Return the sizes in words.

        Equal memories are "memory of er on mitbih, class_il: 120 of 480 training instances".
        """
        where = f"on {self.dataset}, {self.scenario}"
        instances = f"{_span(self.of)} training instances"
        if not self.differ:
            return f"memory of {', '.join(self.strategies)} {where}: {_span(self.held)} of {instances}"
        sizes = ", ".join(f"{strategy} {_span(held)}" for strategy, held in self.by_strategy.items())
        return f"memories differ {where}, of {instances}: {sizes}"


def memories(request: Request) -> list[Memories]:
    """Return the memories of runs whose data are prepared on this machine; of a search, at its bounds.

    Raises:
        UsageError: a memory exceeds the training instances of all tasks, or the data do not fit the config.
    """
    capacities: dict[tuple[str, str], list[tuple[str, int, int]]] = {}
    for configs in _by_tasks(request.selection.configs):
        of_tasks = configs[0].replace(task_order="sequential")
        if request.data_hash(of_tasks) is None:
            continue
        scenario = scenario_of(of_tasks, request.data.frames(of_tasks.data_key))
        for config in configs:
            held = held_by(config, scenario)
            if held is not None:
                rows = capacities.setdefault((config.dataset, config.scenario), [])
                rows.append((config.strategy, held, training_instances(scenario)))
    found = []
    for (dataset, scenario_name), rows in capacities.items():
        by_strategy = {}
        for strategy in sorted({strategy for strategy, _, _ in rows}):
            by_strategy[strategy] = _bounds([held for name, held, _ in rows if name == strategy])
        found.append(
            Memories(
                dataset,
                scenario_name,
                tuple(by_strategy),
                _bounds([held for _, held, _ in rows]),
                _bounds([instances for _, _, instances in rows]),
                by_strategy,
            )
        )
    return found


def has_memory(config: RunConfig) -> bool:
    """Return whether the method of a config has a memory with a size."""
    return not STRATEGIES.options(config.strategy).keys().isdisjoint(_SIZES)


def held_by(config: RunConfig, scenario: Scenario) -> int | None:
    """Return the number of instances in the memory of a run after all tasks; None without a memory.

    Args:
        config: the config of the run.
        scenario: its tasks.

    Raises:
        UsageError: the memory exceeds the training instances of all tasks.
    """
    capacity = capacity_of(config, training_instances(scenario))
    if capacity is not None:
        return capacity
    share = config.get("storage_fraction")
    if share is None:
        return None
    return sum(count_of(share, len(task.train.rows)) for task in scenario.tasks)


def _bounds(counts: Sequence[int]) -> tuple[int, int]:
    return min(counts), max(counts)


def _by_tasks(configs: Iterable[RunConfig]) -> list[list[RunConfig]]:
    """Return one config for each distinct memory size, those with equal tasks in one list."""
    sizes_of: dict[str, list[str]] = {}
    by_tasks: dict[tuple[Any, ...], dict[tuple[Any, ...], RunConfig]] = {}
    for config in configs:
        strategy = config.strategy
        if strategy not in sizes_of:
            declared = STRATEGIES.options(strategy)
            sizes_of[strategy] = [name for name in _SIZES if name in declared]
        if sizes_of[strategy]:
            options = config.options
            sizes = tuple(options.get(name) for name in sizes_of[strategy])
            distinct = by_tasks.setdefault((config.data_key, config.tasks_key), {})
            distinct.setdefault((strategy, *sizes), config)
    return [list(distinct.values()) for distinct in by_tasks.values()]


def _span(bounds: tuple[int, int]) -> str:
    low, high = bounds
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
