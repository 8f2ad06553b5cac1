"""How a task looks: one colour, line style and hatch that it keeps in every panel and figure, whatever its turn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from .style import colour, dash, hatch


@dataclass(frozen=True)
class TaskStyle:
    """The looks of one task. `hatch` is that of its areas; "" for none."""

    colour: str
    dash: str | tuple[int, Sequence[float]]
    hatch: str


def natural_order(tasks: Iterable[str]) -> tuple[str, ...]:
    """Tasks by their names, numbers in them by value: 0-1, 2-3, 10-11; each once.

    Runs may train the same tasks in different orders, so no run's order can tell which colour is whose.
    """
    return tuple(sorted(set(tasks), key=_natural_key))


def task_styles(tasks: Iterable[str]) -> dict[str, TaskStyle]:
    """A style for each task by its place in the natural order: no two tasks of up to 24 look the same."""
    return {
        task: TaskStyle(colour(place), dash(place), hatch(place)) for place, task in enumerate(natural_order(tasks))
    }


def short_names(tasks: Sequence[str]) -> dict[str, str]:
    """Names without the words that all of them begin with: Lead I, Lead II become I, II."""
    words = [task.split(" ") for task in tasks]
    common = 0
    if len(set(tasks)) > 1:
        common = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False)))
    return {task: " ".join(parts[common:]) or task for task, parts in zip(tasks, words, strict=True)}


def _natural_key(task: str) -> list[tuple[int, str]]:
    # Digits and text alternate in what split returns, so numbers are only ever compared with numbers.
    parts = re.split(r"(\d+)", task)
    return [(int(part), "") if place % 2 else (0, part) for place, part in enumerate(parts)]
