"""FrameBatch: training instances of one run; Steps: the progress of that run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import torch

from clops_sweep.errors import UsageError
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Instances
from clops_sweep.learning.learners.passes import Passes
from clops_sweep.learning.strategies.base import Training


class Steps:
    """One run of a strategy: its training instances over all tasks, its passes and its random stream.

    Attributes:
        name: name of the strategy.
        passes: passes of the network.
        task: index of the current task; -1 before the first.
        rng: NumPy generator of the run's stream "loss", restarted with each epoch and at the end of each task.
        replayed: int64 [n], number of times that each instance was sampled from a memory.
        waiting: memories that store offers after the current step; None between steps.
    """

    def __init__(self, name: str, training: Training) -> None:
        self.name, self.training = name, training
        self.passes: Passes = training.learner.passes()
        self.device = training.learner.bank.device
        self.task = -1
        self.rng = streams.generator(training.seeds[0], "loss")
        self.waiting: list[Any] | None = None
        self._shares: dict[int, torch.Tensor] = {}
        self._sizes = [task.rows.shape[1] for task in training.tasks]
        self.replayed = torch.zeros(sum(self._sizes), dtype=torch.int64, device=self.device)

    @cached_property
    def instances(self) -> Instances:
        """The training instances of all tasks, [1, n]."""
        return Instances.union(self.training.tasks)

    @cached_property
    def task_of(self) -> torch.Tensor:
        """The index of each instance's task, int64 [n]."""
        sizes = torch.tensor(self._sizes, device=self.device)
        return torch.arange(len(sizes), device=self.device).repeat_interleave(sizes)

    def shares(self, count: int) -> torch.Tensor:
        """The weights of a mean: 1 / n for each of n instances, float32 [n]."""
        if count not in self._shares:
            self._shares[count] = torch.full((count,), 1 / count, device=self.device)
        return self._shares[count]

    def of_task(self, task: int) -> slice:
        """Return the instances of a task."""
        first = sum(self._sizes[:task])
        return slice(first, first + self._sizes[task])

    def draw(self, *counters: int) -> None:
        """Restart the run's stream at a position in the run."""
        self.rng = streams.generator(self.training.seeds[0], "loss", *counters)

    def error(self, sentence: str) -> UsageError:
        """Return an error that names the strategy."""
        return UsageError(f"strategy {self.name!r}: {sentence}")


class FrameBatch:
    """n training instances of a run, with the columns of a memory as attributes.

    Attributes:
        index: int64 [n], positions among the training instances of all tasks.
        columns: values that a memory keeps, [n, ...] each.
    """

    def __init__(self, steps: Steps, index: torch.Tensor, columns: Mapping[str, torch.Tensor] | None = None) -> None:
        self.steps, self.index, self.columns = steps, index, dict(columns or {})

    def __len__(self) -> int:
        """Return n."""
        return len(self.index)

    def __getattr__(self, name: str) -> Any:
        columns = self.__dict__.get("columns", {})
        if name in columns:
            return columns[name]
        raise AttributeError(
            f"a batch has x, y, weights, index, task{''.join(f', {it}' for it in columns)} and no {name!r}; a memory "
            "keeps what is offered by name, as in offer(batch, logits=...)"
        )

    @cached_property
    def x(self) -> torch.Tensor:
        """Frames, float32 [n, channels, samples]."""
        steps = self.steps
        rows = steps.instances.rows[0].index_select(0, self.index)
        return steps.training.learner.bank.gather(rows).view(len(self), *steps.passes.shape)

    @cached_property
    def y(self) -> torch.Tensor:
        """Targets, float32 [n, C]: one-hot with a softmax, else 0 or 1 for each label."""
        return self.steps.instances.targets[0].index_select(0, self.index)

    @cached_property
    def weights(self) -> torch.Tensor:
        """Weights of the losses, float32 [n]: ones without `class_weights`."""
        weights = self.steps.instances.weights
        ones = torch.ones(len(self), device=self.index.device)
        return ones if weights is None else weights[0].index_select(0, self.index)

    @cached_property
    def task(self) -> torch.Tensor:
        """Index of the task of each instance, int64 [n]."""
        return self.steps.task_of.index_select(0, self.index)
