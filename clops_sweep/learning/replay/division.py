"""Who stays when a memory of fixed size takes up more: shares of groups, and within a group the highest priorities."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.experiment.plugins.values import count_of
from clops_sweep.learning import streams
from clops_sweep.learning.replay.memory import LockstepMemory


def shares(sizes: NDArray[np.int64], capacity: int) -> NDArray[np.int64]:
    """How many instances of each group stay: all of a small group, and of the others equally many.

    That is min(size, level) for the highest level at which all fit; what is left over goes to the first groups that
    have more than the level, one each.

    Args:
        sizes: int64 [g].
        capacity: at least 0.

    Returns:
        int64 [g], which sum to min(capacity, sum of the sizes).
    """
    level = 0
    for most in np.unique(sizes):  # up to which all groups are filled
        if np.minimum(sizes, most).sum() > capacity:
            break
        level = int(most)
    found = np.minimum(sizes, level)
    larger = np.flatnonzero(sizes > level)
    if len(larger):
        more, rest = divmod(capacity - int(found.sum()), len(larger))
        found[larger] += more
        found[larger[:rest]] += 1
    return found


def kept(priorities: torch.Tensor, groups: torch.Tensor, capacity: int) -> torch.Tensor:
    """The instances that stay.

    With random priorities that are drawn once for each instance, what stays of a group is a uniform sample of all that
    was ever offered of it; with a single group that is what a reservoir holds (Vitter, 1985).

    Args:
        priorities: [S, m]; ties go to the lower place.
        groups: int64 [S, m], which group each is in: equally many of each in every run, or one group for all.
        capacity: how many may stay.

    Returns:
        int64 [S, min(m, capacity)], places, ascending.
    """
    return _highest(priorities, groups, lambda sizes: shares(sizes, capacity))


def highest_of_each(scores: torch.Tensor, groups: torch.Tensor, fraction: float) -> torch.Tensor:
    """Of each group the share with the highest scores, one at least; arguments and result as in `kept`."""
    return _highest(scores, groups, lambda sizes: np.array([count_of(fraction, size) for size in sizes]))


def _highest(
    scores: torch.Tensor, groups: torch.Tensor, counts: Callable[[NDArray[np.int64]], NDArray[np.int64]]
) -> torch.Tensor:
    """Of each group as many as `counts` says of the groups' sizes."""
    found = []
    for of_run, in_groups in zip(scores.cpu().numpy(), groups.cpu().numpy(), strict=True):
        _, numbers, sizes = np.unique(in_groups, return_inverse=True, return_counts=True)
        order = np.lexsort((np.arange(len(of_run)), -of_run, numbers))
        ranks = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[numbers[order]]
        found.append(np.sort(order[ranks < counts(sizes)[numbers[order]]]))
    return torch.from_numpy(np.stack(found)).to(scores.device)


def groups_of(division: str, memory: LockstepMemory, *, by_position: bool) -> torch.Tensor:
    """Which group each stored instance is in: int64 [S, m].

    Args:
        division: `reservoir`, one group; `task_balanced`, its task; `class_balanced`, its class, or its set of labels.
        memory: what is stored.
        by_position: whether classes of different tasks have the same targets.
    """
    if division == "reservoir":
        return torch.zeros_like(memory.instances)
    tasks = memory.task_of(memory.instances)
    if division == "task_balanced":
        return tasks
    targets = memory.looked_up(memory.instances).targets
    classes: torch.Tensor = torch.unique(targets.flatten(0, 1), dim=0, return_inverse=True)[1].view(tasks.shape)
    return classes + tasks * targets.shape[1] if by_position else classes


def random_priorities(seeds: Sequence[int], count: int, task: int) -> torch.Tensor:
    """Uniform on [0, 1), float64 [S, count], from the stream "memory" of each run and a task."""
    return torch.from_numpy(np.stack([streams.generator(seed, "memory", task).random(count) for seed in seeds]))
