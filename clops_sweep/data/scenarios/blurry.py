"""Blurry boundaries: a share of each task's training instances comes with its neighbours (Koh et al., 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from clops_sweep.data.scenarios.tasks import Subset, Task

_STREAM: Final = 0xB1022
"""Keeps the draws apart from others of the same seed."""


def with_blurry_boundaries(tasks: Sequence[Task], share: float, seed: int) -> tuple[Task, ...]:
    """Return the tasks with a share of their training instances moved to the tasks before and after them.

    Of the n training instances of a task, floor(share n) are drawn at random. In the order of the draw they go in turn
    to the task before and to the task after it; the first and the last task have one neighbour. Validation and test
    stay as they are. In i-Blurry (Koh et al., 2022) a share M of the instances of blurry classes goes to other tasks,
    whichever they are; here they come earlier or later by one task.

    Args:
        tasks: two or more, in the order of training.
        share: in [0, 1).
        seed: with the place of a task it decides what moves.
    """
    parts: list[list[Subset]] = [[] for _ in tasks]
    for place, task in enumerate(tasks):
        count = len(task.train.rows)
        drawn = np.random.default_rng([_STREAM, seed, place]).permutation(count)[: int(share * count)]
        neighbours = [it for it in (place - 1, place + 1) if 0 <= it < len(tasks)]
        stays = np.setdiff1d(np.arange(count), drawn)
        for to, chosen in [(place, stays), *((it, drawn[i :: len(neighbours)]) for i, it in enumerate(neighbours))]:
            parts[to].append(Subset(task.train.rows[chosen], task.train.targets[chosen]))
    return tuple(replace(task, train=_joined(own)) for task, own in zip(tasks, parts, strict=True))


def _joined(parts: Sequence[Subset]) -> Subset:
    """Some instances in the order of their rows."""
    rows, targets = (
        np.concatenate(of_parts) for of_parts in zip(*((it.rows, it.targets) for it in parts), strict=True)
    )
    order = np.argsort(rows, kind="stable")
    return Subset(rows[order], np.ascontiguousarray(targets[order]))
