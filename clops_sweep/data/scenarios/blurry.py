"""Blurry boundaries: a share of each task's training instances moves to its neighbours (Koh et al., 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.scenarios.tasks import Subset, Task

_STREAM: Final = 0xB1022
"""Separates these draws from others with the same seed."""

_ROUNDING: Final = 1e-9
"""Rounding guard: 0.29 * 100 is just below 29 in floating point."""


def with_blurry_boundaries(tasks: Sequence[Task], share: float, seed: int) -> tuple[Task, ...]:
    """Return the tasks with a share of their training instances moved to the tasks before and after them.

    Of the n training instances of a task, floor(share n) are drawn at random. In the order of the draw they go in turn
    to the previous and the next task; the first and the last task have one neighbour. Validation and test stay the
    same. In i-Blurry (Koh et al., 2022) a share of the instances of blurry classes goes to any other task; here all
    classes are blurry, and instances go to neighbours only.

    Args:
        tasks: two or more, in the order of training.
        share: in [0, 1).
        seed: seed of the draw.
    """
    parts: list[list[Subset]] = [[] for _ in tasks]
    for position, task in enumerate(tasks):
        count = len(task.train.rows)
        order = np.random.default_rng([_STREAM, seed, position]).permutation(count)
        moving = order[: int(share * count + _ROUNDING)]
        staying = np.setdiff1d(np.arange(count), moving)
        parts[position].append(_taken(task.train, staying))
        neighbours = [other for other in (position - 1, position + 1) if 0 <= other < len(tasks)]
        for turn, neighbour in enumerate(neighbours):
            parts[neighbour].append(_taken(task.train, moving[turn :: len(neighbours)]))
    return tuple(replace(task, train=_joined(own)) for task, own in zip(tasks, parts, strict=True))


def _taken(subset: Subset, chosen: NDArray[np.int64]) -> Subset:
    """Return the chosen instances of a subset."""
    return Subset(subset.rows[chosen], subset.targets[chosen])


def _joined(parts: Sequence[Subset]) -> Subset:
    """Join subsets, in the order of their rows."""
    rows = np.concatenate([part.rows for part in parts])
    targets = np.concatenate([part.targets for part in parts])
    order = np.argsort(rows, kind="stable")
    return Subset(rows[order], np.ascontiguousarray(targets[order]))
