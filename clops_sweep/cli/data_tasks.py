"""The tasks of a prepared data set, for its counts: those of a file's search spaces, or the default ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from clops_sweep.data.catalog import DATASETS, DataKey
from clops_sweep.data.prepared.counts import Row, task_rows
from clops_sweep.data.preparing.other_split_seeds import refusal_of
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.data.scenarios import build_scenario
from clops_sweep.data.scenarios.scarce import UncoveredTask, parts_of, people_of_classes
from clops_sweep.errors import UsageError, listed
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import SCENARIOS
from clops_sweep.experiment.prepared_tasks import refused_seeds
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.task_tables import TaskGroup, TaskTable, task_groups

if TYPE_CHECKING:
    from clops_sweep.data.frames import FrameSet
    from clops_sweep.data.scenarios import Scenario


@dataclass(frozen=True)
class TasksOfData:
    """The tasks of a prepared data set.

    Attributes:
        key: the frames whose classes and people are counted: those of the first search space, if there is one.
        counted_split: which split that is, such as "split_seed 0 of 5 splits"; empty if it is the only one.
        splits: the frames' key of each split of the search spaces, by its name, such as "split_seed 0".
        headings: for each kind of tasks, such as "domain_il by ward", which split its table counts, and for whom.
        rows: the rows of each table.
        impossible: why other kinds have no tasks, in a sentence each.
        nothing_runs: whether no kind has tasks, also with other splits and other settings of the scenario.
        refused: the search spaces that do not fit the data, with any split seed, in words; empty if all fit.
    """

    key: DataKey
    counted_split: str
    splits: dict[str, DataKey] = field(default_factory=dict)
    headings: dict[str, str] = field(default_factory=dict)
    rows: dict[str, Sequence[Row]] = field(default_factory=dict)
    impossible: dict[str, str] = field(default_factory=dict)
    nothing_runs: bool = False
    refused: str = ""

    def before(self, others: TasksOfData) -> TasksOfData:
        """Return these tasks, then the kinds of others that these do not name."""
        more = [name for name in others.rows if name not in self.impossible]
        impossible = {name: why for name, why in others.impossible.items() if name not in self.rows}
        return replace(
            self,
            headings={**others.headings, **self.headings},
            rows=self.rows | {name: others.rows[name] for name in more if name not in self.rows},
            impossible=impossible | self.impossible,
            nothing_runs=others.nothing_runs and not self.rows,
        )


def tasks_of_spaces(
    dataset: str, spaces: Sequence[SearchSpace], split_seed: int | None, data: PreparedData
) -> TasksOfData | None:
    """Return the tasks of the search spaces that run on a data set; None if no run does.

    Args:
        dataset: name of the data set, which is prepared.
        spaces: search spaces, which may be of other data sets.
        split_seed: the split seed that is counted; None for those of the search spaces.
        data: the prepared data.

    Raises:
        UsageError: a search space is invalid.
    """
    names: dict[RunConfig, list[str]] = {}
    for space in spaces:
        for config in Selection((space,)).configs:
            if config.dataset == dataset:
                chosen = config if split_seed is None else config.replace(split_seed=split_seed)
                names.setdefault(chosen, []).append(space.name)
    if not names:
        return None
    groups = task_groups(names)
    data.solve_splits(config.data_key for group in groups for config in group.configs)
    first = groups[0].without_rows(data)
    key = groups[0].first.data_key.signals._replace(normalize="none")
    tasks = TasksOfData(key, first.counted_split, _splits(groups, key) if first.counted_split else {"": key})
    refused = dict[RunConfig, list[str]]()
    for group in groups:
        table, problem, is_refused = _checked(group, data)
        if problem is not None:
            tasks.impossible[table.tasks] = problem
        if is_refused:
            refused |= _configs_of(group, names)
        if table.rows is not None:
            of_spaces = _spaces_of(group, names)
            tasks.rows[table.tasks] = table.rows
            tasks.headings[table.tasks] = f", {table.counted_split}, of {of_spaces}"
    return replace(tasks, refused=_in_words(refused) if refused else "")


def _splits(groups: Sequence[TaskGroup], key: DataKey) -> dict[str, DataKey]:
    """Return the key of each split of some groups, by its name; of frames of the same leads as those of `key`."""
    configs = [config for group in groups for config in group.configs if config.data_key.leads == key.leads]
    seeds = len({config.split_seed for config in configs})
    schemes = len({config.stratify for config in configs})
    splits = dict[str, DataKey]()
    for config in sorted(configs, key=lambda config: (config.split_seed, config.split or "", config.stratify or "")):
        seed = f"split_seed {config.split_seed}"
        name = config.split or seed
        if config.split is not None and seeds > 1:
            name += f" of {seed}"
        if schemes > 1 and config.stratify is not None:
            name += f" stratified by {config.stratify}"
        splits.setdefault(name, config.data_key.signals._replace(normalize="none"))
    return splits


def _spaces_of(group: TaskGroup, names: dict[RunConfig, list[str]]) -> str:
    """Return the search spaces whose runs have the tasks of a group."""
    return _in_words(_configs_of(group, names))


def _configs_of(group: TaskGroup, names: dict[RunConfig, list[str]]) -> dict[RunConfig, list[str]]:
    """Return the configs that have the tasks of a group, with their search spaces."""
    key = (group.first.dataset, group.first.stratify, group.first.tasks_key)
    return {
        config: of_config
        for config, of_config in names.items()
        if (config.dataset, config.stratify, config.tasks_key) == key
    }


def _in_words(names: dict[RunConfig, list[str]]) -> str:
    """Return the search spaces of some configs, each once."""
    there: dict[str, None] = {}
    for of_config in names.values():
        there.update(dict.fromkeys(of_config))
    what = "search space" if len(there) == 1 else "search spaces"
    return f"{what} {listed(map(repr, there))}"


def _checked(group: TaskGroup, data: PreparedData) -> tuple[TaskTable, str | None, bool]:
    """Return the table of a group, the error of a launch if one of its splits does not have the tasks, and its kind.

    The kind is whether no other split seed helps: the settings are wrong, or too few people have a task or class.
    """
    empty = group.without_rows(data)
    try:
        frames = {config.data_key: data.frames(config.data_key.signals) for config in group.configs}
        refused = refused_seeds(group.configs, frames, data)
    except UsageError as problem:
        return empty, str(problem), not isinstance(problem, UncoveredTask)
    try:
        return group.table(data), None if refused is None else str(refused), False
    except UsageError as problem:
        return empty, str(refused or problem), refused is None and not isinstance(problem, UncoveredTask)


def default_tasks(dataset: str, split_seed: int, data: PreparedData, *, is_declared: bool) -> TasksOfData:
    """Return the tasks of each scenario of a data set with its default settings, and those by each declared domain.

    Args:
        dataset: name of the data set, which is prepared.
        split_seed: the split seed that is counted.
        data: the prepared data.
        is_declared: whether a user declared the data set.
    """
    words = "" if data.has_given_split(dataset) else f"split_seed {split_seed}"
    key = DataKey(dataset, split_seed, "none", DATASETS[dataset].leads)
    frames = data.frames(key)
    tasks = TasksOfData(key, words, {words: key})
    can_run = False  # with another split
    for kind in _kinds(key, frames):
        of_kind = data.frames(kind.key)
        try:
            tasks.rows[kind.tasks] = task_rows(kind.tasks_of(of_kind), of_kind)
            tasks.headings[kind.tasks] = f", {words}" if words else ""
        except UncoveredTask as problem:
            seeds = {split_seed: problem}
            try:
                refusal = refusal_of(seeds, of_kind, kind.key, data, kind.tasks_of, kind.options.get("domain"))
            except UsageError as other:  # of another task, for which no split seed helps
                tasks.impossible[kind.tasks] = str(other)
                continue
            tasks.impossible[kind.tasks] = str(problem) if refusal is None else refusal.sentence
            can_run = can_run or (refusal is not None and (refusal.is_stratifiable or bool(refusal.covering)))
        except UsageError as problem:
            # The scenario is printed in front of the sentence.
            tasks.impossible[kind.tasks] = str(problem).removeprefix(f"{kind.scenario} ")
    is_stuck = is_declared and not (can_run or tasks.rows or _may_have_other_tasks(frames))
    return replace(tasks, nothing_runs=is_stuck)


@dataclass(frozen=True)
class _Kind:
    """A kind of tasks: its name, its scenario with options, and the key of its frames."""

    tasks: str
    scenario: str
    key: DataKey
    options: dict[str, Any]

    def tasks_of(self, frames: FrameSet) -> Scenario:
        """Return the tasks on some frames."""
        return build_scenario(frames, self.scenario, **self.options)


def _kinds(key: DataKey, frames: FrameSet) -> list[_Kind]:
    """Return the kinds of tasks of a data set: its scenarios, of which domain_il has one for each domain.

    Args:
        key: the key of the frames, with the leads that are the default of the data set.
        frames: the frames.
    """
    kinds = []
    for scenario in DATASETS[key.dataset].scenarios:
        if scenario != "domain_il":
            kinds.append(_Kind(scenario, scenario, key, {}))
            continue
        for name in frames.domains:
            kinds.append(_Kind(f"{scenario} by {name}", scenario, key, {"domain": name}))
        if len(frames.lead_names) > 1 or not frames.domains:
            kinds.append(_Kind(scenario, scenario, key._replace(leads="single"), {}))
    return kinds


def _may_have_other_tasks(frames: FrameSet) -> bool:
    """Return whether other tasks than the default ones may be built on frames.

    They are those of a custom scenario, and of `task_classes` if two classes have a person for each part of a split.
    """
    if SCENARIOS.added:
        return True
    scenarios = DATASETS[frames.name].scenarios
    if not any("task_classes" in SCENARIOS.declaration(scenario).fields for scenario in scenarios):
        return False
    return sum(people >= parts_of(frames) for people in people_of_classes(frames)) >= 2
