"""Whole runs: native against PyTorch, alone against stacked, with and without the extension."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from clops_sweep import RunConfig, native
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.preparing.prepare import open_frames
from clops_sweep.learning.batches import Instances, Replay
from clops_sweep.learning.learners.beta import TaskInstanceParameters
from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.learners.native_learner import NativeLearner
from clops_sweep.learning.learners.penalty import Penalty
from clops_sweep.learning.run import ContinualRun
from clops_sweep.testing.watch import difference

Make = Callable[..., Any]


@pytest.fixture(scope="module")
def frames(prepared_root: Path) -> FrameSet:
    return open_frames("synthetic", prepared_root=prepared_root)


@pytest.mark.parametrize("strategy", ["clops", "gem", "mir"])
def test_stacked_runs_are_bit_for_bit_the_runs_alone(
    strategy: str, frames: FrameSet, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(native.ENVIRONMENT, variant)
    common = RunConfig(dataset="synthetic", strategy=strategy, epochs_per_task=1, storage_fraction=0.05, seed=3)
    if strategy == "clops":
        common = common.replace(mc_samples=3)
    configs = [common, common.replace(seed=4)]

    def after_two_tasks(run: ContinualRun) -> dict[str, Any]:
        for _ in range(2):
            run.advance()
        return run.state()

    stacked = after_two_tasks(ContinualRun(configs, frames))
    for position, config in enumerate(configs):
        alone = after_two_tasks(ContinualRun(config, frames))
        for name in ("auc", "loss"):
            assert torch.equal(stacked["curves"][name][:, position], alone["curves"][name][:, 0])


def test_everything_a_run_changes_is_bit_for_bit_the_same_in_a_stack(learner: Make, batch: Make) -> None:
    """Parameters, statistics, moments and beta, over epochs whose last batch is partial."""
    content, keys = batch("softmax", 50, runs=2)
    task = Instances(content.rows[:, :40], content.targets[:, :40])
    replay = Replay(Instances(content.rows[:, 40:], content.targets[:, 40:]), content.weights[:, 40:])
    order = torch.stack([torch.randperm(50, generator=torch.Generator().manual_seed(run)) for run in range(2)])

    def train(ours: NativeLearner, runs: slice) -> dict[str, torch.Tensor]:
        def part(instances: Instances) -> Instances:
            return Instances(instances.rows[runs], instances.targets[runs])

        count = runs.stop - runs.start
        beta = TaskInstanceParameters(40, [10.0] * count, [1e-2] * count, ours.bank.device)
        for _ in range(3):
            mine = Replay(part(replay.instances), replay.factors[runs])
            ours.train_epoch(part(task), mine, order[runs], 16, keys[runs], beta)
        by_run = ours.parameters.by_run
        adam = ours.optimizer
        flat = {"parameters": ours.parameters.flat, "first": adam.first, "second": adam.second}
        statistics = [tensor.view(count, -1) for tensor in ours.statistics]
        return {name: by_run(vector) for name, vector in flat.items()} | {
            "statistics": torch.cat(statistics, dim=1),
            "beta": beta.values,
            "scores": ours.dropout_probabilities(task.rows[runs], 5, keys[runs]).flatten(1),
        }

    stacked = train(learner("softmax", (8, 9)), slice(0, 2))
    for run in range(2):
        alone = train(learner("softmax", (8 + run,)), slice(run, run + 1))
        for name, values in alone.items():
            assert torch.equal(stacked[name][run], values[0]), name


@pytest.mark.parametrize("penalised", ["not", "by importance", "by importance, with a path"])
@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_epoch_is_its_steps(weighted: bool, runs: int, penalised: str, learner: Make, batch: Make) -> None:
    """`train_epoch` of the kernels against that of `Learner` with their single steps: bit for bit."""
    content, keys = batch("binary", 37, runs)
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(runs, 37, generator=torch.Generator().manual_seed(1)) + 0.5
    task = Instances(content.rows, content.targets).weighted(weights if weighted else None)
    order = torch.stack([torch.randperm(37, generator=generator) for _ in range(runs)])
    whole, steps = [learner("binary", tuple(range(runs))) for _ in range(2)]
    betas = [TaskInstanceParameters(37, [10.0] * runs, [1e-2] * runs, whole.bank.device) for _ in range(2)]
    importance, centre, path = torch.randn(3, whole.parameters.flat.numel(), generator=generator)
    paths = [path.clone() if "path" in penalised else None for _ in range(2)]
    penalties = [None if penalised == "not" else Penalty(importance.square(), centre, each) for each in paths]
    for _ in range(2):  # in the first, a step of Adam for beta depends on no loss's size
        whole.train_epoch(task, None, order, 11, keys, betas[0], penalties[0])
        Learner.train_epoch(steps, task, None, order, 11, keys, betas[1], penalties[1])
    assert torch.equal(whole.parameters.flat, steps.parameters.flat)
    assert difference(paths[0], paths[1]) is None
    assert (paths[0] is None) or not torch.equal(paths[0], path)
    torch.testing.assert_close(betas[0].values, betas[1].values, rtol=0, atol=1e-7)


def test_wrong_arguments_are_refused(learner: Make, batch: Make) -> None:
    """The kernels read and write memory by position: nothing that does not fit gets there."""
    ours = learner()
    content, keys = batch("binary", 4)
    with pytest.raises(ValueError, match="a row is not in the data set"):
        ours.logits(torch.tensor([[300]]))
    with pytest.raises(ValueError, match="a row is not in the data set"):
        ours.logits(torch.tensor([[-1]]))
    with pytest.raises(ValueError, match="rows must be"):
        ours.logits(content.rows.repeat(2, 1))
    with pytest.raises(ValueError, match="keys does not have the expected shape"):
        ours.gradient(content, keys.repeat(2, 1))
    with pytest.raises(ValueError, match="Adam needs vectors of equal size"):
        ours.apply(torch.zeros(3))
    with pytest.raises(TypeError):
        ours.apply(torch.zeros_like(ours.parameters.flat, dtype=torch.float64))
    assert ours.optimizer.steps == 0


def test_without_the_extension_it_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(native.ENVIRONMENT, raising=False)
    monkeypatch.setattr(native, "_kernels", None)
    native._say_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert native.available() == ()
        assert native.chosen() is None
        assert native.chosen() is None
    assert [record.getMessage() for record in caplog.records].count(native.why_missing()) == 1
