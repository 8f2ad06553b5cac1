"""Ledger: the training instances of all tasks by index, and how often each was replayed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from clops_sweep.learning.batches import Instances
from clops_sweep.learning.replay.division import groups_of


class Ledger:
    """The training instances of all tasks, numbered through in the order of training.

    Args:
        tasks: training instances of each task, in the order of training.

    Attributes:
        replayed: int64 [all instances], number of replays of each.
    """

    def __init__(self, tasks: Sequence[Instances]) -> None:
        self._all = Instances.union(tasks)
        sizes = torch.tensor([len(task.rows) for task in tasks])
        ends = sizes.cumsum(0)
        firsts = ends - sizes
        self._ranges = list(zip(firsts.tolist(), ends.tolist(), strict=True))
        self._ends = ends.to(self._all.rows.device)
        self.replayed = torch.zeros_like(self._all.rows)
        self._groups: dict[str, torch.Tensor] = {}

    def of_task(self, task: int, positions: torch.Tensor | None = None) -> torch.Tensor:
        """Return the indices of a task's training instances, all or those at some positions: int64 [n]."""
        first, end = self._ranges[task]
        if positions is None:
            return torch.arange(first, end, device=self._ends.device)
        return positions.add(first)

    def task_of(self, index: torch.Tensor) -> torch.Tensor:
        """Return the task of each instance, int64 of the shape of `index`."""
        tasks: torch.Tensor = torch.bucketize(index, self._ends, right=True)
        return tasks

    def at(self, index: torch.Tensor) -> Instances:
        """Return rows, targets and weights of instances, int64 [k]."""
        return self._all.at(index)

    def groups(self, division: str, index: torch.Tensor, *, by_position: bool) -> torch.Tensor:
        """Return the group of instances in a memory, int64 of the shape of `index`; see `division.groups_of`.

        The numbers of the groups keep their order, but not their values, if only some instances are numbered.
        """
        groups = self._groups.get(division)
        if groups is None:
            tasks = self.task_of(torch.arange(len(self.replayed), device=self._ends.device))
            groups = groups_of(division, tasks, self._all.targets, by_position=by_position)
            self._groups[division] = groups
        return groups[index]

    def count(self, index: torch.Tensor, which: torch.Tensor | None = None) -> None:
        """Count one replay for each occurrence of an instance.

        Args:
            index: int64 [k], the replayed instances.
            which: bool [k], mask of the occurrences to count; all by default.
        """
        if which is None and index.device.type == "cpu":
            np.add.at(self.replayed.numpy(), index.numpy(), 1)  # several times as fast for a few instances
            return
        times = torch.ones_like(index) if which is None else which.to(index.dtype)
        self.replayed.scatter_add_(0, index, times)

    def times_replayed(self, task: int) -> torch.Tensor:
        """Return the number of replays of each training instance of a task, stored now or not: int64 [n]."""
        first, end = self._ranges[task]
        return self.replayed[first:end].clone()
