"""On a GPU: the numbers of a CPU up to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from clops_sweep import ContinualRun, Memory, RunConfig, Strategy, native
from clops_sweep.experiment.plugins.registry import NETWORKS, STRATEGIES
from clops_sweep.learning.learners import graphs
from clops_sweep.learning.result import RunResult
from clops_sweep.testing import tiny_config, tiny_frames
from clops_sweep.testing.watch import saved_and_loaded
from tests.learning.methods import one_kind

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that PyTorch can use; none is here")


def run(config: RunConfig, device: str) -> RunResult:
    return ContinualRun(config, tiny_frames(config.scenario), device).run()


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_auc_is_that_of_a_cpu(strategy: str) -> None:
    config = tiny_config(one_kind(strategy), strategy=strategy, epochs_per_task=1)
    cpu, gpu = run(config, "cpu"), run(config, "cuda")
    assert gpu.runs["backend"].tolist() == ["torch-module"]
    np.testing.assert_allclose(gpu.curves["auc"], cpu.curves["auc"], atol=1e-3)
    np.testing.assert_allclose(gpu.curves["loss"], cpu.curves["loss"], rtol=1e-3, atol=1e-5)  # logits of slda: 1e4


@pytest.mark.parametrize("strategy", ["clops", "gem", "mir"])
def test_a_network_of_ones_own(strategy: str) -> None:
    """Without dropout, which a GPU draws from its own generators: the losses of a CPU, and a CPU's checkpoint."""

    def make(channels: int, samples: int, outputs: int) -> nn.Module:
        layers = [nn.Conv1d(channels, 8, 15, 5), nn.BatchNorm1d(8), nn.ReLU(), nn.AdaptiveAvgPool1d(4)]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32, outputs))

    with NETWORKS.temporarily("own", make):
        config = tiny_config("class_il", strategy=strategy, network="own", epochs_per_task=1, acquisition="random")
        cpu, gpu = run(config, "cpu"), run(config, "cuda")
        np.testing.assert_allclose(gpu.curves["loss"], cpu.curves["loss"], rtol=1e-3)
        begun = ContinualRun(config, tiny_frames("class_il"))
        begun.advance()
        resumed = ContinualRun(config, tiny_frames("class_il"), "cuda")
        resumed.restore(saved_and_loaded(begun.state()))
        np.testing.assert_allclose(resumed.run().curves["loss"], cpu.curves["loss"], rtol=1e-3)


class Replay(Strategy):
    """A loss of three passes with every kind of state."""

    def setup(self) -> None:
        self.memory, self.before = Memory(7, "class_balanced"), None

    def begin_task(self, task: int) -> None:
        self.before = (self.frozen(), self.parameters.detach().clone()) if task else None

    def loss(self, batch: Any) -> torch.Tensor:
        logits = self.model(batch.x)
        loss = self.criterion(logits, batch.y)
        if self.memory and self.before is not None:
            old = self.memory.sample(4, weights="losses")
            loss = loss + self.criterion(self.model(old.x), old.y) + (logits - self.before[0](batch.x)).square().mean()
            loss = loss + 1e-3 * (self.parameters - self.before[1]).square().sum()
        self.memory.offer(batch, losses=self.losses(logits, batch.y))
        return loss


def test_a_method_written_as_a_loss_is_that_of_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(native.ENVIRONMENT, "off")
    with STRATEGIES.temporarily("replay_by_loss", Replay):
        config = tiny_config("class_il", strategy="replay_by_loss", epochs_per_task=2)
        cpu, gpu = run(config, "cpu"), run(config, "cuda")
        frames = tiny_frames("class_il")
        first = ContinualRun(config, frames, "cuda")
        for _ in range(3):
            first.advance()
        resumed = ContinualRun(config, frames, "cuda")
        resumed.restore(saved_and_loaded(first.state()))
        found = resumed.run()
    assert gpu.runs["backend"].tolist() == ["torch-module"]
    np.testing.assert_allclose(gpu.curves["loss"], cpu.curves["loss"], rtol=1e-3, atol=1e-5)  # logits of slda: 1e4
    np.testing.assert_allclose(found.curves["loss"], gpu.curves["loss"], rtol=1e-4)


def with_dropout(channels: int, samples: int, outputs: int) -> nn.Module:
    layers = [nn.Conv1d(channels, 8, 15, 5), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.AdaptiveAvgPool1d(4)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32, outputs))


@pytest.mark.parametrize("network", ["clops_cnn", "small_cnn", "resnet1d_wang", "with_dropout"])
@pytest.mark.parametrize("strategy", ["clops", "er", "lwf", "agem", "replay_by_loss"])
def test_replayed_graphs_give_the_numbers_of_kernels_one_by_one(
    strategy: str, network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same seeds, hence same dropout: only rounding may differ. No network may be refused."""
    monkeypatch.setattr(graphs, "NOT_RECORDED", {})
    with NETWORKS.temporarily("with_dropout", with_dropout), STRATEGIES.temporarily("replay_by_loss", Replay):
        config = tiny_config("class_il", strategy=strategy, network=network, epochs_per_task=3)
        replayed = run(config, "cuda")
        assert graphs.NOT_RECORDED == {}
        monkeypatch.setattr(graphs, "recorder_of", lambda device: None)
        computed = run(config, "cuda")
    np.testing.assert_allclose(replayed.curves["loss"], computed.curves["loss"], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(replayed.curves["auc"], computed.curves["auc"], atol=1e-3)


class ByValue(nn.Module):
    """Halves frames whose mean is high. The number of results depends on values, which only the capture notices."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        (is_high,) = torch.where(hidden.mean() > 0.1)
        return hidden / 2 if len(is_high) else hidden


def test_a_failed_capture_leaves_a_usable_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "NOT_RECORDED", {})

    def make(channels: int, samples: int, outputs: int) -> nn.Module:
        return nn.Sequential(ByValue(), with_dropout(channels, samples, outputs))

    with NETWORKS.temporarily("by_value", make), NETWORKS.temporarily("with_dropout", with_dropout):
        config = tiny_config("class_il", strategy="er", network="by_value", epochs_per_task=3)
        found = run(config, "cuda")
        assert "the recording failed" in graphs.NOT_RECORDED["by_value"]
        monkeypatch.setattr(graphs, "recorder_of", lambda device: None)
        np.testing.assert_allclose(found.curves["loss"], run(config, "cuda").curves["loss"], rtol=1e-3)
        monkeypatch.undo()
        run(config.replace(network="with_dropout"), "cuda")
        assert "with_dropout" not in graphs.NOT_RECORDED
