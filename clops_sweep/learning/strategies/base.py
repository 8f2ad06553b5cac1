"""What a strategy decides, and everything it may look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import torch

from clops_sweep.experiment.config import RunConfig
from clops_sweep.learning.batches import Instances, Replay
from clops_sweep.learning.learners.learner import Learner


@dataclass(frozen=True)
class Training:
    """The runs that a strategy works for.

    Attributes:
        configs: one a run. They differ in nothing but the strategy's `lockstep.free_fields`.
        learner: their networks.
        tasks: each task's training instances, in the order of training; the same rows for every run.
        by_position: whether an output means another class in each task; see `ScenarioTasks`.
        pretraining: of how many tasks, or batches of an online stream, methods with a closed-form head train features.
    """

    configs: Sequence[RunConfig]
    learner: Learner
    tasks: Sequence[Instances]
    by_position: bool = False
    pretraining: int = 1

    @property
    def config(self) -> RunConfig:
        """What the runs have in common; not to be asked for their seeds."""
        return self.configs[0]

    @property
    def seeds(self) -> list[int]:
        """One a run."""
        return [config.seed for config in self.configs]

    @cached_property
    def groups(self) -> list[tuple[RunConfig, list[int]]]:
        """Runs that differ in nothing but the seed: their common config, and their places in the lockstep."""
        found: dict[RunConfig, list[int]] = {}
        for run, config in enumerate(self.configs):
            found.setdefault(config.replace(seed=0), []).append(run)
        return list(found.items())


@dataclass(frozen=True)
class InstanceRecord:
    """What a run has to say about the training instances of a task that has ended; nan or zero where it says nothing.

    Attributes:
        s: float64 [S, n], area under beta's trajectory.
        beta: float32 [S, n], final value.
        stored: bool [S, n].
        times_replayed: int64 [S, n].
        trajectories: float32 [S, n, tau], beta after each epoch; tau is 0 where there is no beta.
    """

    s: torch.Tensor
    beta: torch.Tensor
    stored: torch.Tensor
    times_replayed: torch.Tensor
    trajectories: torch.Tensor

    def split(self, sizes: Sequence[int]) -> list[InstanceRecord]:
        """The record of instances that follow one another, cut into pieces of the given sizes."""
        parts = zip(*(values.split(list(sizes), dim=1) for values in vars(self).values()), strict=True)
        return [InstanceRecord(*part) for part in parts]


Stores = Literal["raw", "features", "statistics", "nothing"]
"""What a method keeps of past data: their signals, features of them, statistics computed from them, or nothing."""


@dataclass(frozen=True)
class MemoryUse:
    """What the replay memory of each run holds: one number a run.

    Attributes:
        instances: stored instances; one that is stored twice counts twice.
        instance_bytes: bytes of one of them.
        other_bytes: bytes of what is kept of past data beside instances.
    """

    instances: Sequence[int]
    instance_bytes: Sequence[int]
    other_bytes: Sequence[int] | None = None


class LockstepStrategy:
    """Plain training on one task after another; other strategies change one or more of its decisions.

    Args:
        training: the runs.
    """

    joint: ClassVar[bool] = False
    """Whether all tasks are trained on at once, as a single task of N tau epochs."""

    needs_head: ClassVar[Literal["read", "write"] | None] = None
    """Whether the network must end in an `nn.Linear`, whose input the strategy reads, or whose weights it writes."""

    stores: ClassVar[Stores | None] = None
    """What it keeps of past data. None derives it: "raw" where it has stored instances, else "nothing"."""

    def __init__(self, training: Training) -> None:
        self.training = training

    def come_to(self, task: int, *, end: bool) -> None:
        """Called before `begin_task`, and at the end of a task before `end_task`."""

    def begin_task(self, task: int) -> None:
        """Called before the first epoch on a task."""

    def replay(self, task: int, epoch: int) -> Replay | None:
        """The instances to train on beside the current task's in an epoch (from 0)."""
        del task, epoch
        return None

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """One epoch on a task's instances and the replayed ones, in the given order (see `Epoch.load`)."""
        del epoch
        training = self.training
        training.learner.train_epoch(training.tasks[task], replay, order, training.config.batch_size, dropout_keys)

    def end_epoch(self) -> None:
        """Called after the last batch of an epoch."""

    def end_training(self, task: int) -> None:
        """Called after the last epoch on a task, before the networks are evaluated.

        With early stopping only then it is known which epoch was the last.
        """

    def end_task(self, task: int) -> None:
        """Called after the last epoch on a task, when the networks have been evaluated on the validation set."""

    def record(self, task: int) -> InstanceRecord:
        """What is known about the instances of a task that has ended."""
        rows = self.training.tasks[task].rows
        unknown = torch.full(rows.shape, torch.nan, device=rows.device)
        return InstanceRecord(
            s=unknown.to(torch.float64),
            beta=unknown,
            stored=torch.zeros_like(rows, dtype=torch.bool),
            times_replayed=torch.zeros_like(rows),
            trajectories=unknown[:, :, None][:, :, :0],
        )

    def memory_use(self, records: Sequence[InstanceRecord]) -> MemoryUse:
        """What the replay memory holds; by default the instances that the records of all tasks call stored.

        An instance takes the bytes of its signal, as the frame cache holds it, and of its float32 targets. A memory
        that keeps more of an instance for its losses adds the bytes of that.
        """
        stored = torch.stack([record.stored.sum(1) for record in records]).sum(0)
        return MemoryUse(stored.tolist(), [self.instance_bytes] * len(self.training.configs))

    @property
    def instance_bytes(self) -> int:
        """Bytes of the signal and the targets of a stored instance."""
        return self.training.learner.bank.instance_bytes + 4 * self.training.learner.outputs

    def counts(self) -> dict[str, list[int]]:
        """Columns of the table `runs` that this strategy alone fills, one value a run."""
        return {}

    def state(self) -> dict[str, Any]:
        """What a checkpoint needs beside the learner."""
        return {}

    def restore(self, state: dict[str, Any], task: int) -> None:
        """Takes up a state that `state` returned during the given task."""
        del state, task
