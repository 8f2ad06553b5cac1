"""What the last task of a run brings: classes, dates, domains or people, and how its model decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.nameless_notes import doubt_people
from clops_sweep.data.scenarios.leaks import copies_in_training
from clops_sweep.data.scenarios.tasks import Scenario
from clops_sweep.errors import UsageError, listed
from clops_sweep.experiment.columns import config_from_row
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.former import FORMER_OPTIONS
from clops_sweep.experiment.plugins.registry import SCENARIOS, unregistered
from clops_sweep.experiment.tasks import scenario_of

from ..figures.task_titles import task_titles
from .copies import by_id_alone
from .paired import LastUpdate, Paired


@dataclass(frozen=True)
class TaskFacts:
    """Facts about the tasks of a run.

    Attributes:
        scenario: name of the scenario.
        changes: what changes from task to task, as its declaration says; empty if unknown.
        domain: the column of the domains.
        by_position: whether an output means another class in each task; None if unknown.
        same_test_people: whether all tasks are tested on the same people.
        titles: titles of the tasks by name.
        trained: the classes that each task trains on, by name of the task; None without prepared frames.
        people: the people that each task trains on, as numbers, by name of the task; None without prepared frames, or
            if people are unknown.
        outputs: the class of each output that means one class of the training data; empty without prepared frames.
        copies: tested people with recordings that are in training or validation under another name, each with such a
            person.
        are_doubted: whether one person may be there under two names.
    """

    scenario: str
    changes: str
    domain: str
    by_position: bool | None
    same_test_people: bool
    titles: Mapping[str, str]
    trained: Mapping[str, frozenset[str]] | None
    people: Mapping[str, frozenset[int]] | None
    outputs: Mapping[int, str]
    copies: Mapping[str, str]
    are_doubted: bool

    def title(self, task: str) -> str:
        """Return the title of a task, or its name if frames are not prepared here."""
        return self.titles.get(task, task)


def task_facts(row: Mapping[str, Any], frames: FrameSet | None) -> TaskFacts:
    """Return the facts about the tasks of a run.

    Args:
        row: its row of `runs`.
        frames: the frames that it was computed on; None if they are not prepared here.
    """
    name = str(row["scenario"])
    changes, by_position = "", None
    if name in SCENARIOS:
        declaration = SCENARIOS.declaration(name)
        changes = declaration.changes
        by_position = declaration.by_position if changes else None
    scenario = None if frames is None else _scenario(row, frames)
    titles: Mapping[str, str] = {}
    trained, people = None, None
    outputs: Mapping[int, str] = {}
    copies: Mapping[str, str] = {}
    if frames is not None and scenario is not None:
        by_position = scenario.by_position
        titles = task_titles(frames, config_of_tasks(row))
        trained = {task.name: _classes(frames, task.train.rows) for task in scenario.tasks}
        outputs = _classes_of_outputs(frames, scenario)
        copies = _copies(frames, scenario)
        if frames.people_known:
            people = {task.name: frozenset(frames.patients[task.train.rows].tolist()) for task in scenario.tasks}
    return TaskFacts(
        scenario=name,
        changes=changes,
        domain=str(row.get("domain") or "domain"),
        by_position=by_position,
        same_test_people=changes == "people" and row.get("split_within") != "time",
        titles=titles,
        trained=trained,
        people=people,
        outputs=outputs,
        copies=copies,
        are_doubted=frames is not None and doubt_people(frames.leaks),
    )


def _copies(frames: FrameSet, scenario: Scenario) -> Mapping[str, str]:
    """Return `copies_in_training` of a scenario; the signals are read only if a note of the preparation names some."""
    if not frames.leaks:
        return {}
    trained = [part.rows for task in scenario.tasks for part in (task.train, task.validation)]
    tested = [task.test.rows for task in scenario.tasks]
    return copies_in_training(frames, np.unique(np.concatenate(tested)), np.unique(np.concatenate(trained)))


def in_common(of_folds: Sequence[TaskFacts]) -> TaskFacts:
    """Return the facts about the tasks of several folds: titles and outputs where all agree, and the copies of all."""
    first, *others = of_folds
    if not others:
        return first
    titles = {}
    for name, title in first.titles.items():
        if all(other.titles.get(name) == title for other in others):
            titles[name] = title
    outputs = {}
    for output, name in first.outputs.items():
        if all(other.outputs.get(output) == name for other in others):
            outputs[output] = name
    copies: dict[str, str] = {}
    for of_fold in of_folds:
        copies |= of_fold.copies
    return replace(first, titles=titles, outputs=outputs, copies=copies)


def people_in_training(tasks: Sequence[str], facts: TaskFacts) -> int | None:
    """Return the number of distinct people that some tasks train on; None if unknown."""
    if facts.people is None or not all(task in facts.people for task in tasks):
        return None
    return len(frozenset().union(*(facts.people[task] for task in tasks)))


def _scenario(row: Mapping[str, Any], frames: FrameSet) -> Scenario | None:
    if unregistered(row):
        return None
    try:
        return scenario_of(config_of_tasks(row), frames)
    except UsageError:  # tasks that cannot be built here were built where the run took place
        return None


def _classes_of_outputs(frames: FrameSet, scenario: Scenario) -> dict[int, str]:
    """Return the class of each output that means a single class in the training data of all tasks."""
    if scenario.by_position or frames.multi_label:
        return {}
    codes: dict[int, set[int]] = {}
    for task in scenario.tasks:
        labels = frames.labels[task.train.rows]
        for output, target in enumerate(task.train.targets.T):
            codes.setdefault(output, set()).update(labels[target > 0].tolist())
    return {output: frames.classes[of_output.pop()] for output, of_output in codes.items() if len(of_output) == 1}


def config_of_tasks(row: Mapping[str, Any]) -> RunConfig:
    """Return the config of a run without former options of its method, which decide nothing about tasks."""
    return config_from_row({**row, **dict.fromkeys(FORMER_OPTIONS)})


def _classes(frames: FrameSet, rows: Any) -> frozenset[str]:
    labels = frames.labels[rows]
    present = labels.any(0) if frames.multi_label else np.bincount(labels, minlength=len(frames.classes)) > 0
    return frozenset(name for name, there in zip(frames.classes, present, strict=True) if there)


@dataclass(frozen=True)
class Known:
    """The test instances of a run by what the model before its last task can know of them.

    Attributes:
        old: instances of earlier tasks, of classes that this model has learned.
        new: instances of the last task alone, of classes that this model has learned.
        unavailable: instances of each class that it has not learned, by class.
    """

    old: Paired
    new: Paired
    unavailable: Mapping[str, Paired]


def by_knowledge(update: LastUpdate, facts: TaskFacts) -> Known:
    """Divide the test instances of a run.

    The model before has learned the classes that earlier tasks train on. Without prepared frames, these are the classes
    of the test instances of earlier tasks.
    """
    rows = update.rows
    if facts.trained is None:
        learned = {name for name, has in rows.classes.items() if has[update.old].any()}
    else:
        learned = {name for task in update.tasks[:-1] for name in facts.trained.get(task, ())}
    apart = np.zeros(len(rows), bool)
    unavailable = {}
    for name, has in rows.classes.items():
        of_class = has & (update.old | update.new)
        if name not in learned and of_class.any():
            unavailable[name] = rows.take(of_class).once()
            apart |= of_class
    return Known(rows.take(update.old & ~apart).once(), rows.take(update.new & ~apart).once(), unavailable)


def brought(update: LastUpdate, known: Known, facts: TaskFacts) -> Iterator[str]:
    """Yield sentences on what the last task brings."""
    rows, last = update.rows, update.tasks[-1]
    title = facts.title(last)
    if facts.changes == "classes":
        yield f"The classes of the last task are {listed(_classes_of(rows, last))}."
    elif facts.changes == "dates":
        yield f"The last task has recordings of other dates: {title}."
    elif facts.changes == "domains":
        yield f"The last task has recordings of another {facts.domain}: {title.removeprefix(f'{facts.domain} ')}."
    elif facts.changes == "people":
        yield f"The last task has recordings of other people: {title}."
    else:
        yield f"The last task is {title}."
    if facts.same_test_people:
        doubt = by_id_alone("patient") if facts.are_doubted else ""
        yield f"Every task is tested on the same people, who are in no training data{doubt}."
    if known.unavailable:
        yield (
            f"The model before has not learned {listed(known.unavailable)}: not available before, so no rate compares "
            "them."
        )
    elif facts.changes != "classes":
        yield f"The classes are the same as before: {listed(rows.classes)}."


def _classes_of(rows: Paired, task: str) -> list[str]:
    there = rows.tasks == task
    return [name for name, has in rows.classes.items() if has[there].any()]


def decided(rows: Paired, facts: TaskFacts) -> str:
    """Return a sentence on the classes that a decision is among; empty if it is among all in every task."""
    if facts.by_position:
        tasks = dict.fromkeys(rows.tasks.tolist())
        among = "; ".join(" or ".join(_classes_of(rows, task)) for task in tasks)
        other = " Decisions among the classes of all tasks need the scenario class_il_union."
        return (
            f"In {facts.scenario} the task of an instance is known at test time: each decision is among the classes of "
            f"that task ({among}).{other if facts.changes == 'classes' else ''}"
        )
    if facts.changes == "classes":
        return (
            f"In {facts.scenario} the task of an instance is unknown at test time: each decision is among the "
            f"classes of all tasks ({', '.join(rows.classes)})."
        )
    return ""
