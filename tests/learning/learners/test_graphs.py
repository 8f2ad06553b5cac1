"""Recorded passes: all but the capture on a GPU, with a recorder that computes a pass again."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from clops_sweep import ContinualRun, Memory, RunConfig, Strategy, native
from clops_sweep.experiment.plugins.registry import NETWORKS, STRATEGIES
from clops_sweep.learning.batches import EpochBatch, Instances
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners import graphs, module_learner
from clops_sweep.learning.learners.graphs import Pass
from clops_sweep.learning.learners.module_learner import ModuleLearner
from clops_sweep.learning.result import RunResult
from clops_sweep.testing import tiny_config, tiny_frames
from clops_sweep.testing.watch import MEASURED
from tests.helpers.at_night import mostly_at_night
from tests.helpers.repeating import Repeating
from tests.learning.methods import one_kind


@pytest.fixture(autouse=True)
def _nothing_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "NOT_RECORDED", {})
    monkeypatch.setattr(Repeating, "replays", 0)
    monkeypatch.setattr(Repeating, "records", 0)
    monkeypatch.setenv(native.ENVIRONMENT, "off")


def own(channels: int, samples: int, outputs: int) -> nn.Module:
    stem = [nn.Conv1d(channels, 4, 15, 5), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.2), nn.AdaptiveAvgPool1d(4)]
    return nn.Sequential(*stem, nn.Flatten(), nn.Linear(16, outputs))


def recorded(config: RunConfig, monkeypatch: pytest.MonkeyPatch, recorder: Callable[[], Any] = Repeating) -> RunResult:
    with monkeypatch.context() as patch:
        patch.setattr(graphs, "recorder_of", lambda device: recorder)
        return ContinualRun(config, tiny_frames(config.scenario)).run()


def computed(config: RunConfig) -> RunResult:
    return ContinualRun(config, tiny_frames(config.scenario)).run()


def assert_equal(found: RunResult, expected: RunResult) -> None:
    for name, table in expected.tables.items():
        kept = [column for column in table.columns if column not in MEASURED]
        assert getattr(found, name)[kept].equals(table[kept]), name


class TwoPasses(Strategy):
    """A loss of three passes of one shape, of which two have a gradient, and logits that are kept."""

    def setup(self) -> None:
        self.memory, self.before = Memory(8, "reservoir"), None

    def begin_task(self, task: int) -> None:
        self.before = self.frozen() if task else None

    def loss(self, batch: Any) -> torch.Tensor:
        logits = self.model(batch.x)
        again = self.model(batch.x + 0.01 * torch.randn_like(batch.x))
        loss = self.criterion(logits, batch.y) + (again - logits).square().mean()
        if self.memory and self.before is not None:
            old = self.memory.sample(len(batch))
            loss = loss + (self.model(old.x) - old.logits).square().mean() + self.before(batch.x).mean()
        self.memory.offer(batch, logits=logits.detach())
        return loss


CASES = [*((name, "own") for name in STRATEGIES), *((name, "clops_cnn") for name in ("clops", "mir", "two_passes"))]


IN_CORE = ("clops", "er", "ewc", "gem", "icarl", "mir", "two_passes")
"""One for each way to use the passes of a network."""


@pytest.mark.parametrize(
    ("strategy", "network"),
    mostly_at_night([*CASES, ("two_passes", "own")], lambda case: case[0] in IN_CORE and case != ("mir", "clops_cnn")),
)
def test_a_run_of_recorded_passes_is_that_of_computed_ones(
    strategy: str, network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with NETWORKS.temporarily("own", own), STRATEGIES.temporarily("two_passes", TwoPasses):
        kind = "class_il" if strategy == "two_passes" else one_kind(strategy)
        config = tiny_config(kind, strategy=strategy, network=network, epochs_per_task=3)
        found = recorded(config, monkeypatch)
        assert graphs.NOT_RECORDED == {}
        assert Repeating.replays > 20
        assert_equal(found, computed(config))


class ByValue(nn.Module):
    """Halves frames whose mean is high, by a comparison on the host."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden / 2 if hidden.mean() > 0.1 else hidden


class ByMask(nn.Module):
    """Adds the mean of the positive values in training."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden + hidden[hidden > 0].mean() if self.training else hidden


class OnTheHost(nn.Module):
    """Scales the batch by a number of Python's generator in training."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden * random.random() if self.training else hidden


class ByNumPy(nn.Module):
    """Scales the batch by a number of NumPy's generator in training."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden * np.random.random() if self.training else hidden  # noqa: NPY002


class NewBuffer(nn.Module):
    """Replaces its running mean instead of changing it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * hidden.detach().mean()
        return hidden - self.mean


def with_layer(layer: Callable[[], nn.Module]) -> Callable[..., nn.Module]:
    def make(channels: int, samples: int, outputs: int) -> nn.Module:
        return nn.Sequential(nn.Conv1d(channels, 4, 15, 50), layer(), nn.Flatten(), nn.LazyLinear(outputs))

    return make


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        (ByValue, "it depends on values of tensors (bool)"),
        (ByMask, "it depends on values of tensors (getitem)"),
        (lambda: nn.BatchNorm1d(4, momentum=None), "it depends on values of tensors (float)"),
        (OnTheHost, "it draws random numbers on the CPU"),
        (ByNumPy, "it draws random numbers on the CPU"),
        (NewBuffer, "it replaces buffer '1.mean'; change it in place"),
    ],
)
def test_what_cannot_be_recorded_is_computed_and_logged_once(
    layer: Callable[[], nn.Module], why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with NETWORKS.temporarily("own", with_layer(layer)), caplog.at_level(logging.WARNING, "clops_sweep"):
        config = tiny_config("class_il", network="own", epochs_per_task=2, acquisition="random")
        found = recorded(config, monkeypatch)
        assert_equal(recorded(config, monkeypatch), found)
        (line,) = (record.getMessage() for record in caplog.records)
        assert "network 'own'" in line
        assert why in line
        assert_equal(found, computed(config))


class Failing(Repeating):
    """Recorder of a GPU that cannot capture."""

    def record(self, work: Pass) -> Pass:
        work()
        raise RuntimeError("operation not permitted when stream is capturing")


class Stuck(Repeating):
    """Recorder that keeps what the first pass returned."""

    def record(self, work: Pass) -> Pass:
        result = work()
        return lambda: result


class WithoutGradient(Repeating):
    """Recorder that forgets passes which only write, such as those of the gradient."""

    def record(self, work: Pass) -> Pass:
        replay = super().record(work)
        return replay if work() is not None else lambda: None


@pytest.mark.parametrize(
    ("recorder", "why"),
    [
        (Failing, "the recording failed (RuntimeError: operation not permitted when stream is capturing)"),
        (Stuck, "a replay gives other numbers"),
        (WithoutGradient, "a replay gives other numbers"),
    ],
)
@pytest.mark.parametrize("strategy", ["clops", pytest.param("two_passes", marks=pytest.mark.nightly)])
def test_a_recorder_that_fails_is_given_up(
    strategy: str,
    recorder: Callable[[], Any],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with STRATEGIES.temporarily("two_passes", TwoPasses), caplog.at_level(logging.WARNING, "clops_sweep"):
        config = tiny_config("class_il", strategy=strategy, epochs_per_task=3)
        found = recorded(config, monkeypatch, recorder)
        (line,) = (record.getMessage() for record in caplog.records)
        assert why in line
        assert_equal(found, computed(config))


def learner(make: Callable[..., nn.Module]) -> ModuleLearner:
    bank = FrameBank(tiny_frames("class_il"), torch.device("cpu"))
    with NETWORKS.temporarily("own", make):
        return ModuleLearner(0, "binary", 1, 1e-3, bank, "own")


def test_a_network_has_a_limited_number_of_recordings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "recorder_of", lambda device: Repeating)
    monkeypatch.setattr(graphs, "MOST", 2)
    network = learner(own)
    for size in (3, 4, 5) * 4:
        network.logits(torch.arange(size))
    assert Repeating.records == 2


def test_frames_that_need_a_gradient_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "recorder_of", lambda device: Repeating)
    passes, keys = learner(own).passes(), torch.zeros(2, dtype=torch.int32)
    x = torch.zeros(4, 1, 2500).requires_grad_()
    for _ in range(5):
        with passes.epoch(lambda number: keys, 0):
            passes.begin_step()
            passes.train(x).sum().backward()
    assert x.grad is not None
    assert Repeating.replays == 0


def test_layers_draw_from_the_stream_of_a_batchs_first_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    network, drawn, first = learner(own), [], []
    keys = torch.tensor([3, 4], dtype=torch.int32)
    monkeypatch.setattr(module_learner, "seed_of", lambda words, place: drawn.append((words, place)) or 0)
    rows = torch.arange(20)
    epoch = network.begin_epoch(Instances(rows, torch.ones(20, 1)), None, rows, 8, keys)

    def step(batch: EpochBatch) -> None:
        network.gradient(batch, keys)
        first.append(((3, 4), int(batch.draws[0])))

    network.run_epoch(epoch, step)
    assert drawn == first == [((3, 4), 0), ((3, 4), 8), ((3, 4), 16)]
    network.gradient(epoch.whole, torch.tensor([5, 6], dtype=torch.int32))
    assert drawn[-1] == ((5, 6), 0)


def test_only_gpus_record_and_only_with_a_pytorch_that_survives_a_failed_capture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "__version__", "2.13.0+cu130")
    assert graphs.recorder_of(torch.device("cpu")) is None
    assert graphs.recorder_of(torch.device("cuda", 0)) is not None
    monkeypatch.setattr(torch, "__version__", "2.12.1+cu130")
    assert graphs.recorder_of(torch.device("cuda", 0)) is None
