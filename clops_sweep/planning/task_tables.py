"""Tables of the tasks of the requested runs: frames and people of each task in training, validation and test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clops_sweep.data.catalog import LEAD
from clops_sweep.data.prepared.counts import Row, task_rows
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import shown
from clops_sweep.experiment.config import BY_DIFFICULTY, RunConfig
from clops_sweep.experiment.tasks import built_tasks, with_distinct_tasks


@dataclass(frozen=True)
class TaskTable:
    """The tasks of one data set in one scenario.

    Attributes:
        dataset: name of the data set.
        scenario: name of the scenario.
        domain: in domain_il, the column whose values are the tasks; None for leads and other scenarios.
        stratify: the column whose values every part of the split has in proportion; None without one.
        settings: the settings of the scenario in which the requested runs differ, such as `task_classes`; also
            `first_tasks` and `task_order` if the order follows from difficulty, so which of the rows are trained on is
            not known yet.
        split_seed: seed of the patient split that is counted, the lowest one.
        split: the fold that is counted; None without folds.
        splits: number of patient splits that are requested.
        is_given: whether the split is given in the data, so that every split seed is the same split.
        orders: number of task orders that are requested; the rows are in the natural order if there are several.
        rows: a row for each task; None if the data are not prepared on this machine.
    """

    dataset: str
    scenario: str
    domain: str | None
    stratify: str | None
    settings: dict[str, Any]
    split_seed: int
    split: str | None
    splits: int
    is_given: bool
    orders: int
    rows: list[Row] | None

    @property
    def tasks(self) -> str:
        """Return what the tasks are, such as "class_il_union" or "domain_il by ward"."""
        words = self.scenario if self.domain is None else f"{self.scenario} by {self.domain}"
        for name, value in self.settings.items():
            if name == "domain":
                continue
            words += ", all tasks" if (name, value) == ("first_tasks", None) else f", {name} = {shown(value)}"
        return words

    @property
    def counted_split(self) -> str:
        """Return which split is counted, such as "split_seed 0 of 5 splits" or "the given split"."""
        if self.is_given:
            return "the given split"
        split = f"split {self.split}" if self.split is not None else f"split_seed {self.split_seed}"
        words = split + (f" of {self.splits} splits" if self.splits > 1 else "")
        return words if self.stratify is None else f"{words}, stratified by {self.stratify}"

    @property
    def title(self) -> str:
        """Return a phrase such as "wearable, class_il_union, split_seed 0 of 5 splits", or with "the given split"."""
        words = f"{self.dataset}, {self.tasks}"
        return words if self.rows is None else f"{words}, {self.counted_split}"


@dataclass(frozen=True)
class TaskGroup:
    """Requested configs that have the same tasks on one data set, but for their splits and orders.

    Attributes:
        configs: the configs, one of each split and order.
        settings: as in `TaskTable`.
    """

    configs: list[RunConfig]
    settings: dict[str, Any]

    @property
    def first(self) -> RunConfig:
        """Return the config whose split is counted."""
        return min(self.configs, key=lambda config: (config.split_seed, config.split or ""))

    def table(self, data: PreparedData) -> TaskTable:
        """Return the table of the first of their patient splits.

        Raises:
            UsageError: data and scenario of a run do not fit.
        """
        empty = self.without_rows(data)
        return replace(empty, rows=_rows(data, self.first, several_orders=empty.orders > 1))

    def without_rows(self, data: PreparedData) -> TaskTable:
        """Return the table without its rows; no tasks are built."""
        first = self.first
        is_drawn = any(config.draws_with_split_seed for config in self.configs)
        splits = {(config.split_seed, config.split) for config in self.configs}
        return TaskTable(
            dataset=first.dataset,
            scenario=first.scenario,
            domain=first.domain if first.scenario == "domain_il" and first.domain != LEAD else None,
            stratify=first.stratify,
            settings=self.settings,
            split_seed=first.split_seed,
            split=first.split,
            splits=len(splits),
            is_given=not is_drawn and data.has_given_split(first.dataset),
            orders=len({config.task_order for config in self.configs}),
            rows=None,
        )


def task_tables(configs: Iterable[RunConfig], data: PreparedData) -> list[TaskTable]:
    """Return a table for each data set and scenario of some configs, of the first of their patient splits.

    The tasks of each table are built once, however many configs there are.

    Raises:
        UsageError: data and scenario of a run do not fit.
    """
    return [group.table(data) for group in task_groups(configs)]


def task_groups(configs: Iterable[RunConfig]) -> list[TaskGroup]:
    """Return the groups of configs that have the same tasks, but for their splits and orders."""
    alike: dict[tuple[Any, ...], list[RunConfig]] = {}
    for config in with_distinct_tasks(configs, "task_order"):
        alike.setdefault((config.dataset, config.stratify, *config.tasks_key), []).append(config)
    differing = _differing(of_group[0] for of_group in alike.values())
    groups = []
    for of_group in alike.values():
        first = of_group[0]
        names = differing.get((first.dataset, first.scenario), [])
        settings = {name: first.tasks_settings.get(name) for name in names}
        if _is_by_difficulty(first) and first.first_tasks is not None:
            settings |= {"first_tasks": first.first_tasks, "task_order": first.task_order}
        groups.append(TaskGroup(of_group, settings))
    return groups


def _differing(configs: Iterable[RunConfig]) -> dict[tuple[str, str], list[str]]:
    """Return the settings of the tasks of which a data set and scenario have several values."""
    groups: dict[tuple[str, str], list[RunConfig]] = {}
    for config in configs:
        groups.setdefault((config.dataset, config.scenario), []).append(config)
    differing = {}
    for key, group in groups.items():
        settings = [config.tasks_settings for config in group]
        differing[key] = [name for name in settings[0] if _has_several(settings, name)]
    return differing


def _has_several(settings: Sequence[Mapping[str, Any]], name: str) -> bool:
    return any(of_config.get(name) != settings[0][name] for of_config in settings)


def _is_by_difficulty(config: RunConfig) -> bool:
    """Return whether the order of the tasks follows from an earlier run."""
    return config.task_order in BY_DIFFICULTY


def _rows(data: PreparedData, config: RunConfig, *, several_orders: bool) -> list[Row] | None:
    """Return the rows of a table; None if the data are not prepared. An encoder changes no count."""
    signals = config.data_key.signals
    if data.data_hash(signals) is None:
        return None
    frames = data.frames(signals)
    if _is_by_difficulty(config):
        config = config.replace(task_order="sequential", first_tasks=None)
    elif config.first_tasks is None and several_orders:
        config = config.replace(task_order="sequential")
    return task_rows(built_tasks(config, frames), frames)
