"""Subject-incremental scenario: the same classes in every task, of other people."""

from __future__ import annotations

import random
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.frames import SPLIT_NAMES, TEST, TRAINING, UNSEEN, VALIDATION, FrameSet
from clops_sweep.data.scenarios.instances import class_targets, kind_of_labels, reference_lead_of
from clops_sweep.data.scenarios.tasks import ScenarioTasks, TaskInstances
from clops_sweep.errors import UsageError

GROUPS = 10
"""Number of groups of people if their size is not given."""


def subject_il(
    frames: FrameSet,
    *,
    split_within: Literal["people", "time"] = "people",
    people_per_task: int | None = None,
    people_order: int | None = None,
) -> ScenarioTasks:
    """One task per group of people, with one output per class.

    With `split_within` "people", the training people are grouped, and every task is evaluated on all validation and
    test people of the data set's split: for every j, R[i][j] is the score on people who are never trained on. With
    "time", the training and validation people are grouped, each with the three parts of their recordings by
    `split_by_time`: R[i][j] is the score on later parts of the recordings of group j. Test people are in no task, and
    are evaluated separately.

    N people make ceil(N / people_per_task) groups, whose sizes differ by at most one. A group may have a single class.

    Args:
        frames: opened with the same `split_within`.
        split_within: what is held out: other people, or the end of each person's recordings.
        people_per_task: the largest number of people in a group; by default ceil(N / 10).
        people_order: seed of a shuffle of the people before they are grouped. By default they are in the order of
            enrolment: of their first date, if the data have dates, then of their first recording in the data.

    Raises:
        UsageError: data that name no people, frames that were opened otherwise, more people per task than there are, or
            a class that is evaluated but never trained on.
    """
    if not frames.people_known:
        raise UsageError(f"subject_il: {frames.name!r} names no people, who are the tasks; expected data with patients")
    by_time = split_within == "time"
    chosen = reference_lead_of(frames)
    if by_time != bool((frames.split == UNSEEN).any()):
        raise UsageError(
            f"subject_il: split_within = {split_within!r}, and frames of {frames.name!r} were opened otherwise; "
            f"expected open_frames({frames.name!r}, split_within={split_within!r})"
        )
    parts = (TRAINING, VALIDATION, TEST) if by_time else (TRAINING,)
    in_groups = chosen & np.isin(frames.split, parts)
    people = _by_enrolment(frames, in_groups)
    if people_order is not None:
        shuffle = random.Random(people_order)
        people = people[shuffle.sample(range(len(people)), len(people))]
    size = -(-len(people) // GROUPS) if people_per_task is None else people_per_task
    if size > len(people):
        raise UsageError(
            f"subject_il: people_per_task = {size}, and {frames.name!r} has {_people(len(people))} to group; expected "
            f"at most {len(people)}"
        )
    _require_trained(frames, chosen)
    targets = class_targets(frames)
    if by_time:
        evaluated_in_all = np.zeros(len(frames), bool)
        unseen = TaskInstances("unseen", chosen & (frames.split == UNSEEN), targets)
    else:
        evaluated_in_all = chosen & np.isin(frames.split, (VALIDATION, TEST))
        unseen = None
    groups = np.array_split(people, -(-len(people) // size))
    tasks = []
    for number, group in enumerate(groups, start=1):
        instances = evaluated_in_all | (in_groups & np.isin(frames.patients, group))
        title = f"Group {number} ({_people(len(group))})"
        tasks.append(TaskInstances(f"Group {number}", instances, targets, title))
    return ScenarioTasks(kind_of_labels(frames), tasks, people_recur=by_time, one_class_tasks=True, unseen=unseen)


def _people(count: int) -> str:
    return "1 person" if count == 1 else f"{count} people"


def _by_enrolment(frames: FrameSet, chosen: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return the people of some instances [n] in order of enrolment."""
    rows = np.flatnonzero(chosen)
    keys = [frames.patients, frames.recordings, frames.times]
    order = rows[np.lexsort([key[rows] for key in keys if key is not None])]
    _, first = np.unique(frames.patients[order], return_index=True)
    return frames.patients[order[np.sort(first)]]


def _require_trained(frames: FrameSet, chosen: NDArray[np.bool_]) -> None:
    """Check that every evaluated class is trained on."""
    identity = np.eye(len(frames.classes), dtype=bool)
    has_class = frames.labels if frames.multi_label else identity[frames.labels]
    trained = has_class[chosen & (frames.split == TRAINING)].any(0)
    for split, name in enumerate((*SPLIT_NAMES, "test")):
        evaluated = has_class[chosen & (frames.split == split)].any(0)
        for code in np.flatnonzero(evaluated & ~trained):
            raise UsageError(
                f"subject_il: class {frames.classes[code]!r} of {frames.name!r} is in {name} and not in training; "
                "expected another split_seed, or data without it"
            )
