"""Eviction from a memory of fixed size: shares of groups, and within a group the highest priorities stay."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep import native
from clops_sweep.learning import streams


def shares(sizes: NDArray[np.int64], capacity: int) -> NDArray[np.int64]:
    """Return the number of instances to keep of each group: small groups whole, and equal shares of the others.

    A share is min(size, level) for the highest level at which all fit. The remainder goes to the first groups with more
    than `level` instances, one each.

    Args:
        sizes: int64 [g].
        capacity: at least 0.

    Returns:
        int64 [g], which sum to min(capacity, sum of the sizes).
    """
    level = 0  # to which all groups are filled
    for size in np.unique(sizes):
        if np.minimum(sizes, size).sum() > capacity:
            break
        level = int(size)
    shares = np.minimum(sizes, level)
    larger = np.flatnonzero(sizes > level)
    if len(larger):
        share, remainder = divmod(capacity - int(shares.sum()), len(larger))
        shares[larger] += share
        shares[larger[:remainder]] += 1
    return shares


def kept(priorities: torch.Tensor, groups: torch.Tensor, capacity: int) -> torch.Tensor:
    """Return the indices of the instances to keep.

    If each instance keeps one random priority, the kept part of a group is a uniform sample of everything ever offered
    from it. With a single group this is a reservoir (Vitter, 1985).

    Args:
        priorities: float64 [m]; ties go to the lower index, and nan is the lowest priority.
        groups: int64 [m], group of each instance.
        capacity: maximum number of instances to keep.

    Returns:
        int64 [min(m, capacity)], indices, ascending.
    """
    values = priorities.cpu().contiguous().numpy()
    numbers = groups.cpu().contiguous().numpy()
    indices = native.kept(values, numbers, capacity)
    if indices is None:
        indices = highest(values, numbers, capacity)
    return torch.from_numpy(indices).to(priorities.device)


def highest(priorities: NDArray[np.float64], groups: NDArray[np.int64], capacity: int) -> NDArray[np.int64]:
    """As `kept`, without the native kernels."""
    _, numbers, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.lexsort((np.arange(len(priorities)), -priorities, numbers))
    firsts = np.cumsum(sizes) - sizes
    ordered_groups = numbers[order]
    rank_in_group = np.arange(len(order)) - firsts[ordered_groups]
    share_of_group = shares(sizes, capacity)[ordered_groups]
    return np.sort(order[rank_in_group < share_of_group])


def groups_of(division: str, tasks: torch.Tensor, targets: torch.Tensor, *, by_position: bool) -> torch.Tensor:
    """Return the group of each instance: int64 [m].

    Args:
        division: `reservoir` and `score`, one group; `task_balanced`, its task; otherwise its class, or its set of
            labels.
        tasks: int64 [m], the task of each instance.
        targets: [m, C].
        by_position: whether classes of different tasks have the same targets.
    """
    if division in ("reservoir", "score"):
        return torch.zeros_like(tasks)
    if division == "task_balanced":
        return tasks
    classes = numbered(targets)
    return classes + tasks * len(targets) if by_position else classes


def numbered(rows: torch.Tensor) -> torch.Tensor:
    """Return the number of each row among the distinct rows in lexicographic order: [m, C] to int64 [m].

    As `torch.unique(rows, dim=0, return_inverse=True)`, which takes ten times as long for the rows of a memory.
    """
    values = rows.cpu().numpy()
    order = np.lexsort(values.T[::-1])
    ranked = values[order]
    ranks = np.zeros(len(values), np.int64)
    ranks[1:] = (ranked[1:] != ranked[:-1]).any(axis=1).cumsum()
    numbers = np.empty_like(ranks)
    numbers[order] = ranks
    return torch.from_numpy(numbers).to(rows.device)


def herding(features: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """Return priorities, float64 [n]: minus the rank in the herding order of the class (Rebuffi et al., 2017).

    In each class, instance k minimises `|mu - (f_k + sum of the features before) / k|`, where mu is the mean of the
    class; ties go to the lowest index.

    Args:
        features: [n, F].
        classes: int64 [n].
    """
    priorities = torch.zeros(len(features), dtype=torch.float64, device=features.device)
    for label in classes.unique():
        (instances,) = (classes == label).nonzero(as_tuple=True)
        f = features[instances].to(torch.float64)
        mu = f.mean(0)
        chosen_sum = torch.zeros_like(mu)
        is_chosen = torch.zeros(len(instances), dtype=torch.bool, device=f.device)
        for rank in range(len(instances)):
            mean_with_each = (f + chosen_sum) / (rank + 1)
            distances = (mu - mean_with_each).square().sum(1)
            nearest = distances.masked_fill(is_chosen, torch.inf).argmin()
            is_chosen[nearest] = True
            chosen_sum = chosen_sum + f[nearest]
            priorities[instances[nearest]] = -float(rank)
    return priorities


def random_priorities(seed: int, count: int, task: int) -> torch.Tensor:
    """Return uniform draws on [0, 1), float64 [count], from the stream "memory" of the run and a task."""
    return torch.from_numpy(streams.generator(seed, "memory", task).random(count))
