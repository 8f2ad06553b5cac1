"""The run that a method trains, and what a method reports about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from clops_sweep.experiment.config import RunConfig
from clops_sweep.learning.batches import Instances
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
        """Return a record of each part of the instances, given the sizes of the parts."""
        columns = [values.split(list(sizes)) for values in vars(self).values()]
        return [InstanceRecord(*values) for values in zip(*columns, strict=True)]


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
