"""Contract suite of strategies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch

from clops_sweep.data.catalog import ScenarioName
from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import UsageError
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.experiment.plugins.values import count_of
from clops_sweep.learning.batches import Replay
from clops_sweep.learning.method.batch import FrameBatch
from clops_sweep.learning.method.strategy import OptionNotListed, Strategy, has_loss
from clops_sweep.learning.method.training import Training
from clops_sweep.learning.result import RunResult
from clops_sweep.learning.run import ContinualRun
from clops_sweep.testing.frames import SCENARIO_KINDS, tiny_config, tiny_frames
from clops_sweep.testing.own_randomness import own_randomness
from clops_sweep.testing.watch import (
    ContractViolation,
    Looks,
    NotRepeated,
    NotResumed,
    difference,
    loaded,
    require,
    result_difference,
    saved,
)

_UNDER_TEST = "strategy_under_test"

Stores = Literal["a share", "anything"]
"""What a strategy stores of each task. "a share": nothing, or `storage_fraction` for good. "anything": no rule."""

TrainsOn = Literal["the task", "anything"]
"""What an epoch trains on. "the task": at least all its instances. "anything": any instances of the tasks so far."""


def check_strategy(
    strategy: type[Strategy],
    *,
    scenarios: Sequence[ScenarioName] = SCENARIO_KINDS,
    stores: Stores = "a share",
    trains_on: TrainsOn = "the task",
    **settings: Any,
) -> None:
    """Check a strategy against its contract, with complete runs in each scenario.

    - Every epoch trains on all instances of the current task.
    - Training, replay and storage read only training frames of the current and earlier tasks.
    - From each task of N instances, nothing or exactly max(1, floor(b N)) distinct instances are stored. Only stored
      instances are replayed.
    - All numbers are finite. They are bit-equal if the run is repeated, trained by turns with another in one process,
      or resumed from a checkpoint after each epoch.

    Args:
        strategy: the class.
        scenarios: the scenarios that it supports.
        stores: "anything" for a method whose memory evicts instances or has another size than `storage_fraction`.
        trains_on: "anything" for a method that trains only on a memory.
        settings: config fields to set in addition to those of `tiny_config`.

    Raises:
        ContractViolation: the strategy breaks the contract; the message says how.
    """
    known = isinstance(strategy, type) and issubclass(strategy, Strategy)
    require(known, f"{strategy!r} is not a subclass of Strategy")
    with STRATEGIES.temporarily(_UNDER_TEST, strategy), _named_cause(strategy, settings):
        for scenario in scenarios:
            config = tiny_config(scenario, **(settings | {"strategy": _UNDER_TEST}))
            check_named_strategy(config, tiny_frames(scenario), stores=stores, trains_on=trains_on)


@contextmanager
def _named_cause(strategy: type[Strategy], settings: Mapping[str, Any]) -> Iterator[None]:
    """Add to an error in the block that the class draws from a generator of its own, or lacks its decorator."""
    try:
        yield
    except (NotRepeated, NotResumed) as violation:
        cause = own_randomness(strategy)
        if cause is not None:
            raise ContractViolation(f"{violation}: {cause}; draw from self.rng") from None
        if isinstance(violation, NotRepeated):
            likely = "it may use random numbers other than those of self.rng, or share state between runs"
            raise ContractViolation(f"{violation}: {likely}") from None
        raise
    except UsageError as error:
        said = str(error).replace(f"strategy {_UNDER_TEST!r}", f"strategy class {strategy.__name__}")
        is_about_options = isinstance(error, OptionNotListed) or any(name in said for name in settings)
        if not is_about_options or _is_declared(strategy):
            raise UsageError(said) from None
        base = next((cls for cls in strategy.__mro__[1:] if _is_declared(cls)), None)
        of_base = "" if base is None else f", and the one of {base.__name__} is not inherited"
        raise UsageError(
            f"strategy class {strategy.__name__}: it has no @strategy, which lists its options{of_base}; write "
            f'@strategy("name", options=[...]) above the class ({said})'
        ) from None


def _is_declared(strategy: type) -> bool:
    """Return whether a class is built in, or registered by its decorator under a name of its own."""
    if strategy.__module__.startswith("clops_sweep."):
        return strategy.__module__.startswith("clops_sweep.learning.strategies.")
    return any(plugin.member is strategy for name, plugin in STRATEGIES.added.items() if name != _UNDER_TEST)


def check_named_strategy(
    config: RunConfig, frames: FrameSet, *, stores: Stores = "a share", trains_on: TrainsOn = "the task"
) -> None:
    """Check the strategy that a config names, with the config's settings; see `check_strategy` for the arguments."""
    where = config.scenario
    checkpoints, result = _uninterrupted(config, frames)
    _check_result(config, result, stores)
    try:
        _check_resuming(config, frames, checkpoints, result)
    except NotResumed:
        differs = result_difference(result, ContinualRun(config, frames).run())
        if differs is not None:
            raise NotRepeated(f"{where}: {differs} differs between a run and its repetition") from None
        raise
    of_both = [config, config.replace(seed=config.seed + 1)]
    strategy = config.strategy
    watched = STRATEGIES.temporarily(
        "strategy_being_watched", _watched(STRATEGIES[strategy], trains_on), STRATEGIES.declaration(strategy)
    )
    with watched:
        configs = [each.replace(strategy="strategy_being_watched") for each in of_both]
        found = _by_turns(configs, frames)
    for other, beside in zip(of_both, found, strict=True):
        expected = result if other is config else ContinualRun(other, frames).run()
        differs = result_difference(expected, beside, ignore=("run_id", "strategy"))
        if differs is not None:
            raise NotRepeated(f"{where}: {differs} differs between a run alone and the same run beside another")


def _by_turns(configs: Sequence[RunConfig], frames: FrameSet) -> list[RunResult]:
    """Train several runs in one process, alternating after each epoch."""
    runs = [ContinualRun(config, frames) for config in configs]
    while not runs[0].finished:
        for run in runs:
            run.advance()
    return [run.result() for run in runs]


def _uninterrupted(config: RunConfig, frames: FrameSet) -> tuple[list[bytes], RunResult]:
    """Return a run's checkpoints (before each epoch and at the end) and its result."""
    run = ContinualRun(config, frames)
    checkpoints = []
    while not run.finished:
        checkpoints.append(saved(run.state()))
        try:
            run.advance()
        except FloatingPointError as error:
            raise ContractViolation(f"{config.scenario}: {error}") from None
    checkpoints.append(saved(run.state()))
    return checkpoints, run.result()


def _check_resuming(config: RunConfig, frames: FrameSet, checkpoints: Sequence[bytes], result: RunResult) -> None:
    """Check that each epoch, resumed from a checkpoint, leads to the next one: then any resumed run ends the same."""
    before: ContinualRun | None = None  # resumed from the previous checkpoint and trained for an epoch
    for number, checkpoint in enumerate(checkpoints):
        state = loaded(checkpoint)
        found = None if before is None else difference(state, before.state(), "state")
        if found is not None:
            raise NotResumed(f"{config.scenario}: {found} differs after resuming behind epoch {number - 1}")
        before = ContinualRun(config, frames)
        before.restore(state)
        if not before.finished:
            before.advance()
    assert before is not None
    found = result_difference(result, before.result())
    if found is not None:
        raise NotResumed(f"{config.scenario}: {found} differs after resuming behind epoch {len(checkpoints) - 1}")


def _check_result(config: RunConfig, result: RunResult, stores: Stores) -> None:
    where = config.scenario
    for name in ("auc", "test_auc"):
        require(result.runs[name].between(0, 1).all(), f"{where}: {name} is not a number between 0 and 1")
    require(result.r_matrix["auc"].between(0, 1).all(), f"{where}: R has an entry that is not an AUC")
    require(result.curves["loss"].notna().all(), f"{where}: a loss is not finite")
    for task, record in result.instances.groupby("task", sort=False):
        stored, expected = int(record["stored"].sum()), count_of(config.storage_fraction, len(record))
        times = record["times_replayed"]
        require((times >= 0).all(), f"{where}: a negative number of replays in task {task}")
        if stores == "anything":
            continue
        require(
            stored in (0, expected),
            f"{where}: task {task} stores {stored} instances instead of {expected}; stores='anything' allows a memory "
            "of another size, or with eviction",
        )
        require((times[~record["stored"]] == 0).all(), f"{where}: task {task} replays instances that are not stored")


def _watched(strategy: type[Strategy], trains_on: TrainsOn) -> type[Strategy]:
    """Return a subclass of the strategy that checks which instances and frames it uses."""

    class Watched(strategy):  # type: ignore[misc, valid-type]
        not_state = (*getattr(strategy, "not_state", ()), "_looks", "_rows", "_current")

        def __init__(self, training: Training) -> None:
            self._looks = Looks(training.learner)
            self._rows = [set(task.rows.flatten().tolist()) for task in training.tasks]
            self._current = 0
            super().__init__(training)

        def begin_task(self, task: int) -> None:
            self._current = task
            self._looks.take()  # discard frames read by evaluation
            super().begin_task(task)
            self._check_frames("beginning a task")

        def replay(self, task: int, epoch: int) -> Replay | None:
            self._looks.take()
            replay: Replay | None = super().replay(task, epoch)
            self._check_frames("choosing what to replay")
            if replay is not None:
                rows = set(replay.instances.rows.flatten().tolist())
                require(rows <= set().union(*self._rows[:task]), "replays instances that belong to no earlier task")
                require(replay.factors.isfinite().all(), "replays with factors that are not finite")
            return replay

        def train_epoch(self, task: int, *arguments: Any) -> None:
            self._looks.take_trained()
            super().train_epoch(task, *arguments)
            self._check_frames("training")
            missing = self._rows[task] - self._looks.take_trained() if trains_on == "the task" else set()
            require(not missing, f"an epoch leaves out instances of its task: rows {sorted(missing)}")

        def end_epoch(self) -> None:
            super().end_epoch()
            self._check_frames("ending an epoch")

        def end_task(self, task: int) -> None:
            self._looks.take()  # discard frames read by evaluation
            super().end_task(task)
            self._check_frames("ending a task")
            require(self.training.learner.parameters.flat.isfinite().all(), "a parameter is not finite")

        def _check_frames(self, doing: str) -> None:
            foreign = self._looks.take() - set().union(*self._rows[: self._current + 1])
            require(not foreign, f"{doing} reads frames outside the training sets so far: rows {sorted(foreign)}")

    class WatchedLoss(Watched):
        def loss(self, batch: FrameBatch) -> torch.Tensor:
            self._looks.trained_on(batch)
            found: torch.Tensor = super().loss(batch)
            return found

    return WatchedLoss if has_loss(strategy) else Watched
