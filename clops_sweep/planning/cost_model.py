"""What a run consists of, in frames: the model by which costs of runs of one kind are compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple, Self

from clops_sweep.experiment.config import RunConfig

Phases = tuple[float, float, float]

Kind = tuple[str, str, str, int]

_TASKS: Mapping[str, int] = {"class_il": 6, "time_il": 3, "domain_il": 12}
_VALIDATION, _TEST = 0.27, 0.34
"""Frames of these splits per training frame, about: the parts that stay the same whatever a config says."""

_RELATIVE_COST: Phases = (4.0, 0.7, 1.0)
"""What a frame costs in a training step, a Monte-Carlo pass and an evaluation, where nothing has been measured."""

_FRAMES_PER_TASK = 500
"""Where it has to be known how large a memory is."""


class Load(NamedTuple):
    """The config fields that a run's cost depends on; everything else is as good as a seed."""

    dataset: str
    scenario: str
    strategy: str
    batch_size: int
    storage_fraction: float
    acquisition_fraction: float
    mc_samples: int
    acquisition: str
    acquire_every: int
    storage_order: str
    replay_ratio: float
    epochs_per_task: int

    @classmethod
    def of(cls, config: RunConfig) -> Self:
        """The load of a config."""
        return cls(*attrgetter(*cls._fields)(config))

    @property
    def kind(self) -> Kind:
        """Runs of one kind do more or less of the same things."""
        return self.dataset, self.scenario, self.strategy, self.batch_size

    @property
    def work(self) -> Phases:
        """Frames trained on, passed through for scores, and evaluated, in units of the frames of one task."""
        return self.work_until(_TASKS[self.scenario] * self.epochs_per_task)

    def work_until(self, epochs: int) -> Phases:
        """The work of a run's first epochs, counted over all tasks; each task stores and is tested at its end."""
        tasks = _TASKS[self.scenario]
        trained = scored = evaluated = 0.0
        for task in range(math.ceil(epochs / self.epochs_per_task)):
            done = min(self.epochs_per_task, epochs - task * self.epochs_per_task)
            stored = self.storage_fraction * task
            trained += done * self._trained(tasks, task, stored)
            scored += math.ceil(done / self.acquire_every) * self._scored(stored)
            evaluated += tasks * (_VALIDATION * done + (_TEST if done == self.epochs_per_task else 0))
        return trained, scored, evaluated

    def _trained(self, tasks: int, task: int, stored: float) -> float:
        """Frames that go through a training step in an epoch, or something that costs as much."""
        if self.strategy == "finetune":
            return 1.0
        if self.strategy == "multitask":
            return float(tasks)
        if self.strategy == "gem":
            return 1.0 + task
        if self.strategy == "mir":
            if not task:
                return 1.0
            candidates = self.acquisition_fraction * stored * _FRAMES_PER_TASK / self.batch_size
            return 2.0 + self.replay_ratio + 2 * candidates / _RELATIVE_COST[0]
        return 1.0 + self.acquisition_fraction * stored

    def _scored(self, stored: float) -> float:
        """Monte-Carlo passes in an epoch."""
        if self.strategy != "clops" or self.acquisition == "random" or self.acquisition_fraction == 1:
            return 0.0
        return stored * self.mc_samples * (2 if self.acquisition == "balc_kld" else 1)


class Measured(NamedTuple):
    """What a run, or the beginning of one, took.

    Attributes:
        load: of the run.
        work: what was done of it.
        seconds: what it took, by phase.
        device: cpu or cuda.
        started: when it began, in seconds, if that is known.
    """

    load: Load
    work: Phases
    seconds: Phases
    device: str = "cpu"
    started: float | None = None


def units(rows: Sequence[Measured]) -> Phases:
    """Seconds per unit of work in each phase; of a phase that no row has, in proportion to the others."""
    seconds = [sum(row.seconds[phase] for row in rows) for phase in range(3)]
    work = [sum(row.work[phase] for row in rows) for phase in range(3)]
    relative = sum(cost * amount for cost, amount in zip(_RELATIVE_COST, work, strict=True))
    train, acquire, evaluate = (
        taken / amount if amount and taken else sum(seconds) / relative * cost
        for taken, amount, cost in zip(seconds, work, _RELATIVE_COST, strict=True)
    )
    return train, acquire, evaluate


def modelled(work: Phases, per_unit: Phases = _RELATIVE_COST) -> float:
    """Seconds that some work should take; without units, a cost to compare loads by."""
    return sum(unit * amount for unit, amount in zip(per_unit, work, strict=True))
