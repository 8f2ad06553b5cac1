"""Class-incremental scenarios: every task has its own classes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.scenarios.instances import reference_lead_of
from clops_sweep.data.scenarios.tasks import ScenarioTasks, TaskInstances
from clops_sweep.errors import UsageError, shown

ONE_TASK = 3
"""Number of classes of a single task: two and one cannot be two tasks, since one class cannot be scored."""

TaskClasses = Sequence[Sequence[int | str]]
"""The classes of each task, by number (from 0) or name."""


def class_il(frames: FrameSet, *, task_classes: TaskClasses | None = None) -> ScenarioTasks:
    """One output per class position within a task, shared by all tasks (CLOPS's Class-IL; elsewhere task-IL).

    Pairs have one sigmoid, whose target is the position in the pair; groups of g > 2 classes a softmax over g
    positions.

    Args:
        frames: frames with one label per instance.
        task_classes: the classes of each task, the same number in each; by default consecutive pairs.

    Raises:
        UsageError: several labels per instance, or invalid groups.
    """
    groups = _groups("class_il", frames, task_classes)
    sizes = {len(group) for group in groups}
    if len(sizes) > 1:
        raise UsageError(
            f"class_il has one output per position in a task, but task_classes has groups of {min(sizes)} and of "
            f"{max(sizes)} classes; use groups of one size, or scenario = 'class_il_union'"
        )
    size = sizes.pop()
    position = np.zeros(len(frames.classes), np.int64)
    for group in groups:
        position[list(group)] = np.arange(size)
    places = position[frames.labels]
    targets = places[:, None] if size == 2 else np.eye(size)[places]
    tasks = _tasks(frames, groups, np.asarray(targets, np.float32))
    return ScenarioTasks("binary" if size == 2 else "softmax", tasks, by_position=True)


def class_il_union(frames: FrameSet, *, task_classes: TaskClasses | None = None) -> ScenarioTasks:
    """One output per class of all tasks: the task of an instance is unknown when it is classified.

    Class-incremental learning as van de Ven and Tolias (2019) define it: a softmax over the classes of all tasks, in
    the order of their numbers, from the first task on. The most probable class is predicted. The AUC of a task is the
    mean one-vs-rest AUC of its classes, among the instances of the task.

    Args:
        frames: frames with one label per instance.
        task_classes: the classes of each task, two or more; by default consecutive pairs.

    Raises:
        UsageError: several labels per instance, or invalid groups.
    """
    groups = _groups("class_il_union", frames, task_classes)
    classes = sorted(number for group in groups for number in group)
    output = np.zeros(len(frames.classes), np.int64)
    output[classes] = np.arange(len(classes))
    targets = np.eye(len(classes), dtype=np.float32)[output[frames.labels]]
    return ScenarioTasks("softmax", _tasks(frames, groups, targets, output))


def _tasks(
    frames: FrameSet,
    groups: Sequence[Sequence[int]],
    targets: NDArray[np.float32],
    output: NDArray[np.int64] | None = None,
) -> list[TaskInstances]:
    chosen = reference_lead_of(frames)
    tasks = []
    for group in groups:
        name = "-".join(map(str, group))
        instances = chosen & np.isin(frames.labels, group)
        title = " / ".join(frames.classes[number] for number in group)
        outputs = () if output is None else tuple(output[list(group)].tolist())
        tasks.append(TaskInstances(name, instances, targets, title, outputs))
    return tasks


def groups_of(count: int) -> list[list[int]]:
    """Return consecutive pairs of classes; with an odd number of classes, the first group has three."""
    first = 2 + count % 2
    return [list(range(first)), *([low, low + 1] for low in range(first, count, 2))]


def too_few_classes(scenario: str, dataset: str) -> str:
    """Return the sentence about a data set of three classes."""
    needed = f"{scenario} needs two tasks of two classes or more"
    return f"{needed}, and {dataset!r} has {ONE_TASK} classes, enough for one task"


def other_scenario(frames: FrameSet) -> dict[str, str]:
    """Return the settings of a scenario for too few classes: its tasks are values of a column, or groups of people."""
    column = next(iter(frames.domains), None)
    return {"scenario": "subject_il"} if column is None else {"scenario": "domain_il", "domain": column}


def _groups(scenario: str, frames: FrameSet, task_classes: TaskClasses | None) -> list[tuple[int, ...]]:
    """Return the classes of each task by number."""
    if frames.multi_label:
        of_instances = np.asarray(frames.labels).astype(bool).sum(axis=1)
        carry = "carry several" if of_instances.max() > 1 else "carry one or none"
        raise UsageError(f"{scenario} needs one label per instance, but instances of {frames.name!r} {carry}")
    count = len(frames.classes)
    if task_classes is None:
        if count == ONE_TASK:
            settings = other_scenario(frames)
            named = " and ".join(f"{name} = {value!r}" for name, value in settings.items())
            raise UsageError(f"{too_few_classes(scenario, frames.name)}; set {named}")
        if count < 2 or count % 2:
            other = "" if scenario == "class_il_union" else "scenario = 'class_il_union' and "
            raise UsageError(
                f"{scenario} needs an even number of classes to pair them, but {frames.name!r} has {count}; "
                f"set {other}task_classes = {groups_of(count)}"
            )
        return [tuple(group) for group in groups_of(count)]
    groups = []
    for group in task_classes:
        groups.append(tuple(_number(label, frames) for label in group))
    numbers = list(chain.from_iterable(groups))
    for number in numbers:
        if numbers.count(number) > 1:
            raise UsageError(f"task_classes: class {frames.classes[number]!r} of {frames.name!r} is there twice")
    return groups


def _number(label: int | str, frames: FrameSet) -> int:
    if isinstance(label, str) and label in frames.classes:
        return frames.classes.index(label)
    if not isinstance(label, str) and 0 <= label < len(frames.classes):
        return label
    names = ", ".join(f"{number} {name}" for number, name in enumerate(frames.classes))
    raise UsageError(f"task_classes: {shown(label)} is no class of {frames.name!r}, which has {names}")
