"""From a FrameSet to the sequence of tasks that a network is trained on."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS, TERMS, DatasetInfo, ScenarioName
from clops_sweep.data.frames import SPLIT_NAMES, TEST, TRAINING, VALIDATION, FrameSet
from clops_sweep.errors import BadInput

LossKind = Literal["binary", "softmax", "multilabel"]


@dataclass(frozen=True, eq=False)
class Subset:
    """m instances: `rows` [m] int64, positions in FrameSet.frames; `targets` [m, outputs] float32."""

    rows: NDArray[np.int64]
    targets: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Task:
    """One task under the name the paper gives it, and the names of its classes as `title`."""

    name: str
    train: Subset
    validation: Subset
    test: Subset
    title: str = ""


@dataclass(frozen=True, eq=False)
class Scenario:
    """Tasks in the order they are trained on, all for one head of `outputs` outputs.

    `kind` says what a target is: binary [m, 1] in {0, 1}; softmax [m, C] one-hot; multilabel [m, C] multi-hot.
    """

    name: str
    kind: LossKind
    outputs: int
    tasks: tuple[Task, ...]


def build_scenario(
    frames: FrameSet, scenario: ScenarioName, task_order: str | int | tuple[int, ...] = "sequential"
) -> Scenario:
    """The tasks of a scenario on `frames`, in the order that `task_order` asks for.

    class_il: pairs of consecutive classes, a binary target (position in the pair). time_il: terms by date. domain_il:
    one task per lead, one sigmoid per class. An integer task_order s shuffles as the released code does:
    random.Random(s).sample(range(N), N).

    Raises:
        BadInput: the data set lacks what the scenario needs, a task lacks a class in a split, or task_order is not a
            permutation of the tasks.
    """
    kind, outputs, tasks = _BUILDERS[scenario](frames)
    for task in tasks:
        _check_task(task, kind, frames)
    order = _order(task_order, len(tasks))
    return Scenario(scenario, kind, outputs, tuple(tasks[position] for position in order))


def _class_il(frames: FrameSet) -> tuple[LossKind, int, list[Task]]:
    if frames.multi_label:
        raise BadInput(f"class_il needs one label per instance, but instances of {frames.name!r} carry several")
    if len(frames.classes) < 2 or len(frames.classes) % 2:
        raise BadInput(
            f"class_il needs an even number of classes to pair them, but {frames.name!r} has {len(frames.classes)}"
        )
    chosen = reference_lead_of(frames)
    tasks = []
    for first in range(0, len(frames.classes), 2):
        rows = chosen & (frames.labels // 2 == first // 2)
        targets = (frames.labels % 2).astype(np.float32)[:, None]
        title = f"{frames.classes[first]} / {frames.classes[first + 1]}"
        tasks.append(_task(f"{first}-{first + 1}", title, rows, targets, frames))
    return "binary", 1, tasks


def _time_il(frames: FrameSet) -> tuple[LossKind, int, list[Task]]:
    if frames.times is None:
        raise BadInput(f"time_il needs dates of acquisition, which {frames.name!r} does not have")
    chosen = np.ones(len(frames), bool) if _info(frames).time_il_all_leads else reference_lead_of(frames)
    term = term_of(frames.times, chosen, _info(frames).terms)
    targets = _class_targets(frames)
    tasks = [
        _task(f"Term {number + 1}", f"Term {number + 1}", chosen & (term == number), targets, frames)
        for number in range(TERMS)
    ]
    return "multilabel" if frames.multi_label else "softmax", len(frames.classes), tasks


_LEAD_ORDER = ("I", "II", "III", "AVL", "AVR", "AVF", "V1", "V2", "V3", "V4", "V5", "V6")
"""The order of the tasks in the released code, which is not that of the recordings."""


def _domain_il(frames: FrameSet) -> tuple[LossKind, int, list[Task]]:
    present = np.flatnonzero(np.bincount(frames.leads, minlength=len(frames.lead_names)))
    if len(present) < 2 or _info(frames).simultaneous_leads == 1:
        raise BadInput(f"domain_il needs recordings of several leads, which {frames.name!r} does not have")
    targets = _class_targets(frames)
    tasks = []
    place = {name: index for index, name in enumerate(_LEAD_ORDER)}
    for lead in sorted(present, key=lambda lead: place.get(frames.lead_names[lead].upper(), len(place))):
        name = f"Lead {frames.lead_names[lead]}"
        tasks.append(_task(name, name, frames.leads == lead, targets, frames))
    return "multilabel", len(frames.classes), tasks


_Builder = Callable[[FrameSet], tuple[LossKind, int, list[Task]]]
_BUILDERS: Mapping[str, _Builder] = {"class_il": _class_il, "time_il": _time_il, "domain_il": _domain_il}


def term_of(times: NDArray[np.datetime64], chosen: NDArray[np.bool_], ends: tuple[str, ...]) -> NDArray[np.int64]:
    """The term 0, 1, 2 of every instance [n]; 3 where it lies after the last end.

    `ends` are ISO dates, each the first day after its term. Without them the terms are terciles of the distinct
    times of the `chosen` instances, so that instances of one recording never part.
    """
    if not ends:
        distinct = np.unique(times[chosen])
        thirds = distinct[[len(distinct) // 3, 2 * len(distinct) // 3]]
        return np.searchsorted(thirds, times, side="right").astype(np.int64)
    boundaries = np.array(ends, dtype=times.dtype)
    return np.searchsorted(boundaries, times, side="right").astype(np.int64)


def _info(frames: FrameSet) -> DatasetInfo:
    return frames.info or DATASETS[frames.name]


def reference_lead_of(frames: FrameSet) -> NDArray[np.bool_]:
    """The one lead that stands for a recording of many; all instances where a recording gives only one lead."""
    lead = _info(frames).reference_lead
    if lead is None or frames.members is not None:
        return np.ones(len(frames), bool)
    return np.asarray(frames.leads == frames.lead_names.index(lead))


def _class_targets(frames: FrameSet) -> NDArray[np.float32]:
    if frames.multi_label:
        return np.asarray(frames.labels, np.float32)
    return np.asarray(np.eye(len(frames.classes))[frames.labels], np.float32)


def _task(name: str, title: str, rows: NDArray[np.bool_], targets: NDArray[np.float32], frames: FrameSet) -> Task:
    def subset(split: int) -> Subset:
        positions = np.flatnonzero(rows & (frames.split == split)).astype(np.int64)
        return Subset(positions, np.ascontiguousarray(targets[positions]))

    return Task(name, subset(TRAINING), subset(VALIDATION), subset(TEST), title)


def _check_task(task: Task, kind: LossKind, frames: FrameSet) -> None:
    """Every split can be learned from or scored: a pair has both classes, another task at least one that varies."""
    for split, subset in zip(SPLIT_NAMES, (task.train, task.validation, task.test), strict=True):
        if not len(subset.rows):
            raise BadInput(
                f"{frames.name}: task {task.name} has no instance in the {split} split; "
                "use another split_seed or more recordings"
            )
        if (np.ptp(subset.targets, axis=0) > 0).any():
            continue
        what = f"only one of its classes ({task.title})" if kind == "binary" else "no class that varies"
        raise BadInput(
            f"{frames.name}: task {task.name} has {what} in the {split} split, so it cannot be scored; "
            "use another split_seed or more recordings"
        )


def _order(task_order: str | int | tuple[int, ...], count: int) -> list[int]:
    if isinstance(task_order, int):
        return random.Random(task_order).sample(range(count), count)
    if isinstance(task_order, tuple):
        if sorted(task_order) != list(range(count)):
            raise BadInput(
                f"task_order {list(task_order)}: this scenario has {count} tasks, so a permutation of "
                f"0..{count - 1} is needed"
            )
        return list(task_order)
    if task_order != "sequential":
        raise BadInput(f"task_order {task_order!r} follows from an earlier run; replace it by a permutation first")
    return list(range(count))
