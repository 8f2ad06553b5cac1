"""The base class of strategies, and the facts available to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch

from clops_sweep.experiment.config import RunConfig
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Instances, Replay
from clops_sweep.learning.learners.learner import Learner


@dataclass(frozen=True)
class Training:
    """The run that a strategy trains.

    Attributes:
        config: its config.
        learner: its network.
        tasks: training instances of each task in training order.
        by_position: whether an output means another class in each task; see `ScenarioTasks`.
        pretraining: number of tasks, or batches of an online stream, on which methods with a closed-form head train
            features.
    """

    config: RunConfig
    learner: Learner
    tasks: Sequence[Instances]
    by_position: bool = False
    pretraining: int = 1

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self.config.seed


@dataclass(frozen=True)
class InstanceRecord:
    """Facts about the training instances of a finished task; nan or zero if not applicable.

    Attributes:
        s: float64 [n], area under beta's trajectory.
        beta: float32 [n], final value.
        stored: bool [n].
        times_replayed: int64 [n].
        trajectories: float32 [n, tau], beta after each epoch; tau is 0 without beta.
    """

    s: torch.Tensor
    beta: torch.Tensor
    stored: torch.Tensor
    times_replayed: torch.Tensor
    trajectories: torch.Tensor

    def split(self, sizes: Sequence[int]) -> list[InstanceRecord]:
        """Split the record of concatenated instances into parts of given sizes."""
        parts = zip(*(values.split(list(sizes)) for values in vars(self).values()), strict=True)
        return [InstanceRecord(*part) for part in parts]


Stores = Literal["raw", "features", "statistics", "nothing"]
"""Kind of stored past data: raw signals, features, statistics, or nothing."""


@dataclass(frozen=True)
class MemoryUse:
    """Use of the replay memory.

    Attributes:
        instances: number of stored instances; duplicates count.
        instance_bytes: bytes per instance.
        other_bytes: bytes of other stored data.
    """

    instances: int
    instance_bytes: int
    other_bytes: int = 0


class Method:
    """Plain training on a sequence of tasks; subclasses override its decisions.

    Args:
        training: the run.
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
            trajectories=unknown[:, None][:, :0],
        )

    def memory_use(self, records: Sequence[InstanceRecord]) -> MemoryUse:
        """Return the use of the replay memory; by default the stored instances in the records of all tasks.

        An instance takes the bytes of its signal in the frame cache and of its float32 targets. A memory that stores
        more per instance adds these bytes.
        """
        return MemoryUse(sum(int(record.stored.sum()) for record in records), self.instance_bytes)

    @property
    def instance_bytes(self) -> int:
        """Return the bytes of the signal and the targets of a stored instance."""
        return self.training.learner.bank.instance_bytes + 4 * self.training.learner.outputs

    def counts(self) -> dict[str, int]:
        """Return columns of `runs` that only this strategy fills."""
        return {}

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint, without the learner."""
        return {}

    def restore(self, state: dict[str, Any], task: int) -> None:
        """Restore a state from `state` during the given task."""
        del state, task


def run_epoch(training: Training, strategy: Method, task: int, epoch: int, replay: Replay | None) -> None:
    """Train a strategy for one epoch (from 0) on a task, with the random streams of that epoch."""
    learner, instances = training.learner, training.tasks[task]
    if learner.augment is not None:
        learner.augment.begin_epoch(task, epoch)
    size = len(instances.rows) + (0 if replay is None else len(replay.instances.rows))
    order = streams.permutation(training.seed, size, "batch order", task, epoch).to(learner.bank.device)
    dropout_keys = streams.keys(training.seed, "training dropout", task, epoch).to(learner.bank.device)
    strategy.train_epoch(task, epoch, replay, order, dropout_keys)
    strategy.end_epoch()
