"""The base class of strategies, and the facts available to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import torch

from clops_sweep.experiment.config import RunConfig
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Instances, Replay
from clops_sweep.learning.learners.learner import Learner


@dataclass(frozen=True)
class Training:
    """The runs that a strategy trains.

    Attributes:
        configs: one config per run. They differ only in the strategy's `lockstep.free_fields`.
        learner: networks of the runs.
        tasks: training instances of each task in training order, with equal rows for all runs.
        by_position: whether an output means another class in each task; see `ScenarioTasks`.
        pretraining: number of tasks, or batches of an online stream, on which methods with a closed-form head train
            features.
    """

    configs: Sequence[RunConfig]
    learner: Learner
    tasks: Sequence[Instances]
    by_position: bool = False
    pretraining: int = 1

    @property
    def config(self) -> RunConfig:
        """The common config of the runs; its seeds are meaningless."""
        return self.configs[0]

    @property
    def seeds(self) -> list[int]:
        """Seeds of the runs."""
        return [config.seed for config in self.configs]

    @cached_property
    def groups(self) -> list[tuple[RunConfig, list[int]]]:
        """Groups of runs that differ only in the seed: their config, and their indices in the lockstep."""
        found: dict[RunConfig, list[int]] = {}
        for run, config in enumerate(self.configs):
            found.setdefault(config.replace(seed=0), []).append(run)
        return list(found.items())


@dataclass(frozen=True)
class InstanceRecord:
    """Facts about the training instances of a finished task; nan or zero if not applicable.

    Attributes:
        s: float64 [S, n], area under beta's trajectory.
        beta: float32 [S, n], final value.
        stored: bool [S, n].
        times_replayed: int64 [S, n].
        trajectories: float32 [S, n, tau], beta after each epoch; tau is 0 without beta.
    """

    s: torch.Tensor
    beta: torch.Tensor
    stored: torch.Tensor
    times_replayed: torch.Tensor
    trajectories: torch.Tensor

    def split(self, sizes: Sequence[int]) -> list[InstanceRecord]:
        """Split the record of concatenated instances into parts of given sizes."""
        parts = zip(*(values.split(list(sizes), dim=1) for values in vars(self).values()), strict=True)
        return [InstanceRecord(*part) for part in parts]


Stores = Literal["raw", "features", "statistics", "nothing"]
"""Kind of stored past data: raw signals, features, statistics, or nothing."""


@dataclass(frozen=True)
class MemoryUse:
    """Use of the replay memory, one number per run.

    Attributes:
        instances: number of stored instances; duplicates count.
        instance_bytes: bytes per instance.
        other_bytes: bytes of other stored data.
    """

    instances: Sequence[int]
    instance_bytes: Sequence[int]
    other_bytes: Sequence[int] | None = None


class LockstepStrategy:
    """Plain training on a sequence of tasks; subclasses override its decisions.

    Args:
        training: the runs.
    """

    joint: ClassVar[bool] = False
    """Whether all tasks are trained on at once, as a single task of N tau epochs."""

    needs_head: ClassVar[Literal["read", "write"] | None] = None
    """Whether the network must end in an `nn.Linear`: the strategy reads its input or writes its weights."""

    stores: ClassVar[Stores | None] = None
    """Kind of stored past data. By default (None) "raw" if instances are stored, else "nothing"."""

    def __init__(self, training: Training) -> None:
        self.training = training

    def come_to(self, task: int, *, end: bool) -> None:
        """Called before `begin_task`, and at the end of a task before `end_task`."""

    def begin_task(self, task: int) -> None:
        """Called before the first epoch on a task."""

    def replay(self, task: int, epoch: int) -> Replay | None:
        """Return the instances to replay in an epoch (from 0)."""
        del task, epoch
        return None

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Train one epoch on a task's instances and the replayed ones, in a given order (see `Epoch`)."""
        del epoch
        training = self.training
        training.learner.train_epoch(training.tasks[task], replay, order, training.config.batch_size, dropout_keys)

    def trains(self, task: int) -> bool:
        """Return whether the epochs on a task take gradient steps."""
        del task
        return True

    def end_epoch(self) -> None:
        """Called after the last batch of an epoch."""

    def end_training(self, task: int) -> None:
        """Called after the last epoch on a task, before the networks are evaluated.

        With early stopping, the last epoch is known only then.
        """

    def end_task(self, task: int) -> None:
        """Called after the last epoch on a task, when the networks have been evaluated on the validation set."""

    def record(self, task: int) -> InstanceRecord:
        """Return the facts about the instances of a finished task."""
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
        """Return the use of the replay memory; by default the stored instances in the records of all tasks.

        An instance takes the bytes of its signal in the frame cache and of its float32 targets. A memory that stores
        more per instance adds these bytes.
        """
        stored = torch.stack([record.stored.sum(1) for record in records]).sum(0)
        return MemoryUse(stored.tolist(), [self.instance_bytes] * len(self.training.configs))

    @property
    def instance_bytes(self) -> int:
        """Return the bytes of the signal and the targets of a stored instance."""
        return self.training.learner.bank.instance_bytes + 4 * self.training.learner.outputs

    def counts(self) -> dict[str, list[int]]:
        """Return columns of `runs` that only this strategy fills, one value per run."""
        return {}

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint, without the learner."""
        return {}

    def restore(self, state: dict[str, Any], task: int) -> None:
        """Restore a state from `state` during the given task."""
        del state, task


def run_epoch(training: Training, strategy: LockstepStrategy, task: int, epoch: int, replay: Replay | None) -> None:
    """Train a strategy for one epoch (from 0) on a task, with the random streams of that epoch."""
    learner, instances = training.learner, training.tasks[task]
    if learner.augment is not None:
        learner.augment.begin_epoch(task, epoch)
    size = instances.rows.shape[1] + (0 if replay is None else replay.instances.rows.shape[1])
    order = streams.permutations(training.seeds, size, "batch order", task, epoch).to(learner.bank.device)
    dropout_keys = streams.keys(training.seeds, "training dropout", task, epoch).to(learner.bank.device)
    strategy.train_epoch(task, epoch, replay, order, dropout_keys)
    strategy.end_epoch()
