"""Early stopping: the epoch to which a run returns, and equality with a run that has no more epochs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from clops_sweep import ContinualRun, RunConfig, Strategy, UsageError
from clops_sweep.data.frames import TEST, VALIDATION, FrameSet
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.learning.result import RunResult
from clops_sweep.testing import tiny_config, tiny_frames
from tests.helpers.at_night import mostly_at_night

EPOCHS = 6
SCENARIOS = {"acil": "class_il_union", "icarl": "class_il_union"}
OPTIONS: dict[str, dict[str, Any]] = {
    "acil": {"projection_size": 60},
    "icarl": {"memory_size": 6},
    "si": {"learning_rate": 0.05},
}
MEASURED = {"seconds", "seconds_train", "seconds_acquire", "seconds_evaluate", "cpu_seconds", "started_at"}


class CountingLoss(Strategy):
    """A loss with state of its own: the number of steps, and a memory of everything."""

    def setup(self) -> None:
        self.steps = 0

    def loss(self, batch: Any) -> Any:
        self.steps += 1
        return self.criterion(self.model(batch.x), batch.y) / (1 + self.steps / 100)


@pytest.fixture(autouse=True)
def _counting_loss() -> Iterator[None]:
    with STRATEGIES.temporarily("counting_loss", CountingLoss):
        yield


def config_of(method: str, **changes: Any) -> RunConfig:
    settings = {"epochs_per_task": EPOCHS, "learning_rate": 0.03} | OPTIONS.get(method, {}) | changes
    return tiny_config(SCENARIOS.get(method, "class_il"), strategy=method, **settings)  # type: ignore[arg-type]


def frames_of(method: str) -> FrameSet:
    return tiny_frames(SCENARIOS.get(method, "class_il"))  # type: ignore[arg-type]


def by_hand(config: RunConfig, frames: FrameSet, patience: int) -> tuple[RunResult, list[int], int]:
    """Train each task for all its epochs first, then repeat the run up to the epoch to keep."""
    plain = config.replace(early_stopping=None)
    kept: list[int] = []
    trained = 0
    while True:
        run = ContinualRun(plain, frames)
        most = run.progress.epochs
        for count in kept:
            run._epochs = count
            for _ in range(count):
                run.advance()
        if run.finished:
            return run.result(), kept, trained
        run._epochs, losses = most + 1, list[float]()  # hooks after the last epoch come later
        while len(losses) < most and len(losses) - int(np.argmin([*losses, np.inf])) <= patience:
            run.advance()
            metrics = run.epoch_metrics()
            losses.append(metrics["loss" if run.strategy.joint else f"loss/{run.task_names[len(kept)]}"])
        trained += 0 if config.strategy == "acil" and kept else len(losses)  # later tasks have no gradients
        kept.append(int(np.argmin(losses)) + 1)


def assert_same(found: RunResult, expected: RunResult, *, but: frozenset[str] = frozenset()) -> None:
    for name, table in found.tables.items():
        columns = [column for column in table if column not in MEASURED | but]
        pd.testing.assert_frame_equal(table[columns], expected.tables[name][columns])


METHODS = ["finetune", "clops", "derpp", "si", "gem", "multitask", "counting_loss", "acil", "icarl"]


@pytest.mark.parametrize("method", mostly_at_night(METHODS, ("clops", "si", "acil", "icarl").__contains__))
def test_the_run_is_the_one_that_had_no_more_epochs(method: str) -> None:
    config, frames = config_of(method, early_stopping=2), frames_of(method)
    found = ContinualRun(config, frames).run()
    expected, kept, trained = by_hand(config, frames, patience=2)
    assert found.runs["epochs_trained"].tolist() == [trained]
    assert_same(found, expected, but=frozenset({"run_id", "epochs_trained", "epoch"}))

    tasks = found.curves["task"].nunique()
    per_task = found.curves.groupby("training_task", sort=False)["epoch"].agg(["min", "max", "size"])
    most = EPOCHS * (tasks if method == "multitask" else 1)
    assert min(kept) < most, "nothing to see: no task stopped early"
    assert (per_task["size"] / tasks).tolist() == kept
    assert per_task["min"].tolist() == [1 + most * stage for stage in range(len(kept))]


@pytest.mark.parametrize("method", ["clops", "counting_loss", "icarl"])
@pytest.mark.parametrize("epochs", [2, 5])
def test_a_run_resumes_within_a_task_as_if_never_interrupted(method: str, epochs: int) -> None:
    config, frames = config_of(method, early_stopping=2), frames_of(method)
    begun = ContinualRun(config, frames)
    for _ in range(epochs):
        begun.advance()
    resumed = ContinualRun(config, frames)
    resumed.restore(copy.deepcopy(begun.state()))
    assert resumed.progress == begun.progress
    assert_same(resumed.run(), begun.run())


def test_it_is_refused_without_a_validation_set() -> None:
    frames = frames_of("finetune")
    without = replace(frames, split=np.where(frames.split == VALIDATION, np.int8(TEST), frames.split))
    with pytest.raises(UsageError, match=r"^early_stopping = 2: dataset 'synthetic' has no validation set"):
        ContinualRun(config_of("finetune", early_stopping=2), without)
    with pytest.raises(UsageError, match="early_stopping"):
        config_of("finetune", early_stopping=0)
