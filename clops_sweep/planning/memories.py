"""Capacity of the fixed-size memories of the requested runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.experiment.spaces.optuna_search import OptunaSearch
from clops_sweep.experiment.tasks import capacity_of, scenario_of, training_instances, with_distinct_tasks
from clops_sweep.planning.request import Request

_SIZES = ("memory_size", "memory_fraction")
"""Options of strategies with a memory of fixed size."""


@dataclass(frozen=True)
class Memories:
    """Memory sizes of the runs on one data set in one scenario.

    Attributes:
        dataset: name of the data set.
        scenario: name of the scenario.
        strategies: the methods with a memory of fixed size.
        held: capacity of the smallest and the largest memory, in instances.
        of: training instances of all tasks, minimum and maximum over the splits.
    """

    dataset: str
    scenario: str
    strategies: tuple[str, ...]
    held: tuple[int, int]
    of: tuple[int, int]

    @property
    def words(self) -> str:
        """Return a phrase such as "memory of er on mitbih, class_il: 120 of 480 training instances"."""
        return (
            f"memory of {', '.join(self.strategies)} on {self.dataset}, {self.scenario}: {_span(self.held)} of "
            f"{_span(self.of)} training instances"
        )


def memories(request: Request) -> list[Memories]:
    """Return the fixed-size memories of runs whose data are prepared on this machine; of a search, at its bounds.

    Raises:
        UsageError: a memory exceeds the training instances of all tasks, or the data do not fit the config.
    """
    capacities: dict[tuple[str, str], list[tuple[str, int, int]]] = {}
    of_trials = (
        space.base.replace(**space.search.settings(labels))
        for space in request.selection.spaces
        if isinstance(space.search, OptunaSearch)
        for labels in space.search.corners()
    )
    for config in _distinct(itertools.chain(request.selection.configs, of_trials)):
        if request.data_hash(config) is None:
            continue
        instances = training_instances(scenario_of(config, request.data.frames(config.data_key)))
        capacity = capacity_of(config, instances)
        if capacity is not None:
            rows = capacities.setdefault((config.dataset, config.scenario), [])
            rows.append((config.strategy, capacity, instances))
    found = []
    for (dataset, scenario), rows in capacities.items():
        strategies = tuple(sorted({strategy for strategy, _, _ in rows}))
        held = [count for _, count, _ in rows]
        of = [count for _, _, count in rows]
        found.append(Memories(dataset, scenario, strategies, (min(held), max(held)), (min(of), max(of))))
    return found


def _distinct(configs: Iterable[RunConfig]) -> list[RunConfig]:
    """Return one config for each distinct memory size."""
    with_memory = []
    for config in configs:
        if not STRATEGIES.options(config.strategy).keys().isdisjoint(_SIZES):
            with_memory.append(config)
    distinct = with_distinct_tasks(with_memory, "strategy", *_SIZES)
    return [config.replace(task_order="sequential") for config in distinct]


def _span(bounds: tuple[int, int]) -> str:
    low, high = bounds
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
