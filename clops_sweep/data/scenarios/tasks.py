"""What a scenario is made of: what its function returns, and what becomes of that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

LossKind = Literal["binary", "softmax", "multilabel"]


@dataclass(frozen=True, eq=False)
class TaskInstances:
    """One task as the function of a scenario gives it.

    Attributes:
        name: what tables call it; another one for every task.
        instances: bool [n], which instances of the frame set are its own, in whatever split.
        targets: [n, outputs] of zeros and ones for all instances, of which those of the task are looked at; several
            tasks may share an array.
        title: what the task holds, in words; by default the name.
        outputs: positions of the outputs that are classes of this task, where it has not all of them; empty for all.
    """

    name: str
    instances: NDArray[np.bool_]
    targets: NDArray[np.floating | np.integer]
    title: str = ""
    outputs: Sequence[int] = ()


@dataclass(frozen=True, eq=False)
class ScenarioTasks:
    """What the function of a scenario returns: its tasks, all for one head.

    Attributes:
        kind: what a target is: binary [n, 1] in {0, 1}, one sigmoid; softmax [n, C] one-hot, C >= 2 classes that
            exclude each other; multilabel [n, C] multi-hot, C sigmoids.
        tasks: in their own order, which `task_order` may change.
        by_position: whether an output is a place in a task, and means another class in each, so that a network can
            only be asked about an instance if it is known whose task that is. A network that is trained on all tasks
            at once then gets an output a class over all tasks.
        people_recur: whether a person may be both trained on and evaluated, with other instances.
        one_class_tasks: whether a task may have one class alone; AUC is then not defined.
        unseen: instances of people in no task, who are evaluated with the test split after every task; None for no such
            people. Goes with outputs that mean the same in every task.
    """

    kind: LossKind
    tasks: Sequence[TaskInstances]
    by_position: bool = False
    people_recur: bool = False
    one_class_tasks: bool = False
    unseen: TaskInstances | None = None


ScenarioFunction = Callable[..., ScenarioTasks]
"""From a FrameSet, and the config fields that it declares as keyword arguments, to tasks."""


@dataclass(frozen=True, eq=False)
class Subset:
    """m instances: `rows` [m] int64, positions in the frame set; `targets` [m, outputs] float32."""

    rows: NDArray[np.int64]
    targets: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Task:
    """One task under the name that tables have, what it holds as `title`, and its own `outputs` if it has not all."""

    name: str
    train: Subset
    validation: Subset
    test: Subset
    title: str = ""
    outputs: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Scenario:
    """Tasks in the order they are trained on, all for one head of `outputs` outputs; see `ScenarioTasks`."""

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
        """Whether each task has classes of its own among those of one softmax over the classes of all tasks."""
        outputs = [output for task in self.tasks for output in task.outputs]
        own = all(task.outputs for task in self.tasks) and len(set(outputs)) == len(outputs)
        return own and self.kind == "softmax" and not self.by_position
