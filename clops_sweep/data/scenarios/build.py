"""Construction of ordered tasks with training, validation and test sets from a scenario's function."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import LEAD
from clops_sweep.data.frames import SPLIT_NAMES, TEST, TRAINING, VALIDATION, FrameSet
from clops_sweep.data.scenarios.blurry import with_blurry_boundaries
from clops_sweep.data.scenarios.class_incremental import class_il, class_il_union
from clops_sweep.data.scenarios.domains import domain_il
from clops_sweep.data.scenarios.leaks import check_leaks
from clops_sweep.data.scenarios.people import subject_il
from clops_sweep.data.scenarios.scarce import constant_task, empty_task
from clops_sweep.data.scenarios.tasks import (
    LossKind,
    Scenario,
    ScenarioFunction,
    ScenarioTasks,
    Subset,
    Task,
    TaskInstances,
)
from clops_sweep.data.scenarios.terms import time_il
from clops_sweep.errors import UsageError, listed, nearest, one_line, shown, user_code

_BUILT_IN: Mapping[str, ScenarioFunction] = {
    "class_il": class_il,
    "class_il_union": class_il_union,
    "time_il": time_il,
    "domain_il": domain_il,
    "subject_il": subject_il,
}


def build_scenario(
    frames: FrameSet,
    scenario: str,
    task_order: str | int | tuple[int, ...] | tuple[str, ...] = "sequential",
    *,
    function: ScenarioFunction | None = None,
    blurry: float = 0.0,
    blur_seed: int = 0,
    **options: Any,
) -> Scenario:
    """Return the tasks of a scenario on `frames`, in the order of `task_order`.

    An integer task_order s shuffles as the released code does: random.Random(s).sample(range(N), N).

    Args:
        frames: the data set.
        scenario: name of the scenario.
        task_order: "sequential", a seed, or a permutation of the tasks, by position or by name.
        function: the function of the scenario; by default that of the built-in scenario.
        blurry: share of each task's training instances that come with its neighbours, in training order.
        blur_seed: seed of the draw, see `with_blurry_boundaries`.
        options: keyword arguments of the function.

    Raises:
        UsageError: the data set lacks what the scenario needs, the function of a user's own scenario raises or returns
            what cannot be trained on, a task lacks a class in a split, what is evaluated is trained on too (see
            `check_leaks`), or task_order is not a permutation of the tasks. A frame set may have no validation set.
    """
    if function is None and scenario not in _BUILT_IN:
        raise UsageError(f"scenario {scenario!r}: not known; built in are {', '.join(_BUILT_IN)}")
    made = _made(function, scenario, frames, options) if function else _BUILT_IN[scenario](frames, **options)
    outputs = np.asarray(made.tasks[0].targets).shape[1]
    tasks = [_task(task, frames) for task in made.tasks]
    for task in tasks:
        _check_task(task, made, frames)
    if isinstance(task_order, int) and len(tasks) == 1:
        raise UsageError(f"task_order = {task_order}: scenario {scenario!r} has one task; leave it out")
    order = _order(task_order, tasks, _word_of_domain(scenario, options))
    ordered = tuple(tasks[position] for position in order)
    if blurry:
        if made.by_position or len(ordered) == 1:
            has = "one task" if len(ordered) == 1 else "outputs that mean other classes in other tasks"
            raise UsageError(
                f"blurry = {blurry:g}: scenario {scenario!r} has {has}, so no instance can move to a neighbouring "
                "task; expected blurry = 0, or two or more tasks whose outputs mean the same, as in class_il_union"
            )
        if (share := 1 / max(len(task.train.rows) for task in tasks)) > blurry:
            raise UsageError(f"blurry = {blurry:g}: less than one training instance; expected at least {share:.3g}")
        ordered = with_blurry_boundaries(ordered, blurry, blur_seed)
    unseen = None
    if made.unseen is not None:
        rows = np.flatnonzero(made.unseen.instances).astype(np.int64)
        unseen = Subset(rows, np.ascontiguousarray(np.asarray(made.unseen.targets, np.float32)[rows]))
    said = made.by_position, made.people_recur, made.one_class_tasks
    built = Scenario(scenario, made.kind, outputs, ordered, *said, unseen)
    check_leaks(built, frames)
    return built


def _word_of_domain(scenario: str, options: Mapping[str, Any]) -> str:
    """Return the word before the value of a domain in the names of tasks; empty in other scenarios."""
    if scenario != "domain_il":
        return ""
    domain = options.get("domain", LEAD)
    return "Lead" if domain == LEAD else str(domain)


def _made(function: ScenarioFunction, name: str, frames: FrameSet, options: Mapping[str, Any]) -> ScenarioTasks:
    """Call a function, perhaps of a user, and validate its return value."""
    with user_code(
        lambda error: UsageError(
            f"scenario {name!r} raises {type(error).__name__} for {frames.name!r}: {one_line(error)}"
        )
    ):
        made, again = function(frames, **options), function(frames, **options)
    wrong = _wrong(made, len(frames)) or _wrong(again, len(frames))
    if not wrong and not all(map(_same, made.tasks, again.tasks)):
        wrong = "the tasks differ when it is called again; draw random numbers from numpy.random.default_rng(0)"
    if wrong:
        raise UsageError(f"scenario {name!r} on {frames.name!r}: {wrong}")
    return made


def _same(one: TaskInstances, other: TaskInstances) -> bool:
    return np.array_equal(one.instances, other.instances) and np.array_equal(one.targets, other.targets)


def _wrong(made: object, count: int) -> str | None:
    """Return what is wrong with the return value of a scenario's function, and what is expected."""
    if not isinstance(made, ScenarioTasks):
        return f"the function returns {type(made).__name__}; expected clops_sweep.ScenarioTasks"
    if made.kind not in get_args(LossKind):
        return f"kind = {shown(made.kind)}; expected {', '.join(get_args(LossKind))}"
    if not isinstance(made.tasks, list | tuple) or not made.tasks:
        return "it has no tasks; expected a list of clops_sweep.TaskInstances"
    for task in (*made.tasks, *([] if made.unseen is None else [made.unseen])):
        if not isinstance(task, TaskInstances):
            return f"a task is {type(task).__name__}; expected clops_sweep.TaskInstances"
        texts = all(isinstance(text, str) and text.isprintable() for text in (task.name, task.title))
        if not texts or not task.name.strip():
            return f"a task is called {shown(task.name)}; expected text for name and title"
        if isinstance(task.instances, np.ma.MaskedArray) or isinstance(task.targets, np.ma.MaskedArray):
            return f"task {task.name!r}: instances and targets must not be masked arrays"
        instances = np.asarray(task.instances)
        if instances.dtype != bool or instances.shape != (count,):
            return (
                f"task {task.name!r}: instances are {instances.dtype} {list(instances.shape)}; expected a truth value "
                f"for each of the {count} instances of the frame set"
            )
        if wrong := _wrong_targets(made, np.asarray(task.targets), instances, task.outputs):
            return f"task {task.name!r}: {wrong}"
    names = [task.name for task in made.tasks]
    for name in names:
        if names.count(name) > 1:
            return f"two tasks are called {name!r}; expected names that differ"
    if made.by_position and made.kind == "multilabel":
        return "by_position goes with kind 'binary' or 'softmax'"
    if made.unseen is not None and (made.by_position or any(task.outputs for task in made.tasks)):
        return "unseen goes with outputs that mean the same in every task"
    if made.unseen is not None and not np.asarray(made.unseen.instances).any():
        return "unseen has no instance; leave it out"
    return None


def _wrong_targets(
    made: ScenarioTasks, targets: NDArray[Any], instances: NDArray[np.bool_], outputs: Any
) -> str | None:
    width = np.asarray(made.tasks[0].targets).shape[1:]
    if targets.ndim != 2 or len(targets) != len(instances) or targets.shape[1:] != width or not width[0]:
        return (
            f"targets have the shape {list(targets.shape)}; expected [{len(instances)}, outputs], with as many outputs "
            "in every task"
        )
    own = targets[instances]
    if targets.dtype.kind not in "biuf" or not np.isin(own, (0, 1)).all():
        return "targets hold something else than 0 and 1"
    if made.kind == "binary" and width != (1,):
        return f"{width[0]} outputs with kind 'binary', which has one"
    if made.kind == "softmax" and (width[0] < 2 or not (own.sum(1) == 1).all()):
        return "with kind 'softmax' an instance has exactly one of two or more classes"
    if not isinstance(outputs, Collection) or any(output not in range(width[0]) for output in outputs):
        given = list(outputs) if isinstance(outputs, Collection) else outputs
        return f"outputs {shown(given)}: expected positions below {width[0]}"
    return None


def _task(made: TaskInstances, frames: FrameSet) -> Task:
    targets, instances = np.asarray(made.targets, np.float32), np.asarray(made.instances)

    def subset(split: int) -> Subset:
        positions = np.flatnonzero(instances & (frames.split == split)).astype(np.int64)
        return Subset(positions, np.ascontiguousarray(targets[positions]))

    title, outputs = made.title or made.name, tuple(map(int, made.outputs))
    return Task(made.name, subset(TRAINING), subset(VALIDATION), subset(TEST), title, outputs)


def _check_task(task: Task, made: ScenarioTasks, frames: FrameSet) -> None:
    """Check that every split can be trained on or scored: a pair has both classes, other tasks a class that varies.

    If tasks may have a single class, every split must have an instance.
    """
    for split, subset in zip(SPLIT_NAMES, (task.train, task.validation, task.test), strict=True):
        if split == SPLIT_NAMES[VALIDATION] and not (frames.split == VALIDATION).any():
            continue
        if not len(subset.rows):
            raise empty_task(frames, task, split)
        if made.one_class_tasks or (np.ptp(subset.targets, axis=0) > 0).any():
            continue
        raise constant_task(frames, task, split, subset.rows, people_recur=made.people_recur)


def _positions_of(order: Sequence[str], tasks: Sequence[Task], where: str, domain: str = "") -> tuple[int, ...]:
    """Return the position of each named task.

    A name is that of a task or its title; in domain_il also the value of the domain alone, such as "A" for "ward A".

    Args:
        order: the names, one for each task.
        tasks: the tasks in their natural order.
        where: begin of an error message.
        domain: the word before the value of a domain, in the names of tasks.

    Raises:
        UsageError: a name that no task has, or several; or a task that is not named, or twice.
    """
    short = [task.name.removeprefix(f"{domain} ") if domain else task.title for task in tasks]
    known = listed(short)
    positions = []
    for name in order:
        fitting = []
        for number, task in enumerate(tasks):
            if name in (task.name, task.title, short[number]):
                fitting.append(number)
        if len(fitting) != 1:
            how_many = f"{len(fitting)} tasks are" if fitting else "no task is"
            meant = "" if fitting else nearest(name, short)
            raise UsageError(f"{where}: {how_many} called {shown(name)}{meant}; the tasks are {known}")
        positions.append(fitting[0])
    if sorted(positions) != list(range(len(tasks))):
        raise UsageError(f"{where}: expected each of the {len(tasks)} tasks once, which are {known}")
    return tuple(positions)


def _order(task_order: str | int | tuple[int, ...] | tuple[str, ...], tasks: Sequence[Task], domain: str) -> list[int]:
    count = len(tasks)
    if isinstance(task_order, int):
        return random.Random(task_order).sample(range(count), count)
    if isinstance(task_order, tuple):
        where = f"task_order {shown(list(task_order))}"
        names = [name for name in task_order if isinstance(name, str)]
        if names:
            return list(_positions_of(names, tasks, where, domain))
        if sorted(task_order) != list(range(count)):
            raise UsageError(f"{where}: this scenario has {count} tasks, so a permutation of 0..{count - 1} is needed")
        return [int(position) for position in task_order]
    if task_order != "sequential":
        raise UsageError(f"task_order {task_order!r} follows from an earlier run; replace it by a permutation first")
    return list(range(count))
