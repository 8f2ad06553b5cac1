"""A memory: at most so many instances of all tasks so far, with whatever belongs to each; it may lose them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from clops_sweep.learning.batches import Instances


class LockstepMemory:
    """Stored instances of S runs, equally many each, and tensors that have a row for each of them.

    Beside `Buffer`, whose portions only ever grow: instances are added, replaced, and lost.

    Args:
        tasks: each task's training instances, in the order of training.

    Attributes:
        instances: int64 [S, m], the stored ones, counted over the training instances of all tasks.
        carried: by name [S, m, ...], what belongs to them: logits, gradients, anything.
    """

    def __init__(self, tasks: Sequence[Instances]) -> None:
        self._all = Instances.union(tasks)
        self._sizes = [task.rows.shape[1] for task in tasks]
        rows = self._all.rows
        self.instances = torch.zeros(len(rows), 0, dtype=torch.int64, device=rows.device)
        self.carried: dict[str, torch.Tensor] = {}
        self._replayed = torch.zeros_like(rows)

    def __len__(self) -> int:
        """m, the same for every run."""
        return self.instances.shape[1]

    def of_task(self, task: int, positions: torch.Tensor | None = None) -> torch.Tensor:
        """A task's training instances as `instances` counts them: int64 [S, n], all or those at some positions."""
        part = self._of(task)
        if positions is None:
            return torch.arange(part.start, part.stop, device=self.instances.device).repeat(len(self.instances), 1)
        return positions.add(part.start)

    def task_of(self, instances: torch.Tensor) -> torch.Tensor:
        """The position of each instance's task, int64 of any shape."""
        ends = torch.tensor(self._sizes, device=instances.device).cumsum(0)
        found: torch.Tensor = torch.bucketize(instances, ends, right=True)
        return found

    def add(self, instances: torch.Tensor, **carried: torch.Tensor) -> None:
        """Stores others behind those that are there.

        Args:
            instances: int64 [S, k].
            carried: [S, k, ...], with the names of what is carried already, if anything is.
        """
        if len(self) or self.carried:
            carried = {name: torch.cat([values, carried[name]], dim=1) for name, values in self.carried.items()}
        self.carried = carried
        self.instances = torch.cat([self.instances, instances], dim=1)

    def keep(self, places: torch.Tensor) -> None:
        """Loses all but the instances at some places, int64 [S, k]."""
        self.instances = self.instances.gather(1, places)
        self.carried = {name: self._at(values, places) for name, values in self.carried.items()}

    def replace(self, places: torch.Tensor, instances: torch.Tensor, **carried: torch.Tensor) -> None:
        """Puts others, int64 [S, k], in the places of some, int64 [S, k], that are all different in a run.

        Args:
            places: where.
            instances: what.
            carried: [S, k, ...], with the names of what is carried already.
        """
        self.instances.scatter_(1, places, instances)
        for name, values in self.carried.items():
            values[torch.arange(len(places), device=places.device)[:, None], places] = carried[name]

    def carried_at(self, name: str, places: torch.Tensor) -> torch.Tensor:
        """What is carried under a name by the instances at some places: int64 [S, k] to [S, k, ...]."""
        return self._at(self.carried[name], places)

    def looked_up(self, instances: torch.Tensor) -> Instances:
        """Rows and targets of some instances, int64 [S, k], stored or not."""
        return self._all.at(instances)

    def replay(self, places: torch.Tensor) -> Instances:
        """The instances at some places, int64 [S, k], each counted as replayed once more for every time it is there."""
        instances = self.instances.gather(1, places)
        self.count(instances)
        return self.looked_up(instances)

    def count(self, instances: torch.Tensor, which: torch.Tensor | None = None) -> None:
        """Counts some instances, int64 [S, k], as replayed once more for every time they are there.

        Args:
            instances: which were trained on.
            which: bool [S, k], those to be counted; all if not given.
        """
        times = torch.ones_like(instances) if which is None else which.to(instances.dtype)
        self._replayed.scatter_add_(1, instances, times)

    def stored(self, task: int) -> torch.Tensor:
        """Which of a task's training instances are stored now: bool [S, n]."""
        there = torch.zeros_like(self._replayed, dtype=torch.bool).scatter_(1, self.instances, True)
        return there[:, self._of(task)]

    def times_replayed(self, task: int) -> torch.Tensor:
        """How often each of a task's training instances has been replayed, stored now or not: int64 [S, n]."""
        return self._replayed[:, self._of(task)].clone()

    def state(self) -> dict[str, Any]:
        """What a checkpoint needs."""
        return {"instances": self.instances, "carried": dict(self.carried), "replayed": self._replayed}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes up a state that `state` returned."""
        self.instances, self.carried = state["instances"].clone(), dict(state["carried"])
        self._replayed.copy_(state["replayed"])

    def _of(self, task: int) -> slice:
        first = sum(self._sizes[:task])
        return slice(first, first + self._sizes[task])

    @staticmethod
    def _at(values: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = values[torch.arange(len(places), device=places.device)[:, None], places]
        return found
