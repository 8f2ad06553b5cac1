"""Every registered plug-in passes the contract suite of its kind, third-party ones too, and broken ones fail."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
import torch

from clops_sweep import ContinualRun, Memory, Strategy
from clops_sweep.data.catalog import ScenarioName
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.registry import ACQUISITION_FUNCTIONS, STORAGE_FUNCTIONS, STRATEGIES
from clops_sweep.learning.batches import Replay
from clops_sweep.learning.replay.acquisition import AcquisitionContext
from clops_sweep.learning.replay.division import random_priorities
from clops_sweep.learning.strategies.clops import CLOPS
from clops_sweep.testing import (
    ContractViolation,
    check_acquisition_function,
    check_storage_function,
    check_strategy,
    tiny_config,
    tiny_frames,
)
from tests.helpers.at_night import mostly_at_night
from tests.learning.methods import PAPERS


@pytest.mark.parametrize("name", mostly_at_night(PAPERS, ("clops", "gem").__contains__))
def test_strategies(name: str) -> None:
    check_strategy(STRATEGIES[name])


WITH_A_MEMORY: list[tuple[str, ScenarioName, dict[str, Any]]] = [
    ("er", "class_il", {}),
    ("er", "domain_il", {"memory_division": "class_balanced"}),
    ("er_ace", "class_il_union", {"memory_division": "task_balanced"}),
    ("derpp", "class_il", {"memory_fraction": 0.2}),
    ("agem", "time_il", {"agem_batch_size": 3}),
    ("gdumb", "domain_il", {}),
    ("aser", "class_il_union", {"memory_fraction": 0.2}),
]


@pytest.mark.parametrize(
    ("name", "scenario", "settings"), mostly_at_night(WITH_A_MEMORY, lambda case: case[0] in ("er", "gdumb"))
)
def test_strategies_with_a_memory_of_fixed_size(name: str, scenario: ScenarioName, settings: dict[str, Any]) -> None:
    trains_on: Any = "anything" if name == "gdumb" else "the task"
    check_strategy(STRATEGIES[name], scenarios=[scenario], stores="anything", trains_on=trains_on, **settings)


def test_a_built_in_strategy_that_is_written_as_a_loss() -> None:
    check_strategy(STRATEGIES["flip_penalty"], scenarios=["time_il"])


@pytest.mark.parametrize("name", mostly_at_night(ACQUISITION_FUNCTIONS, "bald_mcd".__eq__))
def test_acquisition_functions(name: str) -> None:
    check_acquisition_function(ACQUISITION_FUNCTIONS[name])


@pytest.mark.parametrize("name", mostly_at_night(STORAGE_FUNCTIONS, "area".__eq__))
def test_storage_functions(name: str) -> None:
    check_storage_function(STORAGE_FUNCTIONS[name])


def least_confident(context: AcquisitionContext, rows: torch.Tensor) -> torch.Tensor:
    """A third-party function, in one line of numerics."""
    probabilities = context.learner.probabilities(rows)
    return -(probabilities - 0.5).abs().sum(-1)


@pytest.fixture
def registered() -> Iterator[str]:
    with ACQUISITION_FUNCTIONS.temporarily("least_confident", least_confident):
        yield "least_confident"


def test_a_third_partys_acquisition_function(registered: str) -> None:
    check_acquisition_function(ACQUISITION_FUNCTIONS[registered])
    frames = tiny_frames("class_il")
    config = tiny_config("class_il", acquisition=registered)
    result = ContinualRun(config, frames).run()
    assert result.runs["run_id"].tolist() == [config.run_id(frames.data_hash)]
    other = ContinualRun(tiny_config("class_il"), frames).run()
    assert not result.instances["times_replayed"].equals(other.instances["times_replayed"])


def one_column(context: AcquisitionContext, rows: torch.Tensor) -> torch.Tensor:
    return context.learner.probabilities(rows)


def undefined(context: AcquisitionContext, rows: torch.Tensor) -> torch.Tensor:
    return torch.full(rows.shape, torch.nan)


def integers(context: AcquisitionContext, rows: torch.Tensor) -> torch.Tensor:
    return rows


def global_noise(context: AcquisitionContext, rows: torch.Tensor) -> torch.Tensor:
    return torch.rand(rows.shape)


def python_noise(context: AcquisitionContext, rows: torch.Tensor) -> torch.Tensor:
    return torch.full(rows.shape, random.random())


def changes_statistics(context: AcquisitionContext, rows: torch.Tensor) -> torch.Tensor:
    context.learner.statistics[0].mul_(0.99)
    return rows.double()


def changes_parameters(context: AcquisitionContext, rows: torch.Tensor) -> torch.Tensor:
    context.learner.parameters.flat[-1] += 1e-7
    return rows.double()


def changes_rows(context: AcquisitionContext, rows: torch.Tensor) -> torch.Tensor:
    rows[0] = rows[1]
    return rows.double()


def looks_elsewhere(context: AcquisitionContext, rows: torch.Tensor) -> torch.Tensor:
    return context.learner.logits(rows + 1)[:, 0]


def gathers_elsewhere(context: AcquisitionContext, rows: torch.Tensor) -> torch.Tensor:
    return context.learner.bank.gather(rows + 1)[:, 0]


def remembers(context: AcquisitionContext, rows: torch.Tensor) -> torch.Tensor:
    counter.append(1)
    return rows.double() + len(counter)


counter: list[int] = []

BROKEN: dict[Any, str] = {
    one_column: "of shape",
    undefined: "not finite",
    integers: "not floating point",
    global_noise: "global generator",
    python_noise: "global generator",
    changes_statistics: "changed learner/statistics",
    changes_parameters: "changed learner/parameters",
    changes_rows: "changed the rows",
    looks_elsewhere: "frames other than the given ones",
    gathers_elsewhere: "frames other than the given ones",
    remembers: "in a second call",
}


class Reservoir(Strategy):
    """Stores seven instances of all tasks, evicts some, and from the second task on trains only on the stored ones."""

    def setup(self) -> None:
        self.memory = Memory(7)

    def train_epoch(self, task: int, epoch: int, replay: Any, order: torch.Tensor, dropout_keys: torch.Tensor) -> None:
        if not task:
            super().train_epoch(task, epoch, replay, order, dropout_keys)
            return
        learner, places = self.training.learner, torch.arange(len(self.memory))
        instances = self.memory.replay(places).instances
        stored = self.memory.columns["logits"]
        _, gradient = learner.loss_gradient(
            instances.rows,
            places,
            dropout_keys,
            lambda logits, stored: (logits - stored).sigmoid().square().sum(),
            stored,
        )
        learner.apply(gradient)

    def end_task(self, task: int) -> None:
        new = self.instances(task)
        drawn = random_priorities(self.training.seed, len(new), task)
        self.memory.offer(new, priority=drawn, logits=self.predict(new.x))


def test_a_memory_that_loses_instances_and_a_method_for_some_scenarios() -> None:
    check_strategy(Reservoir, scenarios=["class_il_union"], stores="anything", trains_on="anything")
    with pytest.raises(ContractViolation, match=r"stores \d+ instances instead of 4"):
        check_strategy(Reservoir, scenarios=["class_il_union"], trains_on="anything")
    with pytest.raises(ContractViolation, match="leaves out instances"):
        check_strategy(Reservoir, scenarios=["class_il"], stores="anything")


class ForgetsItsMemory(CLOPS):
    def restore(self, state: dict[str, Any], task: int) -> None:
        super().restore(state, task)
        for values in self.memory.columns.values():
            values.zero_()


class ForgetsMomentum(CLOPS):
    def restore(self, state: dict[str, Any], task: int) -> None:
        super().restore(state, task)
        self.training.learner.optimizer.first.zero_()


class StoresOneTooMany(CLOPS):
    def end_task(self, task: int) -> None:
        super().end_task(task)
        self.records[-1].stored[:] = True


class PeeksAhead(Strategy):
    def replay(self, task: int, epoch: int) -> Replay | None:
        following = self.training.tasks[min(task + 1, len(self.training.tasks) - 1)]
        self.training.learner.logits(following.rows)
        return None


class ReplaysTheFuture(Strategy):
    def replay(self, task: int, epoch: int) -> Replay | None:
        return Replay(self.training.tasks[-1], torch.ones(self.training.tasks[-1].rows.shape))


class SkipsInstances(Strategy):
    def train_epoch(self, task: int, epoch: int, replay: Any, order: torch.Tensor, dropout_keys: torch.Tensor) -> None:
        order = order.clone()
        order[0] = order[1]
        super().train_epoch(task, epoch, replay, order, dropout_keys)


class CountsAllRuns(Strategy):
    epochs: ClassVar[list[int]] = []

    def end_epoch(self) -> None:
        self.epochs.append(1)
        self.training.learner.parameters.flat.mul_(1 - 1e-3 * len(self.epochs))


class Explodes(Strategy):
    def end_epoch(self) -> None:
        self.training.learner.parameters.flat.mul_(torch.inf)


BROKEN_STRATEGIES: dict[Any, str] = {
    ForgetsItsMemory: "after resuming",
    ForgetsMomentum: "after resuming",
    StoresOneTooMany: "stores 10 instances instead of 4",
    PeeksAhead: "choosing what to replay reads frames outside",
    ReplaysTheFuture: "no earlier task",
    SkipsInstances: "leaves out instances",
    CountsAllRuns: "epochs can change, but lies in the class",
    Explodes: "not finite",
}


@pytest.mark.parametrize("broken", list(BROKEN_STRATEGIES), ids=lambda strategy: strategy.__name__)
def test_broken_strategies_are_found_out(broken: Any) -> None:
    declared = STRATEGIES.declaration("clops") if issubclass(broken, CLOPS) else None
    with (
        STRATEGIES.temporarily("broken", broken, declared),
        pytest.raises((ContractViolation, UsageError), match=BROKEN_STRATEGIES[broken]),
    ):
        check_strategy(broken)
    assert "strategy_under_test" not in STRATEGIES
    assert "strategy_being_watched" not in STRATEGIES
