"""Styles of tasks: a task has the same colour, line style and hatch in every figure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from .style import colour, dash, hatch


@dataclass(frozen=True)
class TaskStyle:
    """Style of one task. `hatch` is the hatch of its areas; "" for none."""

    colour: str
    dash: str | tuple[int, Sequence[float]]
    hatch: str


def natural_order(tasks: Iterable[str]) -> tuple[str, ...]:
    """Return distinct tasks in natural order, numbers by value: 0-1, 2-3, 10-11.

    Runs may train the same tasks in different orders, so colours cannot depend on the order of a run.
    """
    return tuple(sorted(set(tasks), key=_natural_key))


def task_styles(tasks: Iterable[str]) -> dict[str, TaskStyle]:
    """Return a style for each task by natural order; up to 24 tasks have distinct styles."""
    return {
        task: TaskStyle(colour(position), dash(position), hatch(position))
        for position, task in enumerate(natural_order(tasks))
    }


def short_names(tasks: Sequence[str]) -> dict[str, str]:
    """Return names without their common leading words: Lead I, Lead II become I, II."""
    words = [task.split(" ") for task in tasks]
    common = 0
    if len(set(tasks)) > 1:
        common = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False)))
    return {task: " ".join(parts[common:]) or task for task, parts in zip(tasks, words, strict=True)}


def _natural_key(task: str) -> list[tuple[int, str]]:
    # split returns digits and text alternately, so numbers are only compared with numbers.
    parts = re.split(r"(\d+)", task)
    return [(int(part), "") if position % 2 else (0, part) for position, part in enumerate(parts)]
