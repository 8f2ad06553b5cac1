"""Errors about tasks that cannot be scored in a part of the split, with a remedy that can help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.frames import VALIDATION, FrameSet
from clops_sweep.data.left_out import INTERVALS, RECORDINGS, Lost, of_all, of_domain, share
from clops_sweep.data.misspelt import hint
from clops_sweep.data.scenarios.tasks import Task
from clops_sweep.errors import UsageError, listed, several

_REMEDY = "leave it out of the data or pool it with another one, or, if the split is random, use another split_seed"

_MOST_LABELS: Final = 3
"""Most labels without a class that are named."""


class ScarceTask(UsageError):
    """A part of the split lacks a task or one of its classes: the reason is in the data, not in the settings."""


class UncoveredTask(ScarceTask):
    """A part of the split lacks a task or one of its classes, and another split_seed can help.

    Attributes:
        what: the sentence without the remedy, with the number of people who have the task or class.
    """

    def __init__(self, message: str, what: str = "") -> None:
        super().__init__(message)
        self.what = what


def empty_task(frames: FrameSet, task: Task, split: str) -> UsageError:
    """Return the error about a task without an instance in a part of the split."""
    named = f"{task.name}{_hint_on_domain(frames, task)}"
    sentence = f"{frames.name}: task {named} has no instance in the {split} split"
    people = _people(frames, _rows_of(task))
    if people < parts_of(frames):
        remedy = _remedy(frames, people, f"task {task.name}", "it")
        return ScarceTask(f"{sentence}; {remedy}{_how_to_pool_domains(frames, task)}")
    counted = _counted(frames, people)
    return UncoveredTask(f"{sentence}; {_REMEDY}", f"{sentence} ({counted} have this task)")


def constant_task(
    frames: FrameSet, task: Task, split: str, rows: NDArray[np.int64], *, people_recur: bool
) -> UsageError:
    """Return the error about a task of which all instances in a part of the split have the same classes.

    Args:
        frames: the data set.
        task: the task.
        split: name of the part.
        rows: instances of the task in this part.
        people_recur: whether a person may be in several parts.
    """
    there = _rows_of(task)
    missing = _missing(frames, there, rows)
    what = f"only one of its classes ({task.title})" if task.train.targets.shape[1] == 1 else _alike(frames, rows)
    if missing:
        what = f"no instance of {listed([frames.classes[code] for code in missing])}"
    named = f"{task.name}{_hint_on_domain(frames, task)}"
    sentence = f"{frames.name}: task {named} has {what} in the {split} split, so it cannot be scored"
    lacking = [code for code in range(len(frames.classes)) if not _has(frames, rows, code).any()]
    on_labels = _hint_on_labels(frames, lacking, there)
    targets = np.concatenate([task.train.targets, task.validation.targets, task.test.targets])
    if not (np.ptp(targets, axis=0) > 0).any():
        return ScarceTask(
            f"{sentence}; no split_seed helps, as the other parts of the split are alike{on_labels}; or leave the task "
            f"out of the data, or pool it with another one{_how_to_pool_domains(frames, task)}"
        )
    for code in missing if not people_recur else ():
        of_class = there[_has(frames, there, code)]
        people = _people(frames, of_class)
        if people < parts_of(frames):
            return ScarceTask(f"{sentence}; {_how_to_pool(frames, people, code)}{on_labels}")
    what = sentence
    if len(missing) == 1:
        of_class = there[_has(frames, there, missing[0])]
        counted = _counted(frames, _people(frames, of_class))
        what += f" ({counted} of this task have {frames.classes[missing[0]]})"
    return UncoveredTask(f"{sentence}; {_REMEDY}{on_labels}", f"{what}{on_labels}")


def _alike(frames: FrameSet, rows: NDArray[np.int64]) -> str:
    """Return which classes all of some instances have, where no class tells them apart."""
    there = [frames.classes[code] for code in range(len(frames.classes)) if _has(frames, rows, code).any()]
    if not there:
        return "only recordings without a class"
    if len(there) == 1:
        return f"recordings of one class only ({there[0]})"
    return f"only recordings of the same classes ({listed(there)})"


def _hint_on_labels(frames: FrameSet, lacking: Sequence[int], there: NDArray[np.int64]) -> str:
    """Return how recordings with labels of no class get one, where a task lacks classes; empty without such labels.

    If the task is a domain, these are its own recordings.

    Args:
        frames: the data set.
        lacking: the classes that the task lacks.
        there: instances of the task.
    """
    where, lost = _lost_by_task(frames, there)
    labelled = [
        omission for omission in lost if omission.reason.label and omission.reason.what in (RECORDINGS, INTERVALS)
    ]
    if not labelled or not lacking:
        return ""
    most = sorted(labelled, key=lambda omission: -omission.count)[:_MOST_LABELS]
    name = frames.classes[lacking[0]]
    counts = []
    for omission in most:
        counts.append(
            f"{share(omission.count, omission.total, omission.reason.what)} {omission.reason.clause(asks=False)}"
        )
    were = "was" if sum(omission.count for omission in most) == 1 else "were"
    return (
        f"; {listed(counts)} {were} left out of {where}: if that is {name}, map the label with "
        f"classes={{{most[0].reason.label!r}: {name!r}, ...}}"
    )


def _hint_on_domain(frames: FrameSet, task: Task) -> str:
    """Return the domain that is probably meant, if a task is one that looks misspelt; else an empty string."""
    for column, (codes, names) in frames.domains.items():
        of_task = np.unique(codes[_rows_of(task)])
        if len(of_task) != 1 or task.name != f"{column} {names[of_task[0]]}":
            continue
        pairs = np.unique(np.stack([codes, frames.patients], axis=1), axis=0)
        people = np.bincount(pairs[:, 0], minlength=len(names))
        return hint(names[of_task[0]], dict(zip(names, people.tolist(), strict=True)))
    return ""


def _lost_by_task(frames: FrameSet, there: NDArray[np.int64]) -> tuple[str, list[Lost]]:
    """Return the domain that a task is, and what it loses; of another task, the data set and what that loses.

    Args:
        frames: the data set.
        there: instances of the task.
    """
    for column, (codes, names) in frames.domains.items():
        of_task = np.unique(codes[there])
        is_known = any(column in omission.domains for omission in frames.left_out)
        if is_known and len(of_task) == 1 and (codes != of_task[0]).any():
            value = names[of_task[0]]
            return f"{column} {value}", of_domain(frames.left_out, column, value)
    return frames.name, of_all(frames.left_out)


def _remedy(frames: FrameSet, people: int, what: str, it: str) -> str:
    """Return what helps where fewer people have a class or task than a split has parts."""
    have = "has" if people == 1 else "have"
    return (
        f"only {_counted(frames, people)} {have} {what}, and each of the {parts_of(frames)} parts of a split needs "
        f"one, so no split_seed helps: leave {it} out of the data or pool it with another one"
    )


def _how_to_pool_domains(frames: FrameSet, task: Task) -> str:
    """Return how a task is pooled with another one, if it is a domain of declared data; else an empty string."""
    for column, (codes, names) in frames.domains.items():
        (of_task, *more) = np.unique(codes[_rows_of(task)]).tolist()
        if not more and task.name == f"{column} {names[of_task]}" and DATASETS.needs_file(frames.name):
            return f": give both one name in the column that domains= names as {column!r}"
    return ""


def _how_to_pool(frames: FrameSet, people: int, code: int) -> str:
    """Return the remedy for a class that too few people have; of declared data, with the key that pools classes."""
    name = frames.classes[code]
    remedy = _remedy(frames, people, name, "this class")
    if not DATASETS.needs_file(frames.name):
        return remedy
    others = [other for other in frames.classes if other != name]
    return f"{remedy}: classes={{{name!r}: {others[0]!r}, ...}} maps labels to one class" if others else remedy


def _counted(frames: FrameSet, people: int) -> str:
    """Return the number of people in words; of recordings, if people are unknown."""
    if not frames.people_known:
        return several(people, "recording")
    return "1 person" if people == 1 else f"{people:,} people"


def _rows_of(task: Task) -> NDArray[np.int64]:
    return np.concatenate([task.train.rows, task.validation.rows, task.test.rows])


def _people(frames: FrameSet, rows: NDArray[np.int64]) -> int:
    return len(np.unique(frames.patients[rows]))


def people_of_classes(frames: FrameSet) -> list[int]:
    """Return the number of people with each class; of recordings, if people are unknown."""
    rows = np.arange(len(frames))
    return [_people(frames, rows[_has(frames, rows, code)]) for code in range(len(frames.classes))]


def parts_of(frames: FrameSet) -> int:
    """Return the number of parts of the split: three, or two without a validation set."""
    return 3 if (frames.split == VALIDATION).any() else 2


def _missing(frames: FrameSet, of_task: NDArray[np.int64], rows: NDArray[np.int64]) -> Sequence[int]:
    """Return the classes of a task that some of its instances lack."""
    codes = range(len(frames.classes))
    return [code for code in codes if _has(frames, of_task, code).any() and not _has(frames, rows, code).any()]


def _has(frames: FrameSet, rows: NDArray[np.int64], code: int) -> NDArray[np.bool_]:
    """For some instances, whether each has a class, [n] bool."""
    labels = frames.labels[rows]
    return np.asarray(labels[:, code] > 0 if labels.ndim == 2 else labels == code)
