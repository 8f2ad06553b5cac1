"""FrameBatch: training instances of one run; Steps: the progress of that run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any
from weakref import WeakSet

import numpy as np
import torch

from clops_sweep.errors import UsageError
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Instances
from clops_sweep.learning.learners.passes import Passes
from clops_sweep.learning.method.ledger import Ledger
from clops_sweep.learning.method.training import Training


class Steps:
    """One run of a strategy: its training instances over all tasks, its passes and its random stream.

    Attributes:
        name: name of the strategy.
        training: the run.
        device: device of the tensors.
        task: index of the current task; -1 before the first.
        ledger: the training instances of all tasks by index, and how often each was replayed.
        memories: the memories in use.
        waiting: memories that store offers after the current step; None between steps.
        in_classes: values in the strategy's classes before its set-up, by class and name.
        in_code: numbers in closures, globals and defaults of their code before the set-up, by name.
    """

    def __init__(self, name: str, training: Training) -> None:
        self.name = name
        self.training = training
        self.device = training.learner.bank.device
        self.task = -1
        self.ledger = Ledger(training.tasks)
        self.memories: WeakSet[Any] = WeakSet()
        self.waiting: list[Any] | None = None
        self.in_classes: dict[str, object] = {}
        self.in_code: dict[str, object] = {}
        self._counters: tuple[int, ...] = ()
        self._rng: np.random.Generator | None = None
        self._shares = dict[int, torch.Tensor]()

    @cached_property
    def passes(self) -> Passes:
        """Passes of the network."""
        return self.training.learner.passes()

    @property
    def rng(self) -> np.random.Generator:
        """NumPy generator of the run's stream "loss", restarted with each epoch and at the end of each task."""
        if self._rng is None:
            self._rng = streams.generator(self.training.seed, "loss", *self._counters)
        return self._rng

    def equal_shares(self, count: int) -> torch.Tensor:
        """Return 1 / n for each of n instances, float32 [n]; not for writing."""
        shares = self._shares.get(count)
        if shares is None:
            shares = torch.full((count,), 1 / count, device=self.device)
            self._shares[count] = shares
        return shares

    def draw(self, *counters: int) -> None:
        """Restart the run's stream at a position in the run."""
        self._counters = counters
        self._rng = None

    def seen(self, task: int) -> int:
        """Return a task that has begun.

        Raises:
            UsageError: it has not.
        """
        if not 0 <= task <= self.task:
            raise self.error(f"task {task} has not begun; expected one from 0 to {self.task}")
        return task

    def error(self, sentence: str) -> UsageError:
        """Return an error that names the strategy."""
        return UsageError(f"strategy {self.name!r}: {sentence}")


class FrameBatch:
    """n training instances of a run, with the columns of a memory as attributes.

    Attributes:
        index: int64 [n], positions among the training instances of all tasks.
        columns: values that a memory keeps, [n, ...] each.
    """

    def __init__(
        self,
        steps: Steps,
        index: torch.Tensor,
        columns: Mapping[str, torch.Tensor] | None = None,
        instances: Instances | None = None,
    ) -> None:
        self.steps = steps
        self.index = index
        self.columns = dict(columns or {})
        if instances is not None:
            self.instances = instances

    def __len__(self) -> int:
        """Return n."""
        return self.index.shape[0]

    def __getattr__(self, name: str) -> Any:
        columns = self.__dict__.get("columns", {})
        if name in columns:
            return columns[name]
        present = ", ".join(["x, y, weights, index, task", *columns])
        raise AttributeError(
            f"a batch has {present} and no {name!r}; a memory keeps what is offered by name, as in "
            "offer(batch, logits=...)"
        )

    @cached_property
    def x(self) -> torch.Tensor:
        """Frames, float32 [n, channels, samples]."""
        return self.steps.training.learner.bank.frames(self.instances.rows)

    @cached_property
    def y(self) -> torch.Tensor:
        """Targets, float32 [n, C]: one-hot with a softmax, else 0 or 1 for each label."""
        return self.instances.targets

    @cached_property
    def weights(self) -> torch.Tensor:
        """Weights of the losses, float32 [n]: ones without `class_weights`."""
        return self.instances.loss_weights

    @cached_property
    def task(self) -> torch.Tensor:
        """Index of the task of each instance, int64 [n]."""
        return self.steps.ledger.task_of(self.index)

    @cached_property
    def instances(self) -> Instances:
        """Rows, targets and weights, as a learner takes them."""
        return self.steps.ledger.at(self.index)

    def at(self, positions: torch.Tensor) -> FrameBatch:
        """Return the instances at some positions in the batch, int64 [k], with their columns."""
        columns = {name: values[positions] for name, values in self.columns.items()}
        return FrameBatch(self.steps, self.index[positions], columns)
