"""Tables of the tasks of the requested runs: frames and people of each task in training, validation and test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clops_sweep.data.prepared.counts import Row, task_rows
from clops_sweep.errors import shown
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.tasks import built_tasks, with_distinct_tasks
from clops_sweep.planning.curriculum import BY_DIFFICULTY
from clops_sweep.planning.request import Request


@dataclass(frozen=True)
class TaskTable:
    """The tasks of one data set in one scenario.

    Attributes:
        dataset: name of the data set.
        scenario: name of the scenario.
        settings: the settings of the scenario in which the requested runs differ, such as `domain`; also `first_tasks`
            and `task_order` if the order follows from difficulty, so which of the rows are trained on is not known yet.
        split_seed: seed of the patient split that is counted, the lowest one.
        split: the fold that is counted; None without folds.
        splits: number of patient splits that are requested.
        is_given: whether the split is given in the data, so that every split seed is the same split.
        orders: number of task orders that are requested; the rows are in the natural order if there are several.
        rows: a row for each task; None if the data are not prepared on this machine.
    """

    dataset: str
    scenario: str
    settings: dict[str, Any]
    split_seed: int
    split: str | None
    splits: int
    is_given: bool
    orders: int
    rows: list[Row] | None

    @property
    def title(self) -> str:
        """Return a phrase such as "wearable, class_il_union, split_seed 0 of 5 splits", or with "the given split"."""
        words = f"{self.dataset}, {self.scenario}"
        for name, value in self.settings.items():
            words += ", all tasks" if (name, value) == ("first_tasks", None) else f", {name} = {shown(value)}"
        if self.rows is None:
            return words
        if self.is_given:
            return f"{words}, the given split"
        split = f"split {self.split}" if self.split is not None else f"split_seed {self.split_seed}"
        return f"{words}, {split}" + (f" of {self.splits} splits" if self.splits > 1 else "")


def task_tables(request: Request) -> list[TaskTable]:
    """Return a table for each data set and scenario of the requested runs, of the first of their patient splits.

    The tasks of each table are built once, however many runs there are.

    Raises:
        UsageError: data and scenario of a run do not fit.
    """
    groups: dict[tuple[Any, ...], list[RunConfig]] = {}
    for config in with_distinct_tasks(request.selection.configs, "task_order"):
        groups.setdefault((config.dataset, *config.tasks_key), []).append(config)
    differing = _differing(configs[0] for configs in groups.values())
    tables = []
    for configs in groups.values():
        first = min(configs, key=lambda config: (config.split_seed, config.split or ""))
        names = differing.get((first.dataset, first.scenario), [])
        settings = {name: first.tasks_settings.get(name) for name in names}
        if _is_by_difficulty(first) and first.first_tasks is not None:
            settings |= {"first_tasks": first.first_tasks, "task_order": first.task_order}
        is_drawn = any(config.draws_with_split_seed for config in configs)
        is_given = not is_drawn and request.data.has_given_split(first.dataset)
        splits = {(config.split_seed, config.split) for config in configs}
        orders = len({config.task_order for config in configs})
        rows = _rows(request, first, several_orders=orders > 1)
        tables.append(
            TaskTable(
                dataset=first.dataset,
                scenario=first.scenario,
                settings=settings,
                split_seed=first.split_seed,
                split=first.split,
                splits=len(splits),
                is_given=is_given,
                orders=orders,
                rows=rows,
            )
        )
    return tables


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


def _rows(request: Request, config: RunConfig, *, several_orders: bool) -> list[Row] | None:
    """Return the rows of a table; None if the data are not prepared."""
    if request.data_hash(config) is None:
        return None
    frames = request.data.frames(config.data_key)
    if _is_by_difficulty(config):
        config = config.replace(task_order="sequential", first_tasks=None)
    elif config.first_tasks is None and several_orders:
        config = config.replace(task_order="sequential")
    return task_rows(built_tasks(config, frames), frames)
