"""Tasks of a scenario: the return value of its function, and the tasks built from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from clops_sweep.arguments import arguments_of_class

LossKind = Literal["binary", "softmax", "multilabel"]


@arguments_of_class
@dataclass(frozen=True, eq=False)
class TaskInstances:
    """One task returned by the function of a scenario.

    Attributes:
        name: unique name in tables.
        instances: bool [n], the instances of the frame set in this task, of all splits.
        targets: [n, outputs] of zeros and ones for all instances; only those of the task are used, and several tasks
            may share an array.
        title: description in words; by default the name.
        outputs: indices of the outputs that are classes of this task; empty for all.
    """

    name: str
    instances: NDArray[np.bool_]
    targets: NDArray[np.floating | np.integer]
    title: str = ""
    outputs: Sequence[int] = ()


@arguments_of_class
@dataclass(frozen=True, eq=False)
class ScenarioTasks:
    """The return value of a scenario's function: its tasks, for one head.

    Attributes:
        kind: kind of targets: binary [n, 1] in {0, 1}, one sigmoid; softmax [n, C] one-hot, C >= 2 exclusive classes;
            multilabel [n, C] multi-hot, C sigmoids.
        tasks: the tasks in their natural order, which `task_order` may change.
        by_position: whether outputs are class positions within a task, with another class in each task, so that
            classification requires the task. Joint training then uses one output per class of all tasks.
        people_recur: whether a person may be in both training and evaluation, with different instances.
        one_class_tasks: whether a task may have a single class; AUC is then undefined.
        unseen: instances of people in no task, who are evaluated with the test split after every task; None without
            such people. Requires outputs with the same meaning in every task.
    """

    kind: LossKind
    tasks: Sequence[TaskInstances]
    by_position: bool = False
    people_recur: bool = False
    one_class_tasks: bool = False
    unseen: TaskInstances | None = None


ScenarioFunction = Callable[..., ScenarioTasks]
"""Function from a FrameSet, and declared config fields as keyword arguments, to tasks."""


@dataclass(frozen=True, eq=False)
class Subset:
    """m instances: `rows` [m] int64, indices into the frame set; `targets` [m, outputs] float32."""

    rows: NDArray[np.int64]
    targets: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Task:
    """A task: its name in tables, its `title` in words, its subsets, and its own `outputs` if it does not use all."""

    name: str
    train: Subset
    validation: Subset
    test: Subset
    title: str = ""
    outputs: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Scenario:
    """Tasks in training order, for one head of `outputs` outputs; see `ScenarioTasks`."""

    name: str
    kind: LossKind
    outputs: int
    tasks: tuple[Task, ...]
    by_position: bool = False
    people_recur: bool = False
    one_class_tasks: bool = False
    unseen: Subset | None = None

    @property
    def has_own_classes(self) -> bool:
        """Whether each task has its own classes in one softmax over the classes of all tasks."""
        outputs = [output for task in self.tasks for output in task.outputs]
        own = all(task.outputs for task in self.tasks) and len(set(outputs)) == len(outputs)
        return own and self.kind == "softmax" and not self.by_position
