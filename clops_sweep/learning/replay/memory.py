"""InstanceMemory: stored instances of all tasks so far, and tensors with a row for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from clops_sweep.learning.batches import Instances


class InstanceMemory:
    """Stored instances, and tensors with a row for each of them.

    Args:
        tasks: training instances of each task, in the order of training.

    Attributes:
        instances: int64 [m], indices of the stored ones in the concatenated training instances of all tasks.
        carried: tensors [m, ...] by name, with a row for each stored instance, such as logits or gradients.
    """

    def __init__(self, tasks: Sequence[Instances]) -> None:
        self._all = Instances.union(tasks)
        self._sizes = [len(task.rows) for task in tasks]
        rows = self._all.rows
        self.instances = torch.zeros(0, dtype=torch.int64, device=rows.device)
        self.carried: dict[str, torch.Tensor] = {}
        self._replayed = torch.zeros_like(rows)

    def __len__(self) -> int:
        """Return m."""
        return len(self.instances)

    def of_task(self, task: int, positions: torch.Tensor | None = None) -> torch.Tensor:
        """Return the indices, as in `instances`, of a task's training instances, all or a selection: int64 [n]."""
        part = self._of(task)
        if positions is None:
            return torch.arange(part.start, part.stop, device=self.instances.device)
        return positions.add(part.start)

    def task_of(self, instances: torch.Tensor) -> torch.Tensor:
        """Return the index of each instance's task, int64 of any shape."""
        ends = torch.tensor(self._sizes, device=instances.device).cumsum(0)
        found: torch.Tensor = torch.bucketize(instances, ends, right=True)
        return found

    def places_by_task(self) -> dict[int, torch.Tensor]:
        """Return the places of each task's stored instances, int64 [m], by task."""
        tasks = self.task_of(self.instances)
        return {task: (tasks == task).nonzero()[:, 0] for task in tasks.unique().tolist()}

    def add(self, instances: torch.Tensor, **carried: torch.Tensor) -> None:
        """Append instances.

        Args:
            instances: int64 [k].
            carried: [k, ...], under the names already in `carried`, if any.
        """
        if len(self) or self.carried:
            carried = {name: torch.cat([values, carried[name]]) for name, values in self.carried.items()}
        self.carried = carried
        self.instances = torch.cat([self.instances, instances])

    def keep(self, places: torch.Tensor) -> None:
        """Evict all instances except those at indices int64 [k] into the memory."""
        self.instances = self.instances[places]
        self.carried = {name: self.carried_at(name, places) for name in self.carried}

    def replace(self, places: torch.Tensor, instances: torch.Tensor, **carried: torch.Tensor) -> None:
        """Replace stored instances.

        Args:
            places: int64 [k], indices into the memory, all different.
            instances: int64 [k], the new instances.
            carried: [k, ...], under the names already in `carried`.
        """
        self.instances[places] = instances
        for name, values in self.carried.items():
            values[places] = carried[name]

    def carried_at(self, name: str, places: torch.Tensor) -> torch.Tensor:
        """Return the rows of a carried tensor at indices int64 [k]: [k, ...]."""
        return self.carried[name][places]

    def looked_up(self, instances: torch.Tensor) -> Instances:
        """Return rows and targets of instances, int64 [k], stored or not."""
        return self._all.at(instances)

    def replay(self, places: torch.Tensor) -> Instances:
        """Return the instances at indices int64 [k], and count one replay for each occurrence."""
        instances = self.instances[places]
        self.count(instances)
        return self.looked_up(instances)

    def count(self, instances: torch.Tensor, which: torch.Tensor | None = None) -> None:
        """Count one replay for each occurrence of instances.

        Args:
            instances: int64 [k], the replayed instances.
            which: bool [k], mask of the occurrences to count; all by default.
        """
        times = torch.ones_like(instances) if which is None else which.to(instances.dtype)
        self._replayed.scatter_add_(0, instances, times)

    def stored(self, task: int) -> torch.Tensor:
        """Return the mask of a task's training instances that are stored now: bool [n]."""
        there = torch.zeros_like(self._replayed, dtype=torch.bool).scatter_(0, self.instances, True)
        return there[self._of(task)]

    def times_replayed(self, task: int) -> torch.Tensor:
        """Return the number of replays of each training instance of a task, stored now or not: int64 [n]."""
        return self._replayed[self._of(task)].clone()

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {"instances": self.instances, "carried": dict(self.carried), "replayed": self._replayed}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state from `state`."""
        self.instances, self.carried = state["instances"].clone(), dict(state["carried"])
        self._replayed.copy_(state["replayed"])

    def _of(self, task: int) -> slice:
        first = sum(self._sizes[:task])
        return slice(first, first + self._sizes[task])
